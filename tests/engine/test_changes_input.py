"""Patches and removals: which files say what is to change, in which order, and of which nodes."""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.errors import InputError
from inferlake.kb import KnowledgeBase
from inferlake.session import Engine

EX = "http://example.org/"


def triple(subject: object, value: object = "o") -> str:
    return f'<{EX}{subject}> <{EX}p> "{value}"'


def facts(kb: KnowledgeBase) -> set[str]:
    rows = kb.facts("asserted").collect()
    assert len(rows) == len(set(rows))
    return {f"{row.subject} {row.predicate} {row.object}" for row in rows}


def terms(kb: KnowledgeBase) -> set[str]:
    """Return what the dictionary knows."""
    engine = kb._sessions.for_reading()
    return {row.term for row in kb._store.terms.frame(engine).collect()}


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a file of lines, or of bytes, and returns its path."""

    def write(name: str, *lines: str | bytes) -> Path:
        data = b"".join(line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines)
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


def test_the_last_word_on_a_triple_counts(kb: KnowledgeBase, put: Callable[..., Path]) -> None:
    kb.load(put("start.nt", f"{triple('kept')} .", f"{triple('gone')} .", f"{triple('back')} ."))
    first = put(
        "z.rdfp",
        "H id <uuid:1> .",
        "TX .",
        f"PA ex <{EX}> .",
        f"A {triple('added')} .",
        f"A {triple('fleeting')} .",
        f"D {triple('fleeting')} .",
        f"D {triple('back')} .",
        f"A {triple('back')} .",
        f"D {triple('gone')} .",
        f"D {triple('never-there')} .",
        'A ex:prefixed ex:p "o" .',
        f"A {triple('quad')} <{EX}g> .",
        f"A {triple('later')} .",
        "TC .",
        "TX .",
        f"A {triple('cancelled')} .",
        f"D {triple('kept')} .",
        "TA .",
    )
    # After the first, which has the greater name.
    second = put("a.rdfp.gz", gzip.compress(f"D {triple('later')} .\n".encode()))
    third = put(
        "b.ru",
        f"PREFIX : <{EX}>",
        'INSERT DATA { :updated :p "o" . GRAPH :h { :also :p "o" } } ;',
        'DELETE DATA { GRAPH :h { :added :p "o" } } ; INSERT DATA { :later :p "again" }',
    )

    report = kb.update(patch=[first, second, third])

    names = ("kept", "back", "prefixed", "quad", "updated", "also")
    assert facts(kb) == {*map(triple, names), triple("later", "again")}
    assert (report.added, report.removed) == (5, 1)
    assert (report.bad_count, report.graphs_dropped) == (0, 2)
    assert report.files == 3
    # A deletion leaves no text behind, and neither does what is cancelled.
    known = terms(kb)
    assert f"<{EX}updated>" in known
    assert not known & {f"<{EX}never-there>", f"<{EX}cancelled>"}


def test_removals_come_first_then_additions_then_patches(
    kb: KnowledgeBase, put: Callable[..., Path]
) -> None:
    kb.load(put("start.nt", f"{triple('a')} .", f"{triple('b')} .", f"{triple('c')} ."))
    kb.update(
        remove=put("remove.nt", f"{triple('a')} .", f"{triple('b')} ."),
        add=put("add.nt", f"{triple('a')} .", f"{triple('d')} ."),
        patch=put("change.rdfp", f"A {triple('b')} .", f"D {triple('d')} .", f"D {triple('c')}"),
    )
    assert facts(kb) == {triple("a"), triple("b")}


def test_a_patch_that_says_nothing_changes_nothing(
    kb: KnowledgeBase, put: Callable[..., Path]
) -> None:
    kb.load(put("start.nt", f"{triple('a')} ."))
    report = kb.update(patch=[put("a.rdfp", "# nothing", ""), put("b.ru", "PREFIX : <a:>")])
    assert (report.read, report.added, report.removed) == (0, 0, 0)
    assert facts(kb) == {triple("a")}


@pytest.mark.parametrize("patch", [["TX .", f"A {triple('z')} .", "TA ."], ['H id "1" .']])
@pytest.mark.parametrize("add", ["b", ""])
def test_nor_does_it_beside_what_says_something(
    kb: KnowledgeBase, put: Callable[..., Path], patch: list[str], add: str
) -> None:
    kb.load(put("start.nt", f"{triple('a')} ."))
    added = put("add.nt", f"{triple(add)} ." if add else "# nothing")
    gone = put("remove.nt", f"{triple('a')} .")
    report = kb.update(add=added, remove=gone, patch=put("p.rdfp", *patch))
    assert (report.added, report.removed) == (len(add), 1)
    assert facts(kb) == ({triple(add)} if add else set())


# --- blank nodes --------------------------------------------------------------------------------

TURTLE = f"""
@prefix : <{EX}> .
:a :p [ :q ( 1 "x" ) ; :r _:n ] .
_:n :p :a , _:n .
"""


def test_changes_are_undone_by_a_patch_of_their_reverse(
    kb: KnowledgeBase, put: Callable[..., Path], tmp_path: Path
) -> None:
    kb.load(put("start.ttl", TURTLE))
    kb.update(
        patch=put("own.rdfp", f"A _:x <{EX}p> <_:y> .", f"A _:x <{EX}p> 1 .", f"A {triple('z')} .")
    )
    before = facts(kb)
    shared = {fact for fact in before if fact.startswith("_:f0000000000000000_x")}
    assert len(shared) == 2

    kb.update(
        remove=put("start.ttl.copy.nt", *(f"{fact} ." for fact in sorted(before)[:5])),
        add=put("more.ttl", TURTLE.replace("1", "2")),
        patch=put("more.rdfp", f"D _:x <{EX}p> _:y .", f"A _:y <{EX}p> _:w ."),
    )
    after = facts(kb)
    assert not after & set(sorted(before)[:5])
    assert not any(fact.startswith("_:f0000000000000000_x") and "_y" in fact for fact in after)

    report = kb.export_changes(tmp_path / "done.rdfp")
    assert report.triples == len(before ^ after)
    swapped = {"A": "D", "D": "A", "T": "T"}
    lines = (tmp_path / "done.rdfp").read_text().splitlines()
    put("undone.rdfp", *(swapped[line[0]] + line[1:] for line in lines))

    undone = kb.update(patch=tmp_path / "undone.rdfp")
    assert facts(kb) == before
    assert (undone.added, undone.removed) == (len(before - after), len(after - before))
    kb.update(patch=tmp_path / "done.rdfp")
    assert facts(kb) == after


@pytest.mark.parametrize("name", ["some.ttl", "some.nt", "some{1}.nt", "some.nq"])
def test_the_file_that_was_loaded_removes_what_it_brought(
    name: str, kb: KnowledgeBase, put: Callable[..., Path]
) -> None:
    # A literal that the pattern of terms leaves to the parser stands beside a blank node.
    lines = (f"_:x <{EX}p> _:y .", f'_:y <{EX}p> "\\u0041" .', f"{triple('a')} .")
    file, other = put(name, *lines), put(f"other-{name}", *lines)
    assert kb.load(file, other).added == 5
    report = kb.update(remove=file)
    assert (report.removed, report.not_asserted) == (3, 0)
    assert len(facts(kb)) == 2
    assert kb.update(remove=other).removed == 2


def test_stored_nodes_are_removed_by_the_labels_that_the_store_gave_them(
    kb: KnowledgeBase, put: Callable[..., Path], tmp_path: Path
) -> None:
    lines = [f'_:x <{EX}p> "{value}" .' for value in ("plain", "\\u0041", "kept")]
    kb.load(put("some.nq", *lines))
    kb.export(tmp_path / "all.nt")
    exported = sorted((tmp_path / "all.nt").read_text().splitlines())
    assert all(re.match(r"_:f[0-9a-f]{16}_x ", line) for line in exported)
    written = [line.replace('"A"', '"\\u0041"') for line in exported if "kept" not in line]
    removals = [
        put("one.nt", written[0], '_:x <http://example.org/p> "\\u0042" .'),
        put("two.ttl", written[1]),
    ]
    report = kb.update(remove=removals)
    assert (report.removed, report.not_asserted) == (2, 1)
    assert len(facts(kb)) == 1


# --- errors -------------------------------------------------------------------------------------


def test_a_bad_change_changes_nothing_and_may_be_skipped(
    kb: KnowledgeBase, put: Callable[..., Path]
) -> None:
    kb.load(put("start.nt", f"{triple('a')} ."))
    bad = {
        put("line.rdfp", f"A {triple('line')} .", "A <a:s> <a:p> no:o ."): (
            ":2:15: The prefix no: has not been declared\n    A <a:s> <a:p> no:o .\n"
        ),
        put("open.rdfp", f"A {triple('open')} .", "TX .", f"D {triple('a')} ."): (
            ":2: the transaction at line 2 is not closed; end it with TC, or cancel it with TA\n"
            "    TX .\n"
        ),
        put("where.ru", f"PREFIX : <{EX}>", "DELETE WHERE { ?s ?p ?o }"): (
            ":2:8: cannot read 'WHERE' here; only INSERT DATA { ... } and DELETE DATA { ... } are"
            " read\n    DELETE WHERE { ?s ?p ?o }\n"
        ),
        put("blank.ru", f'INSERT DATA {{ {triple("ru")} }};DELETE DATA {{ _:x <a:p> "o" }}'): (
            "DELETE DATA cannot name a blank node"
        ),
    }
    for file, said in bad.items():
        with pytest.raises(InputError) as told:
            kb.update(patch=file)
        assert str(told.value).startswith(f"{file}:")
        assert said in str(told.value)
        assert "Nothing was changed. Mend the input" in str(told.value)
    assert (kb.version, facts(kb)) == (1, {triple("a")})

    report = kb.update(patch=list(bad), on_error="skip")
    assert report.bad_count == 4
    assert facts(kb) == {triple("a"), triple("line"), triple("open"), triple("ru")}


def test_files_are_refused_where_they_do_not_belong(
    tmp_path: Path, put: Callable[..., Path]
) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="none")
    plain, patch = put("a.nt", f"{triple('a')} ."), put("b.rdfp", f"A {triple('b')} .")
    with pytest.raises(InputError, match="with --patch"):
        kb.load(patch)
    kb.load(plain)
    with pytest.raises(InputError, match="with --patch"):
        kb.update(remove=patch)
    with pytest.raises(InputError, match="with --add or --remove"):
        kb.update(patch=plain)
    other = put("c.txt", f"A {triple('c')} .")
    assert kb.update(patch=other, add=plain, format="rdfp").added == 1
    assert facts(kb) == {triple("a"), triple("c")}


# --- whatever is written ------------------------------------------------------------------------

EXAMPLES = {"sail": 6, "spark": 1}
statements = st.tuples(st.sampled_from("AD"), st.integers(0, 4), st.booleans())


@pytest.mark.timeout(0)
def test_patches_mean_what_their_lines_do_one_by_one(engine: Engine) -> None:
    @settings(max_examples=EXAMPLES[engine.name], deadline=None, derandomize=True, database=None)
    @given(st.lists(st.lists(statements, max_size=12), min_size=1, max_size=3))
    def run(patches: list[list[tuple[str, int, bool]]]) -> None:
        asserted = {triple("start")}
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, lines in enumerate(patches):
                # SPARQL for every second, and names that do not sort in the order of the files.
                at = Path(folder, f"{9 - number}.{'ru' if number % 2 else 'rdfp'}")
                at.write_text("".join(_written(at.suffix, *line) for line in lines))
                files.append(at)
                for verb, value, _ in lines:
                    change = {triple("s", value)}
                    asserted = asserted | change if verb == "A" else asserted - change
            kb = KnowledgeBase(Path(folder, "kb"), engine=engine.name, rules="none")
            Path(folder, "start.nt").write_text(f"{triple('start')} .\n")
            kb.load(Path(folder, "start.nt"))
            kb.update(patch=files)
            assert facts(kb) == asserted

    run()


def _written(suffix: str, verb: str, value: int, quad: bool) -> str:
    fact = triple("s", value)
    if suffix == ".rdfp":
        return f"{verb} {fact}{' <a:g>' if quad else ''} .\n"
    operation = "INSERT" if verb == "A" else "DELETE"
    return f"{operation} DATA {{ {f'GRAPH <a:g> {{ {fact} }}' if quad else fact} }} ;\n"
