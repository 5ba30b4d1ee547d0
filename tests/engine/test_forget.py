"""Forget: what names an IRI goes, with all that followed from it, and in the end its very text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from inferlake.errors import InputError, StoreError, VersionNotFound
from inferlake.kb import KnowledgeBase
from inferlake.maintain.purge import _Purge
from inferlake.maintain.repair import Repair
from inferlake.session import Engine
from inferlake.store import Commit
from inferlake.store.table import Snapshot, Table
from inferlake.terms import TermHash

EX = "http://example.org/"
OWL = "http://www.w3.org/2002/07/owl#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SAME = f"<{OWL}sameAs>"
SUB_CLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
SUB_PROPERTY = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"
DOMAIN = "<http://www.w3.org/2000/01/rdf-schema#domain>"
NOW = timedelta(0)

Fact = tuple[str, str, str]

# What these tests ask is the driver's or the log's doing, and would take minutes on Spark.
on_sail = pytest.mark.parametrize("engine", ["sail"], indirect=True)


def name(local: str) -> str:
    return f"<{EX}{local}>"


def facts_of(text: str) -> set[Fact]:
    """Return the triples of lines such as `alice knows bob`, in which TYPE and so on stand too."""
    words = {"TYPE": TYPE, "SAME": SAME, "SUB": SUB_CLASS, "SUBP": SUB_PROPERTY, "DOMAIN": DOMAIN}
    found = set()
    for line in text.strip().splitlines():
        s, p, o = (
            word if word.startswith('"') else words.get(word, name(word)) for word in line.split()
        )
        found.add((s, p, o))
    return found


# bob is a subject, an object and a predicate, and what bobby is the same as.
PEOPLE = facts_of("""
    alice knows bob
    bob knows carol
    bob TYPE Student
    bob name "Bob"
    dave bob erin
    bobby SAME bob
    bobby likes cheese
    bobby-tables knows carol
    Student SUB Person
    knows DOMAIN Agent
    knows SUBP met
""")
# A class and a property, with schema that only they carry.
SCHEMA = facts_of("""
    Student SUB Person
    Person SUB Agent
    alice TYPE Student
    carol TYPE Person
    advises SUBP knows
    knows SUBP met
    alice advises carol
    carol knows alice
""")


@pytest.fixture
def load(engine: Engine, tmp_path: Path) -> Callable[..., KnowledgeBase]:
    """A function that loads triples into a store of that name, and returns it."""
    numbers = itertools.count()

    def run(at: str, facts: set[Fact], rules: Any = None, **options: Any) -> KnowledgeBase:
        kb = KnowledgeBase(tmp_path / at, engine=engine.name, **options)
        file = tmp_path / f"{next(numbers)}.nt"
        file.write_text("".join(f"{' '.join(fact)} .\n" for fact in sorted(facts)))
        kb.load(file, rules=rules)
        return kb

    return run


def stored(kb: KnowledgeBase, layer: Any = "all") -> set[Fact]:
    rows = [(row.subject, row.predicate, row.object) for row in kb.facts(layer).collect()]
    assert len(rows) == len(set(rows)), "a triple is there twice"
    return set(rows)


def changed(kb: KnowledgeBase, since: int | None = None) -> dict[str, set[Fact]]:
    rows = list(kb.changes(since))
    return {
        change: {tuple(row)[1:] for row in rows if row.change == change}
        for change in ("added", "removed")
    }


def naming(facts: set[Fact], term: str) -> set[Fact]:
    return {fact for fact in facts if term in fact}


def texts(value: Any) -> Iterator[str]:
    """Yield every string in a decoded value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        yield from texts(list(value.items()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts(one)


def mentions(kb: KnowledgeBase, iri: str) -> set[str]:
    """Return the files below a store that have an IRI in them, as bytes or once decoded.

    An IRI that merely begins with the same letters does not count.
    """
    root, found = Path(kb.path), set()
    ends = (f"{iri}>".encode(), f'{iri}"'.encode(), f"{iri} ".encode())
    for file in (path for path in root.rglob("*") if path.is_file()):
        raw = file.read_bytes()
        said = [raw.decode(errors="replace")]
        if file.suffix == ".parquet":
            said += texts(pq.ParquetFile(file).read().to_pylist())
        elif file.suffix == ".json" and "_delta_log" in file.parts:
            said += texts([json.loads(line) for line in raw.splitlines()])
        elif file.suffix == ".json":
            said += texts(json.loads(raw))
        if any(end in raw for end in ends) or any(
            f"{iri}>" in text or text == iri for text in said
        ):
            found.add(str(file.relative_to(root)))
    return found


# --- what goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["none", "rdfs", pytest.param("owl2rl", marks=pytest.mark.slow)])
def test_all_that_names_an_iri_goes_and_the_rest_is_as_if_it_had_never_been(
    rules: str, engine: Engine, load: Callable[..., KnowledgeBase]
) -> None:
    if engine.name == "spark" and rules != "rdfs":
        pytest.skip("half a minute each on Spark")
    bob = name("bob")
    kb = load("kb", PEOPLE, rules)
    before, version = stored(kb), kb.version
    asserted, derived = naming(PEOPLE, bob), naming(stored(kb, "derived"), bob)
    assert len(asserted) == 6 and bool(derived) == (rules != "none")

    would = kb.forget(bob, dry_run=True)
    assert (would.asserted, would.derived, would.dry_run) == (6, len(derived), True)
    assert (kb.version, stored(kb)) == (version, before)

    done = kb.forget(f"{EX}bob")
    assert (done.asserted, done.derived, done.left) == (6, len(derived), 0)
    assert done.version == kb.version > version
    left = stored(kb)
    fresh = load("fresh", PEOPLE - asserted, rules)
    assert naming(left, bob) == set()
    assert left == stored(fresh)
    assert stored(kb, "asserted") == PEOPLE - asserted
    assert kb.verify().ok
    assert changed(kb, version) == {"added": set(), "removed": before - left}
    assert changed(kb) == changed(kb, version), "the last version only compacts"

    assert mentions(kb, f"{EX}bob"), "what older versions know stays until a vacuum"
    assert stored(kb.at(version)) == before
    gone = kb.vacuum(NOW)
    assert gone.terms >= 1
    assert mentions(kb, f"{EX}bob") == set()
    assert mentions(kb, f"{EX}bobby-tables")
    assert stored(kb) == left and kb.verify().ok
    with pytest.raises(VersionNotFound, match=f"version {version} was vacuumed"):
        kb.changes(version)


@on_sail
@pytest.mark.parametrize("local", ["Student", "Person", "knows", "advises"])
def test_a_class_or_a_property_goes_with_what_its_schema_derived(
    local: str, load: Callable[..., KnowledgeBase]
) -> None:
    kb = load("kb", SCHEMA, "rdfs")
    kb.forget(name(local))
    left = SCHEMA - naming(SCHEMA, name(local))
    assert stored(kb) == stored(load("fresh", left, "rdfs"))
    kb.vacuum(NOW)
    assert mentions(kb, f"{EX}{local}") == set()
    assert stored(kb, "asserted") == left


def test_terms_that_only_its_triples_had_go_with_it(load: Callable[..., KnowledgeBase]) -> None:
    kb = load("kb", facts_of('alice diary "secret"\nbob diary "open"'), "none")
    kb.forget(name("alice"))
    assert kb.vacuum(NOW).terms == 2
    assert kb.stats().terms == 3
    assert not any(b"secret" in file.read_bytes() for file in Path(kb.path).rglob("*.parquet"))


def test_everything_may_be_forgotten(load: Callable[..., KnowledgeBase]) -> None:
    kb = load("kb", facts_of("alice knows bob"), "none")
    kb.forget(name("alice"))
    assert stored(kb) == set()
    assert kb.vacuum(NOW).terms == 3
    assert (kb.stats().terms, kb.stats().asserted) == (0, 0)
    assert not mentions(kb, f"{EX}alice")
    load("kb", facts_of("bob knows carol"), "none")
    assert stored(kb) == facts_of("bob knows carol")


@on_sail
def test_blank_nodes_around_it_stay_and_those_stored_can_be_named(
    engine: Engine, tmp_path: Path
) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="none")
    (tmp_path / "some.ttl").write_text(
        f'<{EX}alice> <{EX}address> [ <{EX}street> "a \\"b\\"\\n\\\\" ] .'
    )
    kb.load(tmp_path / "some.ttl")
    node = next(s for s, _, _ in stored(kb) if s.startswith("_:"))
    assert kb.forget(name("alice")).asserted == 1
    assert [s for s, _, _ in stored(kb)] == [node]
    assert kb.forget(node).asserted == 1
    assert stored(kb) == set()
    kb.vacuum(NOW)
    assert not mentions(kb, node) and not mentions(kb, f"{EX}alice")


# --- vacuum, again and later ---------------------------------------------------------------------


@on_sail
def test_what_a_kept_version_knows_is_not_purged(load: Callable[..., KnowledgeBase]) -> None:
    kb = load("kb", PEOPLE, "none")
    kb.forget(name("bob"))
    kept = kb.vacuum(timedelta(days=7))
    assert (kept.terms, kept.oldest_kept) == (0, 0)
    assert stored(kb.at(1)) == PEOPLE
    assert kb.vacuum(NOW).terms > 0
    assert mentions(kb, f"{EX}bob") == set()


@on_sail
def test_what_is_forgotten_may_come_back_and_be_forgotten_again(
    load: Callable[..., KnowledgeBase],
) -> None:
    kb = load("kb", PEOPLE, "rdfs")
    before = stored(kb)
    kb.forget(name("bob"))
    load("kb", PEOPLE)  # before the vacuum, which must leave it alone
    assert stored(kb) == before
    kb.vacuum(NOW)
    assert stored(kb) == before

    kb.forget(name("bob"))
    kb.vacuum(NOW)
    assert mentions(kb, f"{EX}bob") == set()
    load("kb", PEOPLE)  # after the vacuum
    assert stored(kb) == before
    assert kb.vacuum(NOW).terms == 0
    assert stored(kb) == before
    assert kb.verify().ok


@on_sail
def test_what_was_removed_before_is_forgotten_too(
    load: Callable[..., KnowledgeBase], tmp_path: Path
) -> None:
    """An update has taken the last triple; what is left of the IRI is its text."""
    kb = load("kb", PEOPLE, "none")
    gone = naming(PEOPLE, name("bob"))
    (tmp_path / "gone.nt").write_text("".join(f"{' '.join(fact)} .\n" for fact in gone))
    kb.update(remove=tmp_path / "gone.nt")
    version = kb.version
    report = kb.forget(name("bob"))
    assert (report.asserted, report.derived) == (0, 0)
    assert report.version == kb.version == version + 1
    kb.vacuum(NOW)
    assert mentions(kb, f"{EX}bob") == set()


@on_sail
def test_compacted_dictionaries_of_the_past_go_too(
    load: Callable[..., KnowledgeBase], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that were replaced within the time that a vacuum keeps still have the text."""
    kb = load("kb", PEOPLE, "none")
    load("kb", facts_of("a b c"))
    kb.forget(name("bob"))
    kb.compact()
    monkeypatch.setattr("inferlake.store.vacuum.oldest_within", lambda history, cutoff: kb.version)
    assert kb.vacuum(timedelta(days=7)).terms > 0
    assert mentions(kb, f"{EX}bob") == set()
    assert naming(stored(kb), name("a")) == facts_of("a b c")


# --- names ---------------------------------------------------------------------------------------


@pytest.fixture
def sail(tmp_path: Path) -> KnowledgeBase:
    """A store on Sail, for what no engine sees."""
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    lines = "".join(f"{' '.join(fact)} .\n" for fact in sorted(PEOPLE))
    (tmp_path / "people.nt").write_text(lines)
    kb.load(tmp_path / "people.nt")
    return kb


def test_what_was_never_there_is_told_and_changes_nothing(sail: KnowledgeBase) -> None:
    before = sail.version
    for dry_run in (True, False):
        report = sail.forget(name("nobody"), dry_run=dry_run)
        assert (report.asserted, report.derived, report.left) == (0, 0, 0)
        assert report.version == sail.version == before
        assert str(report).startswith(
            f"nothing names {name('nobody')} (IRIs are written in full); still version {before}"
        )
    assert sail.vacuum(NOW).terms == 0


@pytest.mark.parametrize(
    "subject",
    [
        *("bob", "", " ", "<bob>", "?x", "<http://a b>", "http://a b", "<http://a", "http://a>"),
        *("<<http://a>>", "http://a> <http://b", "<http://a>\n", "http://a\\u0020b"),
        *('"Bob"', '"Bob"@en', "_:x", "_:f0123456789abcdef_", "_:f0123456789abcdef_a b"),
    ],
)
def test_what_is_no_iri_is_refused_with_an_example(subject: str, sail: KnowledgeBase) -> None:
    before = sail.version
    for dry_run in (True, False):
        with pytest.raises(InputError, match=r"for example http://example\.org/alice"):
            sail.forget(subject, dry_run=dry_run)
    assert sail.version == before


def test_an_iri_is_found_however_it_is_written(sail: KnowledgeBase) -> None:
    for written in (f"{EX}bob", f"<{EX}bob>", f"<{EX}b\\u006Fb>"):
        report = sail.forget(written, dry_run=True)
        assert (report.subject, report.asserted) == (name("bob"), 6)


def test_the_past_cannot_be_forgotten(sail: KnowledgeBase) -> None:
    with pytest.raises(StoreError, match="the past and cannot change"):
        sail.at(1).forget(name("bob"))


def test_the_report_reads_well(sail: KnowledgeBase) -> None:
    would = str(sail.forget(name("cheese"), dry_run=True))
    assert would.startswith(f"would forget 1 asserted triple that names {name('cheese')}")
    would = str(sail.forget(name("bob"), dry_run=True))
    assert f"would forget 6 asserted triples and 4 derived facts that name {name('bob')}" in would
    done = str(sail.forget(name("bob")))
    assert done.startswith(
        f"forgot 6 asserted triples and 4 derived facts that named {name('bob')}"
    )
    assert "; `inferlake vacuum` deletes what older versions know" in done
    again = str(sail.forget(name("bob")))
    assert again.startswith(f"no fact names {name('bob')}; version {sail.version}; `inferlake vac")
    both = str(sail.forget(name("Agent"), dry_run=True))
    assert "would forget 1 asserted triple and 1 derived fact that name" in both
    mentioned = str(sail.forget(DOMAIN, dry_run=True))
    assert mentioned.startswith(f"would forget 1 asserted triple that names {DOMAIN}; rules still")
    assert "(rdfs): remove them, then forget it again (find" in mentioned
    data = sail.forget(name("bob")).as_dict()
    assert json.loads(json.dumps(data))["operation"] == "forget"


# --- rules ---------------------------------------------------------------------------------------

RULES = f"""
@prefix ex: <{EX}> .
@prefix other: <http://other.org/> .
[one] [?x, ex:likes, other:bob] :- [?x, ex:knows, ?y] .
[two] liked(?x, ?y, ?x, ?y) :- [?x, ex:likes, ?y] .
"""


@pytest.mark.slow
def test_an_iri_that_rules_mention_stays_with_them(
    load: Callable[..., KnowledgeBase], tmp_path: Path
) -> None:
    (tmp_path / "mine.dl").write_text(RULES)
    bob = "<http://other.org/bob>"
    facts = {*facts_of("alice knows carol"), (bob, name("knows"), name("dave"))}
    kb = load("kb", facts, [str(tmp_path / "mine.dl")])
    derived = {(name("alice"), name("likes"), bob), (bob, name("likes"), bob)}
    assert stored(kb, "derived") == derived

    report = kb.forget(bob)
    assert (report.asserted, report.derived, report.left) == (1, 4, 2)
    assert report.rules == (str(tmp_path / "mine.dl"),)
    assert "rules still mention it" in str(report) and "2 derived facts" in str(report)
    assert stored(kb) == stored(load("fresh", facts_of("alice knows carol"), report.rules))
    kb.vacuum(NOW)
    assert {tuple(row)[:4] for row in kb.relation("liked").collect()} == {
        (name("alice"), bob, name("alice"), bob)
    }

    (tmp_path / "other.dl").write_text(RULES.replace("other:bob", "other:carol"))
    kb.change_rules(remove=report.rules, add=str(tmp_path / "other.dl"))
    again = kb.forget(bob)
    assert (again.asserted, again.left, again.rules, again.known) == (0, 0, (), True)
    kb.vacuum(NOW)
    assert mentions(kb, "http://other.org/bob") == set()
    # The prefixed name is in the text of rules that no version has any more.
    texts_left = [file.read_text() for file in Path(kb.path, "rules").iterdir()]
    assert len(texts_left) == 1 and "other:bob" not in texts_left[0]
    assert kb.rules() == (str(tmp_path / "other.dl"),)
    assert kb.verify().ok


@on_sail
def test_rules_of_kept_versions_stay(
    load: Callable[..., KnowledgeBase], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the commit that named them is older than the oldest that is kept."""
    (tmp_path / "mine.dl").write_text(RULES)
    mine = str(tmp_path / "mine.dl")
    kb = load("kb", facts_of("alice knows carol"), ["rdfs"])
    kb.change_rules(add=mine, remove="rdfs")
    kb.forget(name("carol"))
    oldest = kb.version
    kb.change_rules(add="owl-horst", remove=mine)
    monkeypatch.setattr("inferlake.store.vacuum.oldest_within", lambda *_: oldest)
    assert kb.vacuum(NOW).terms > 0
    assert len(list(Path(kb.path, "rules").iterdir())) == 2
    assert (kb.at(oldest).rules(), kb.rules()) == ((mine,), ("owl-horst",))

    monkeypatch.undo()
    load("kb", facts_of("dave knows erin"))
    kb.forget(name("dave"))
    kb.compact()
    kb.vacuum(NOW)
    assert len(list(Path(kb.path, "rules").iterdir())) == 1
    load("kb", facts_of("Cat SUB Animal\ntom TYPE Cat"))
    assert facts_of("tom TYPE Animal") <= stored(kb, "derived")
    assert kb.verify().ok


# --- ids in dispute ------------------------------------------------------------------------------

WEAK = TermHash(3)


def alike(count: int) -> list[str]:
    """Return names that share a hash of three bits."""
    by_id: dict[int, list[str]] = {}
    for number in range(100):
        some = by_id.setdefault(WEAK.of(name(f"n{number}")), [])
        some.append(name(f"n{number}"))
        if len(some) == count:
            return some
    raise AssertionError("no such names")


@on_sail
def test_a_displaced_term_and_the_one_in_its_place_are_forgotten_apart(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a writer leaves behind when it settles a dispute is a day old by then.
    monkeypatch.setattr("inferlake.store.vacuum._UNCOMMITTED_HOURS", 0)
    first, second, third, stranger = alike(4)
    facts = {(one, name("p"), f'"{one[-3:-1]}"') for one in (first, second, third)}
    kb = load("kb", facts, "none", hash=WEAK)
    engine = kb._sessions.for_reading()
    assert len(kb._store.terms.displaced(engine).keys() & {first, second, third}) == 2

    report = kb.forget(stranger)
    assert (report.asserted, report.known) == (0, False), "only its hash is known"
    assert stored(kb) == facts

    left = set(facts)
    for gone in (second, first, third):
        assert kb.forget(gone).asserted == 1
        left -= naming(left, gone)
        assert stored(kb) == left
        assert kb.vacuum(NOW).terms >= 1
        assert mentions(kb, gone[1:-1]) == set()
        assert stored(kb) == left
    load("kb", facts, hash=WEAK)
    assert stored(kb) == facts


@on_sail
def test_a_displaced_constant_of_rules_is_not_purged(
    load: Callable[..., KnowledgeBase], tmp_path: Path
) -> None:
    first, second = alike(2)
    (tmp_path / "mine.dl").write_text(f"[?x, <{EX}is>, {second}] :- [?x, <{EX}p>, ?y] .")
    kb = load("kb", {(first, name("p"), name("o"))}, "none", hash=WEAK)
    kb.change_rules(add=str(tmp_path / "mine.dl"))
    kb.forget(first)
    kb.vacuum(NOW)
    assert stored(kb) == set()
    load("kb", facts_of("a p b"), hash=WEAK)
    assert stored(kb, "derived") == {(name("a"), name("is"), second)}


# --- writers at work -----------------------------------------------------------------------------


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, operation: str, table: str, act: Callable[[], object]
) -> None:
    """Let `act` happen just before the first commit to a table that says `operation`."""
    original, waiting = Table.commit, [act]

    def commit(self: Table, base: Snapshot, wanted: Commit) -> int:
        here = self.place.path.endswith(table) and wanted.info["operation"] == operation
        if here and waiting:
            waiting.pop()()
        return original(self, base, wanted)

    monkeypatch.setattr(Table, "commit", commit)


@on_sail
def test_a_writer_that_commits_after_the_purge_brings_its_terms_again(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the term in the dictionary, and then a vacuum took it."""
    kb = load("kb", PEOPLE, "rdfs")
    kb.forget(name("bob"))
    other = KnowledgeBase(kb.path, engine=kb.reading_engine)  # type: ignore[arg-type]
    purged: list[int] = []
    meanwhile(monkeypatch, "load", "facts", lambda: purged.append(other.vacuum(NOW).terms))
    load("kb", PEOPLE)
    assert purged and purged[0] > 0
    assert stored(kb) == stored(load("fresh", PEOPLE, "rdfs"))
    assert kb.verify().ok


@on_sail
@pytest.mark.parametrize("displaced", [False, True])
def test_a_writer_that_commits_before_the_mark_gets_its_terms_back(
    displaced: bool, load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = alike(2) if displaced else (name("alice"), name("bob"))
    fact = (second, name("p"), name("o"))
    facts = {fact, (first, name("p"), name("o"))}
    options = {"hash": WEAK} if displaced else {}
    kb = load("kb", facts, "none", **options)
    engine, store = kb._sessions.for_reading(), kb._store
    rows = kb.encoded_facts(engine=engine).collect()
    kb.forget(second)
    left = {(row.s, row.p, row.o) for row in kb.encoded_facts(engine=engine).collect()}
    (ids,) = {(row.s, row.p, row.o) for row in rows} - left

    def writer() -> None:
        """Commit the fact with the ids that it had, as one who looked them up before."""
        table = store.facts.table
        base = table.snapshot()
        values = ", ".join(f"BIGINT({id}) AS {c}" for id, c in zip(ids, "spo", strict=True))
        frame = engine.sql(f"SELECT {values}, BIGINT({base.version + 1}) AS version")
        actions = store.facts.actions(table.write(frame), "asserted")
        table.commit(base, Commit({"operation": "test"}, actions))

    meanwhile(monkeypatch, "purge", "facts", writer)
    kb.vacuum(NOW)
    assert stored(kb) == facts
    assert kb.history()[0].operation == "purge"
    load("kb", facts, **options)
    assert stored(kb) == facts, "it is known by one id only"


@on_sail
def test_a_term_added_during_the_purge_is_kept(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load("kb", PEOPLE, "none")
    kb.forget(name("bob"))
    meanwhile(monkeypatch, "purge", "terms", lambda: load("kb", facts_of("x y z")))
    kb.vacuum(NOW)
    assert facts_of("x y z") <= stored(kb)
    assert mentions(kb, f"{EX}bob") == set()


ADULTS = f"[adult] [?x, <{EX}is>, <{EX}Adult>] :- [?x, <{EX}age>, ?n], ?n >= 18 ."


@on_sail
def test_texts_that_go_while_rules_compare_them_are_looked_at_again(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No fact uses them when the purge asks, and the writer has just looked them up."""
    (tmp_path / "adults.dl").write_text(ADULTS)
    age = lambda n: f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'  # noqa: E731
    ages = {(name(who), name("age"), age(n)) for who, n in (("alice", 20), ("bob", 30))}
    kb = load("kb", ages, str(tmp_path / "adults.dl"))
    kb.forget(name("bob"))
    writers: list[KnowledgeBase] = []
    original, purging = _Purge._drop_terms, Repair.run

    def purge_drops(self: _Purge, used: Any) -> int:
        """Let a writer look its terms up first, and derive when they are gone."""
        gone: list[int] = []

        def derive(repair: Repair, *args: Any) -> Any:
            if not gone:
                gone.append(original(self, used))
            return purging(repair, *args)

        monkeypatch.setattr(Repair, "run", derive)
        writers.append(load("kb", {(name("carol"), name("age"), age(40))}))
        return gone[0]

    monkeypatch.setattr(_Purge, "_drop_terms", purge_drops)
    kb.vacuum(NOW)
    assert writers and kb.verify().ok
    adults = {s for s, p, _ in stored(kb) if p == name("is")}
    assert adults == {name("alice"), name("carol")}


@on_sail
def test_a_writer_whose_version_a_vacuum_took_starts_again(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load("kb", PEOPLE, "rdfs")
    other = KnowledgeBase(kb.path, engine=kb.reading_engine)  # type: ignore[arg-type]
    repair, overtaken = Repair.run, []

    def late(self: Repair, *args: Any) -> Any:
        if not overtaken:
            overtaken.append(True)
            other.forget(name("carol"))
            other.vacuum(NOW)
        return repair(self, *args)

    monkeypatch.setattr(Repair, "run", late)
    load("kb", facts_of("zoe knows alice\nknows RANGE Person".replace("RANGE", "SUBP")))
    assert overtaken and kb.verify().ok
    assert facts_of("zoe knows alice\nzoe met alice") <= stored(kb)


@on_sail
def test_what_another_writer_asserts_during_the_removal_goes_too(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load("kb", PEOPLE, "none")
    more = facts_of("zoe knows bob\nzoe knows alice")
    meanwhile(monkeypatch, "forget", "facts", lambda: load("kb", more))
    report = kb.forget(name("bob"))
    assert report.asserted == 7
    assert stored(kb) == {fact for fact in PEOPLE | more if name("bob") not in fact}


@on_sail
def test_a_compaction_during_the_forgetting_does_not_stop_it(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load("kb", PEOPLE, "none")
    meanwhile(monkeypatch, "compact", "facts", kb.compact)
    kb.forget(name("bob"))
    kb.vacuum(NOW)
    assert mentions(kb, f"{EX}bob") == set()


@on_sail
def test_a_purge_that_was_interrupted_is_done_again(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = load("kb", PEOPLE, "none")
    kb.forget(name("bob"))

    def die() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        meanwhile(patch, "purge", "facts", die)
        with pytest.raises(KeyboardInterrupt):
            kb.vacuum(NOW)
    assert mentions(kb, f"{EX}bob"), "its file is there, though no dictionary has it"
    kb.vacuum(NOW)
    assert mentions(kb, f"{EX}bob") == set()
    assert stored(kb) == PEOPLE - naming(PEOPLE, name("bob"))


@on_sail
def test_a_writer_that_brings_rules_of_the_past_back_finds_them_there(
    load: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.dl").write_text(RULES)
    mine = str(tmp_path / "mine.dl")
    kb = load("kb", facts_of("alice knows carol\nbob knows carol"), [mine])
    store = kb._store
    said = store.facts.table.last_said(store.snapshot(), "rules")
    kb.change_rules(add="rdfs", remove=mine)
    kb.forget(name("bob"))
    # It commits after the purge's mark, and has to keep them again.
    with monkeypatch.context() as patch:
        meanwhile(patch, "rules", "facts", lambda: kb.vacuum(NOW))
        kb.change_rules(add=mine, remove="rdfs")
    assert kb.rules() == (mine,)
    assert stored(kb, "derived") == {(name("alice"), name("likes"), "<http://other.org/bob>")}
    assert kb.verify().ok

    # It commits before the mark, and the purge gives them back.
    kb.change_rules(add="rdfs", remove=mine)
    kb.forget(name("carol"))
    table, info = store.facts.table, {"operation": "test", "rules": said}
    act = lambda: table.commit(table.snapshot(), Commit(info))  # noqa: E731  (one line is plainer)
    meanwhile(monkeypatch, "purge", "facts", act)
    kb.vacuum(NOW)
    assert kb.rules() == (mine,)
