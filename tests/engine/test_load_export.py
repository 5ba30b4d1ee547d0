"""Load, then export, gives exactly the distinct input triples; and so does every version of it."""

from __future__ import annotations

import gzip
from importlib import import_module
from pathlib import Path

import pyoxigraph as ox
import pytest

import inferlake
from inferlake.errors import InputError, VersionNotFound
from inferlake.generate import generate_lubm
from inferlake.kb import KnowledgeBase, LayerChoice
from inferlake.session import Engine, Sessions


def exported(kb: KnowledgeBase, tmp_path: Path, layer: LayerChoice = "all") -> list[str]:
    out = tmp_path / "exported.nt"
    kb.export(out, layer=layer)
    return sorted(out.read_text().splitlines())


EX = "http://example.org"


def numbered(numbers: range, predicate: str = "knows") -> str:
    return "".join(f"<{EX}/{n}> <{EX}/{predicate}> <{EX}/{n + 1}> .\n" for n in numbers)


@pytest.fixture
def lubm1(shared_data: Path) -> list[str]:
    text = gzip.decompress((shared_data / "lubm" / "lubm-1.nt.gz").read_bytes()).decode()
    return sorted(set(text.splitlines()))


def test_lubm_round_trip_from_ntriples_gzip_and_turtle(
    kb: KnowledgeBase, tmp_path: Path, lubm1: list[str], shared_data: Path
) -> None:
    plain, turtle = tmp_path / "l.nt", tmp_path / "l.ttl"
    text = "\n".join(lubm1) + "\n"
    plain.write_text(text)
    quads = ox.parse(text.encode(), format=ox.RdfFormat.N_TRIPLES)
    turtle.write_bytes(
        ox.serialize((quad.triple for quad in quads), format=ox.RdfFormat.TURTLE) or b""
    )

    report = kb.load(shared_data / "lubm" / "lubm-1.nt.gz")
    assert (report.read, report.added) == (103_104, 100_573)
    assert exported(kb, tmp_path) == lubm1
    for again in (plain, turtle):
        assert kb.load(again).added == 0
    other = KnowledgeBase(tmp_path / "from-turtle", engine=report.engine)  # type: ignore[arg-type]
    assert other.load(turtle).added == 100_573
    assert exported(other, tmp_path) == lubm1


def test_fifty_small_loads_then_compact(kb: KnowledgeBase, engine: Engine, tmp_path: Path) -> None:
    loads = 50 if engine.name == "sail" else 5
    for n in range(loads):
        (tmp_path / "some.nt").write_text(numbered(range(2 * n, 2 * n + 3)))
        assert kb.load(tmp_path / "some.nt").added == (3 if n == 0 else 2)
    before, facts_before = kb.stats(), exported(kb, tmp_path)
    assert before.asserted == len(facts_before) == 2 * loads + 1

    report = kb.compact()

    after = kb.stats()
    assert exported(kb, tmp_path) == facts_before
    assert after.files == 2 < before.files
    assert (report.facts.files_before, report.facts.files_after) == (loads, 1)
    counts = ("asserted", "derived", "terms", "predicates", "classes")
    assert [getattr(after, c) for c in counts] == [getattr(before, c) for c in counts]
    assert exported(kb.at(version=1), tmp_path) == sorted(numbered(range(3)).splitlines())


def test_a_small_load_reads_only_the_files_it_can_meet(kb: KnowledgeBase, tmp_path: Path) -> None:
    for n in range(4):
        (tmp_path / "some.nt").write_text(numbered(range(3), predicate=f"p{n}"))
        kb.load(tmp_path / "some.nt")
    (tmp_path / "some.nt").write_text(numbered(range(3), predicate="p2"))
    report = kb.load(tmp_path / "some.nt")
    assert (report.added, report.files_read, report.files_stored) == (0, 1, 4)


def test_layers_signs_and_versions(kb: KnowledgeBase, engine: Engine, tmp_path: Path) -> None:
    """A derived fact that is loaded becomes asserted, and a removed one is gone from then on."""
    from inferlake.store import Commit

    (tmp_path / "some.nt").write_text(numbered(range(4)))
    kb.load(tmp_path / "some.nt")
    facts = kb._store.facts
    ids = [(row.s, row.p, row.o) for row in kb.encoded_facts().collect()]
    base = facts.table.snapshot()
    derived = engine.sql(
        "SELECT o AS s, p, s AS o, BIGINT(2) AS version FROM {facts}", facts=kb.encoded_facts()
    )
    files = facts.table.write(derived)
    facts.table.commit(base, Commit({"operation": "derive"}, facts.actions(files, "derived")))
    assert kb.stats().derived == 4

    (tmp_path / "back.nt").write_text(
        "<http://example.org/1> <http://example.org/knows> <http://example.org/0> .\n"
    )
    kb.load(tmp_path / "back.nt")
    assert (kb.stats().asserted, kb.stats().derived) == (5, 3)
    assert len(exported(kb, tmp_path)) == 8

    s, p, o = ids[0]
    base = facts.table.snapshot()
    tombstone = engine.sql(f"SELECT BIGINT({s}) s, BIGINT({p}) p, BIGINT({o}) o, BIGINT(4) version")
    files = facts.table.write(tombstone)
    actions = facts.actions(files, "asserted", sign=-1)
    facts.table.commit(base, Commit({"operation": "remove"}, actions))
    assert (kb.stats().asserted, kb.stats().derived) == (4, 3)
    assert len(exported(kb.at(3), tmp_path)) == 8

    before = exported(kb, tmp_path)
    kb.compact()
    assert exported(kb, tmp_path) == before
    assert {int(f.partition["sign"]) for f in facts.table.snapshot().files} == {1}

    assert kb.load(tmp_path / "some.nt").added == 1, "what was removed can come back"
    assert (kb.stats().asserted, kb.stats().derived) == (5, 3)
    assert len(exported(kb, tmp_path, "derived")) == 3


def test_facts_is_a_frame_of_terms(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "some.ttl").write_text('<http://a> <http://b> "c"@en, 1 .')
    kb.load(tmp_path / "some.ttl")
    rows = {tuple(row) for row in kb.facts().collect()}
    assert rows == {
        ("<http://a>", "<http://b>", '"c"@en', "asserted"),
        ("<http://a>", "<http://b>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "asserted"),
    }
    assert kb.facts(layer="derived").count() == 0


def test_export_to_gzip_folder_and_past_versions(kb: KnowledgeBase, tmp_path: Path) -> None:
    for n in (1, 2):
        (tmp_path / "some.nt").write_text(numbered(range(n)))
        kb.load(tmp_path / "some.nt")
    expected = sorted(numbered(range(2)).splitlines())
    kb.export(tmp_path / "out.nt.gz")
    with gzip.open(tmp_path / "out.nt.gz", "rt") as zipped:
        assert sorted(zipped.read().splitlines()) == expected
    kb.export(tmp_path / "folder")
    parts = sorted((tmp_path / "folder").iterdir())
    assert sorted("".join(p.read_text() for p in parts).splitlines()) == expected
    assert exported(kb.at(version=1), tmp_path) == expected[:1]
    assert exported(kb.at(version=0), tmp_path) == []


def many_files(folder: Path, last: str) -> list[str]:
    """Write ten files, too long to be parsed by the driver, the last with another line in it."""
    folder.mkdir()
    lines = []
    for n in range(10):
        text = numbered(range(300 * n, 300 * (n + 1)))
        lines += text.splitlines()
        (folder / f"{n}.nt").write_text(text + (last if n == 9 else ""))
    return sorted(lines)


def test_many_files_are_one(kb: KnowledgeBase, tmp_path: Path) -> None:
    expected = many_files(tmp_path / "plain", last="")
    assert kb.load(tmp_path / "plain").read == 3000
    assert exported(kb, tmp_path) == expected


def test_many_files_keep_their_blank_nodes_apart(kb: KnowledgeBase, tmp_path: Path) -> None:
    expected = many_files(tmp_path / "blank", last=f"_:b <{EX}/p> _:b .\n")
    (tmp_path / "blank" / "8.nt").write_text(f"_:b <{EX}/p> _:b .\n")
    assert kb.load(tmp_path / "blank").read == 2702
    found = exported(kb, tmp_path)
    assert len([line for line in found if line.startswith("_:")]) == 2
    assert set(found) > set(expected) - set(numbered(range(2400, 2700)).splitlines())


def test_large_files_are_read_once(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blank node in one of them would have all of them read again, one by one."""
    many_files(tmp_path / "blank", last=f"_:b <{EX}/p> _:b .\n")
    stage = import_module("inferlake.input.stage")
    monkeypatch.setattr(stage, "_SMALL_FILE", 1)
    monkeypatch.setattr(stage._Stage, "_lines_together", None)
    assert kb.load(tmp_path / "blank").read == 3001


@pytest.mark.parametrize("bad", [f"<{EX}/a> <{EX}/b c> .\n", f"<{EX}/a> <{EX}/b> <{EX}/ c> .\n"])
def test_a_bad_line_among_many_files_is_told_with_its_place(
    kb: KnowledgeBase, tmp_path: Path, bad: str
) -> None:
    many_files(tmp_path / "bad", last=bad)
    with pytest.raises(InputError, match=r"9\.nt:301:"):
        kb.load(tmp_path / "bad")
    report = kb.load(tmp_path / "bad", on_error="skip")
    assert (report.read, report.bad_count) == (3000, 1)


def test_a_bad_graph_among_many_files_is_told_with_its_place(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    for n in range(10):
        line = numbered(range(n, n + 1)).replace(" .", f" <{EX}/g> .")
        other = f"<{EX}/a> <{EX}/b> <{EX}/c> <no-iri> .\n" if n == 7 else ""
        (tmp_path / f"{n}.nq").write_text(line * 300 + other)
    with pytest.raises(InputError, match=r"7\.nq:301:"):
        kb.load(*sorted(tmp_path.glob("*.nq")))


def test_many_files_of_different_compressions(kb: KnowledgeBase, tmp_path: Path) -> None:
    expected = many_files(tmp_path / "mixed", last="")
    for n in (2, 5):
        text = (tmp_path / "mixed" / f"{n}.nt").read_bytes()
        (tmp_path / "mixed" / f"{n}.nt.gz").write_bytes(gzip.compress(text))
        (tmp_path / "mixed" / f"{n}.nt").unlink()
    assert kb.load(tmp_path / "mixed").read == 3000
    assert exported(kb, tmp_path) == expected


def test_large_loads_are_cut_into_files_that_can_be_pruned(
    kb: KnowledgeBase, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inferlake.store import layout

    monkeypatch.setattr(layout, "_ROWS_LOW", 100)
    (tmp_path / "some.nt").write_text(
        "".join(numbered(range(300), predicate=f"p{n}") for n in range(5))
    )
    kb.load(tmp_path / "some.nt")
    files = kb._store.facts.table.snapshot().files
    assert len(files) >= 15
    assert all(file.mins["p"] == file.maxs["p"] for file in files)
    assert sum(file.rows for file in files) == 1500
    kb.compact()
    assert kb.stats().asserted == 1500


def test_vacuum_keeps_what_kept_versions_need(kb: KnowledgeBase, tmp_path: Path) -> None:
    from datetime import timedelta

    for n in (1, 2, 3):
        (tmp_path / "some.nt").write_text(numbered(range(n)))
        kb.load(tmp_path / "some.nt")
    kb.compact()
    kept = kb.vacuum(timedelta(days=7))
    assert (kept.files, kept.oldest_kept) == (0, 0)
    assert len(exported(kb.at(1), tmp_path)) == 1

    gone = kb.vacuum(timedelta(0))
    assert gone.files == 6, "three small files of facts and three of terms"
    assert len(exported(kb, tmp_path)) == 3
    with pytest.raises(VersionNotFound, match="version 1 was vacuumed; the oldest that is kept is"):
        kb.at(1)
    (tmp_path / "some.nt").write_text(numbered(range(9)))
    assert kb.load(tmp_path / "some.nt").added == 6


def test_a_frame_of_triples_can_be_loaded(
    kb: KnowledgeBase, engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "some.ttl").write_text(
        '[] <http://b> "c\\\\\\"d" . <http://a> <http://b> "é"@en-GB .'
    )
    kb.load(tmp_path / "some.ttl")
    other = KnowledgeBase(tmp_path / "other", engine=engine.name)
    report = other.load(kb.facts())
    assert (report.read, report.added, report.engine) == (2, 2, engine.name)
    assert exported(other, tmp_path) == exported(kb, tmp_path), "blank nodes keep their names"

    frame = engine.sql(
        "SELECT '_:x' AS subject, '<http://b>' AS predicate, '\"\\\\u0061\"' AS object"
    )
    assert [other.load(frame).added, other.load(frame).added] == [1, 0]
    assert any(line.endswith('<http://b> "a" .') for line in exported(other, tmp_path))
    with pytest.raises(InputError, match=r"the DataFrame: not a triple.*\n    x <http://b>"):
        other.load(
            engine.sql("SELECT 'x' AS subject, '<http://b>' AS predicate, '\"a\"' AS object")
        )
    with pytest.raises(InputError, match="no column object"):
        other.load(engine.sql("SELECT 'x' AS subject, '<http://b>' AS predicate"))
    assert other.version == 3


def test_terms_of_skipped_statements_are_not_stored_twice(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "some.nt").write_text(numbered(range(1)))
    kb.load(tmp_path / "some.nt")
    (tmp_path / "bad.nt").write_text(numbered(range(1)).replace(f"<{EX}/1>", '"x"@@'))
    report = kb.load(tmp_path / "bad.nt", on_error="skip")
    assert (report.read, report.added, report.bad_count) == (0, 0, 1)
    assert kb.facts().count() == 1
    assert kb.stats().terms == 3


def test_repeated_lines_count_as_often_as_they_stand_there(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    escaped = f'<{EX}/a> <{EX}/\\u0062> "c\\u0064" .\n'
    spaced = f"<{EX}/a>  <{EX}/b> <{EX}/c> .\n"
    (tmp_path / "some.nt").write_text(
        3 * escaped + 3 * spaced + 3 * numbered(range(1)) + 4 * "junk\n"
    )
    report = kb.load(tmp_path / "some.nt", on_error="skip")
    assert (report.read, report.added, report.bad_count) == (9, 3, 4)


def test_a_row_of_a_frame_is_one_statement_or_a_bad_one(kb: KnowledgeBase, engine: Engine) -> None:
    a, p = f"<{EX}/a>", f"<{EX}/p>"
    rows = [
        (a, p, f"{a} .\\n{a} {p} {a}"),
        ("# a comment", p, a),
        (a, "", f"{p} {a}"),
        (f"{a} {p}", a, ""),
    ]
    values = ", ".join(f"('{s}', '{p}', '{o}')" for s, p, o in rows)
    frame = engine.sql(f"SELECT * FROM VALUES {values} AS t(subject, predicate, object)")
    report = kb.load(frame.unionAll(engine.sql("SELECT NULL, '<x:y>', '<x:y>'")), on_error="skip")
    assert (report.read, report.added, report.bad_count) == (0, 0, 5)


def test_arguments_are_checked(tmp_path: Path) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    with pytest.raises(InputError, match="nothing to load"):
        kb.load()
    with pytest.raises(InputError, match="fail or skip"):
        kb.load("x.nt", on_error="ignore")  # type: ignore[arg-type]
    (tmp_path / "some.nt").write_text(numbered(range(1)))
    kb.load(tmp_path / "some.nt")
    with pytest.raises(InputError, match="must not begin with inferlake-"):
        kb.load(tmp_path / "some.nt", transaction=("inferlake-clock", 4_000_000_000_000))
    with pytest.raises(InputError, match="no layer 'assertd'"):
        kb.facts("assertd")  # type: ignore[arg-type]
    for version in (-1, 7):
        with pytest.raises(VersionNotFound, match=f"no version {version}"):
            kb.at(version)


@pytest.fixture
def told(tmp_path: Path) -> KnowledgeBase:
    """A knowledge base of three facts, on Sail."""
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="none")
    (tmp_path / "told.nt").write_text(numbered(range(3)))
    kb.load(tmp_path / "told.nt")
    return kb


def test_the_folder_of_an_output_is_made(told: KnowledgeBase, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert told.export(new / "a" / "x.nt").triples == 3
    assert told.export(new / "b" / "c").triples == 3
    assert told.export_changes(new / "d" / "x.rdfp").triples == 3
    files = {str(file.relative_to(new)) for file in new.rglob("*") if file.is_file()}
    assert {"a/x.nt", "d/x.rdfp"} < files
    assert all(name.startswith("b/c/part-") for name in files - {"a/x.nt", "d/x.rdfp"})


def test_a_place_that_cannot_be_written_is_told_before_any_work(
    told: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferlake.export._lines", lambda *_, **__: pytest.fail("decoded"))
    (tmp_path / "file").touch()
    (tmp_path / "folder.nt").mkdir()
    program = tmp_path / "program.dl"
    program.write_text("p(?x) :- q(?x) .")
    (tmp_path / "q.csv").write_text("1\n")
    below, reason = tmp_path / "file" / "below", "/file.*: cannot be written .*Not a directory"
    for write in (
        lambda: told.export(below / "x.nt"),
        lambda: told.export(below),
        lambda: told.export_changes(below / "x.rdfp"),
        lambda: inferlake.run(program, {"q": tmp_path / "q.csv"}, below, engine="sail"),
        lambda: generate_lubm(Sessions("sail").for_reading().session, 1, out=str(below)),
    ):
        with pytest.raises(InputError, match=reason):
            write()
    with pytest.raises(InputError, match=r"folder.nt: cannot be written: a folder"):
        told.export(tmp_path / "folder.nt")
    with pytest.raises(InputError, match="file: not empty; export to a new folder"):
        told.export(tmp_path / "file")
