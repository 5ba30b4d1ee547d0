"""Facts that expire, by example. Every step is compared with a plain model, its times included."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from inferlake.errors import InputError
from inferlake.evaluate.queries import Queries
from inferlake.input import InputFile, discover, stamped
from inferlake.kb import KnowledgeBase
from inferlake.maintain import Change, Source, Window, apply
from inferlake.maintain.windows import WindowRepair
from inferlake.plan.compile import Options
from inferlake.progress import Silent
from inferlake.rules.load import RuleText, read_rules
from inferlake.session import Engine
from inferlake.store import Commit, Store
from inferlake.store.store import DEPTH
from inferlake.store.until import FOREVER, is_until
from tests.property.windowing import Triple, Windowed

PREFIXES = "@prefix : <e:> .\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
SAME = "<http://www.w3.org/2002/07/owl#sameAs>"

only_sail = pytest.mark.parametrize("engine", ["sail"], indirect=True)

COPIES = "[copy] [?x, :q, ?y] :- [?x, :p, ?y] ."


def store(engine: Engine, folder: Path, rules: str, options: Options | None = None) -> Windowed:
    """Return an empty store with rules, or with a profile's."""
    texts = [RuleText("mine.dl", PREFIXES + rules)] if "[" in rules else list(read_rules([rules]))
    made = Windowed(engine, folder, texts, options or Options())
    made.load([])
    return made


def t(words: str) -> Triple:
    """Return a triple of short names."""
    s, p, o = (word if word.startswith("<") else f"<e:{word}>" for word in words.split())
    return s, p, o


LONG_WAY = "[way] [?x, :to, ?z] :- [?x, :to, ?y], [?y, :p, ?z] ."


@only_sail
def test_a_version_says_how_deep_it_is_beside_a_window(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, LONG_WAY)
    made.update(stream={t("x q y"): 0}, window=10)
    made.update(add=[t("s to n0"), *(t(f"n{n} p n{n + 1}") for n in range(6))])
    table = Store.at(made.kb.path).facts.table
    assert table.last_said(table.snapshot(), DEPTH) == 7
    made.update(add=[t("a b c")])
    assert table.last_said(table.snapshot(), DEPTH) == 7
    made.update(remove=[t("n2 p n3")], algorithm="rebuild")
    assert table.last_said(table.snapshot(), DEPTH) == 3


@only_sail
def test_a_change_beside_a_window_that_is_ended_leaves_no_files(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store(engine, tmp_path, COPIES)
    made.update(stream={t("a p b"): 0}, window=5)
    facts = Path(made.kb.path, "facts")
    there = set(facts.rglob("*.parquet"))

    def ended(*_: object) -> None:
        assert set(facts.rglob("*.parquet")) > there
        raise KeyboardInterrupt

    monkeypatch.setattr(WindowRepair, "_repaired", ended)
    with pytest.raises(KeyboardInterrupt):
        made.update(add=[t("c p d")])
    assert set(facts.rglob("*.parquet")) == there


def test_what_is_asserted_and_follows_for_longer_becomes_derived(
    engine: Engine, tmp_path: Path
) -> None:
    made = store(engine, tmp_path, COPIES)
    made.update(stream={t("a q b"): 0}, window=5)
    made.update(stream={t("a p b"): 0}, window=10)
    assert made.facts("asserted") == {t("a q b"), t("a p b")}
    report = made.expire(5)
    assert report.expired == 0
    assert made.facts("derived") == {t("a q b")}
    assert made.expire(10).expired == 2
    assert made.facts("all") == set()


@only_sail
def test_what_is_asserted_for_longer_than_it_follows_stays_asserted(
    engine: Engine, tmp_path: Path
) -> None:
    made = store(engine, tmp_path, COPIES)
    made.update(stream={t("a q b"): 5, t("a p b"): 0}, window=5)
    made.expire(5)
    assert made.facts("asserted") == {t("a q b")}
    assert made.expire(9).expired == 0
    assert made.expire(10).expired == 1


@only_sail
def test_what_follows_for_ever_stays_when_its_assertion_ends(
    engine: Engine, tmp_path: Path
) -> None:
    made = store(engine, tmp_path, COPIES)
    made.load([t("a p b")])
    made.update(stream={t("a q b"): 0}, window=5)
    assert made.times("triple") == {t("a q b"): (5, FOREVER)}
    made.expire(5)
    assert made.facts("derived") == {t("a q b")}
    assert made.times("triple") == {}


@only_sail
def test_a_path_stands_until_its_first_edge_goes(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "[path] [?x, :p, ?z] :- [?x, :p, ?y], [?y, :p, ?z] .")
    made.load([t("a p b"), t("c p d")])
    made.update(stream={t("b p c"): 0, t("d p e"): 7}, window=10)
    assert made.times("triple")[t("a p e")] == (None, 10)
    # Another way round, for longer: the path stands until the last way ends.
    made.update(stream={t("b p x"): 20, t("x p c"): 25}, window=10)
    assert made.times("triple")[t("a p d")] == (None, 30)
    made.expire(10)
    made.expire(17)
    made.expire(30)
    assert made.facts("all") == {t("a p b"), t("c p d"), t("x p c"), t("x p d")}


@pytest.mark.parametrize("planned", [True, False])
@only_sail
def test_facts_that_support_each_other_expire(
    engine: Engine, tmp_path: Path, planned: bool
) -> None:
    rules = """[back] [?y, :p, ?x] :- [?x, :p, ?y] .
    [path] [?x, :p, ?z] :- [?x, :p, ?y], [?y, :p, ?z] ."""
    made = store(engine, tmp_path, rules, Options(specialised=planned, lean=planned))
    made.load([t("a p b")])
    made.update(stream={t("b p c"): 0, t("c p d"): 5, t("d p b"): 9}, window=10)
    for time in (10, 15, 19):
        made.expire(time)
    assert made.facts("asserted") == {t("a p b")}


@only_sail
def test_relations_of_any_width(engine: Engine, tmp_path: Path) -> None:
    rules = """[one] node(?x) :- [?x, :p, ?y] .
    [two] edge(?x, ?y) :- [?x, :p, ?y], node(?y) .
    [four] wide(?x, ?y, ?z, ?w) :- edge(?x, ?y), edge(?z, ?w) .
    [back] [?x, :far, ?w] :- wide(?x, ?y, ?y, ?w) ."""
    made = store(engine, tmp_path, rules)
    made.load([t("a p b")])
    made.update(stream={t("b p c"): 0, t("c p d"): 3}, window=10)
    assert made.times("node") == {("<e:b>",): (None, 10), ("<e:c>",): (None, 13)}
    made.update(stream={t("b p c"): 9}, window=10, remove=[t("c p d")])
    made.kb.compact()
    made.expire(19)
    made.update(remove=[t("a p b")])
    assert made.facts("all") == set()


@only_sail
def test_same_as_expires(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "owl-horst")
    made.load([t("a p b"), t("c q d")])
    made.update(stream={t(f"a {SAME} x"): 0, t(f"x {SAME} c"): 4}, window=10)
    assert t("x q d") in made.facts("derived")
    made.expire(10)
    assert t("a q d") not in made.facts("all")
    made.expire(14)
    assert made.facts("asserted") == {t("a p b"), t("c q d")}


def test_schema_may_expire(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "rdfs")
    made.load([t(f"a {TYPE} C"), t(f"D {SUB} E")])
    made.update(stream={t(f"C {SUB} D"): 0, t(f"b {TYPE} D"): 6}, window=10)
    assert made.times("triple")[t(f"a {TYPE} E")] == (None, 10)
    made.update(stream={t(f"b {TYPE} C"): 7}, window=10, now=8)
    made.expire(10)
    assert t(f"a {TYPE} D") not in made.facts("all")
    assert t(f"b {TYPE} E") in made.facts("derived")
    # Once it is background, it never goes; nor does what followed from it.
    made.update(stream={t(f"C {SUB} D"): 10}, window=10)
    made.load([t(f"C {SUB} D")])
    made.expire(100)
    assert made.facts("derived") >= {t(f"a {TYPE} E"), t(f"a {TYPE} D")}


@only_sail
def test_new_schema_for_ever_meets_what_expires(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "rdfs")
    made.load([t("x q y")])
    made.update(stream={t("a p b"): 0}, window=10)
    made.load([t("p <http://www.w3.org/2000/01/rdf-schema#domain> C")])
    assert made.times("triple")[t(f"a {TYPE} C")] == (None, 10)
    made.expire(10)


@only_sail
def test_again_late_and_for_ever(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, COPIES)
    report = made.update(stream={t("a p b"): 0}, window=10)
    assert (report.added, report.late, report.clock) == (1, 0, None)
    assert made.update(stream={t("a p b"): 7}, window=10).added == 0
    assert made.update(stream={t("a p b"): 3}, window=10).derived == 0
    assert made.times("triple")[t("a q b")] == (None, 17)
    made.expire(12)
    report = made.update(stream={t("a p b"): 1, t("c p d"): 2, t("e p f"): 9}, window=10)
    assert (report.added, report.late) == (1, 2)
    # The clock never goes back, and to be told an earlier time changes nothing.
    version = made.kb.version
    assert made.expire(3).clock == 12
    assert made.kb.version == version
    made.load([t("a p b")])
    made.update(stream={t("a p b"): 20}, window=10, now=19)
    made.expire(1000)
    assert made.facts("all") == {t("a p b"), t("a q b")}


@only_sail
def test_removals_and_rules_within_a_window(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "[path] [?x, :p, ?z] :- [?x, :p, ?y], [?y, :p, ?z] .")
    made.load([t("a p b"), t("b p c")])
    made.update(stream={t("b p c"): 0, t("c p d"): 0, t("a p c"): 5}, window=10)
    report = made.update(remove=[t("b p c")])
    assert (report.removed, report.algorithm) == (1, "rebuild")  # one of two that never expire
    report = made.update(remove=[t("c p d"), t("x p y")])
    assert (report.removed, report.not_asserted, report.algorithm) == (1, 1, "window")
    # What is removed and comes again with a time has that time, whatever it had before.
    made.update(remove=[t("a p b")], stream={t("a p b"): 1, t("c p d"): 1}, window=10)
    assert made.times("triple")[t("a p b")] == (11, 11)
    made.update(rules=[RuleText("other.dl", PREFIXES + COPIES)], now=3)
    made.update(rules=made.texts * 1 + list(read_rules(["rdfs"])), remove=[t("a p c")])
    made.expire(11)
    assert made.facts("all") == set()


@only_sail
def test_forget_takes_times_too(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, COPIES)
    made.load([t("a p b")])
    made.update(stream={t("a p c"): 0, t("d p e"): 0}, window=10)
    made.kb.forget("e:a")
    assert set(made.times("triple")) == {t("d p e"), t("d q e")}
    assert made.kb.verify().ok
    made.kb.vacuum(timedelta(0))
    assert made.kb.expire(10).expired == 2


@only_sail
def test_expiry_runs_no_rule(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store(engine, tmp_path, "owl-horst")
    made.load([t(f"C {SUB} D")])
    made.update(stream={t(f"a {TYPE} C"): 0, t(f"b {TYPE} D"): 5}, window=10)

    def refused(*_: object) -> None:
        raise AssertionError("a query of the rules")

    with monkeypatch.context() as patched:
        patched.setattr(Queries, "result", refused)
        patched.setattr(Queries, "_frame", refused)
        report = made.kb.expire(12)
    assert (report.expired, report.rounds, report.withdrawn) == (2, (), 0)
    made.advance(12)
    made.check(report)


@only_sail
def test_one_version_for_all_and_exactly_once(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, COPIES)
    made.update(stream={t("a p b"): 0, t("c p d"): 3}, window=10)
    version = made.kb.version
    made.update(stream={t("e p f"): 8}, window=10, remove=[t("c p d")], now=10)
    assert made.kb.version == version + 1
    again = made.frame({t("g p h"): 9})
    batch: dict = {"add": again, "time_column": "time", "window": timedelta(milliseconds=10)}
    first = made.kb.update(**batch, now=11, transaction=("stream", 1))
    second = made.kb.update(**batch, now=500, transaction=("stream", 1))
    assert (first.clock, second.repeated, second.version) == (11, True, first.version)
    assert made.kb.stats().clock == 11
    assert made.kb.expire(600, transaction=("stream", 1)).repeated
    assert made.kb.stats().clock == 11
    assert made.kb.expire(600, transaction=("stream", 2)).expired == 4
    told = made.kb.history()[0]
    assert (told.operation, told.info["clock"], told.info["expired"]) == ("expire", 600, 4)
    # The clock outlives the last fact that expires: what is late stays late.
    late = made.kb.update(**batch)
    assert (late.late, late.added, made.facts("all")) == (1, 0, set())


@only_sail
def test_the_past_the_difference_and_files_written_anew(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, COPIES)
    made.load([t("a p b")])
    made.update(stream={t("c p d"): 0, t("e p f"): 5}, window=10)
    before = made.kb.version
    made.expire(10)
    told = {(row.change, row.subject, row.predicate) for row in made.kb.changes()}
    assert told == {("removed", "<e:c>", "<e:p>"), ("removed", "<e:c>", "<e:q>")}
    past = made.kb.at(before)
    assert {row.until for row in past.expiring().collect()} == {10, 15}
    assert past.stats().clock is None and past.verify().ok
    made.kb.compact()
    snapshot = made.kb._store.snapshot()
    signs = {int(f.partition["sign"]) for f in snapshot.files if is_until(f.partition["relation"])}
    assert signs == {1}
    made.update(stream={t("g p h"): 12}, window=10)
    made.expire(15)
    made.kb.compact()
    made.expire(22)
    made.kb.compact()
    # Nothing expires any more, and nothing is left to pay for.
    assert not any(is_until(f.partition["relation"]) for f in made.kb._store.snapshot().files)


@only_sail
def test_verify_finds_wrong_times(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, COPIES)
    made.update(stream={t("a p b"): 0}, window=10)
    assert made.kb.verify().ok
    store_ = made.kb._store
    snapshot = store_.snapshot()
    # What a mistake of ours would do.
    derived = store_.facts.files(snapshot, "derived", 1, relation="triple until")
    store_.facts.table.commit(snapshot, Commit({"operation": "sabotage"}, remove=derived))
    (difference,) = made.kb.verify().differences
    assert (difference.kind, difference.count) == ("without the right time", 1)


@only_sail
def test_contradictions_within_a_window(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "[never] false :- [?x, :p, ?y], [?x, :q, ?y] .")
    made.load([t("a p b")])
    report = made.update(stream={t("a q b"): 0}, window=5)
    assert len(report.contradictions) == 1
    assert not made.update(stream={t("c q b"): 0}, window=9, now=5).contradictions


@only_sail
def test_only_what_a_window_can_meet_is_read(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "rdfs")
    kb = made.kb
    for number in range(4):  # a file for each predicate
        file = tmp_path / f"{number}.nt"
        lines = (f"<e:s{n}> <e:p{number}> <e:o{n}> .\n" for n in range(2_000))
        file.write_text("".join(lines))
        kb.load(file)
    file = tmp_path / "schema.nt"
    file.write_text(f"<e:p9> {SUB.replace('Class', 'Property')} <e:p8> .\n")
    kb.load(file)
    report = kb.update(
        add=made.frame({t("a p9 b"): 0}), time_column="time", window=timedelta(milliseconds=5)
    )
    assert (report.added, report.derived) == (1, 1)
    assert report.rows_read < 10 and report.rows_stored > 8_000
    assert kb.expire(5).rows_read == 2


@only_sail
def test_times_by_column_and_by_argument(engine: Engine, tmp_path: Path) -> None:
    kb = store(engine, tmp_path, "none").kb
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    columns = {"subject": ["<e:a>", "<e:a>"], "predicate": ["<e:p>"] * 2, "object": ["<e:b>"] * 2}
    table = pa.table({**columns, "when": pa.array([noon, noon + timedelta(seconds=5)])})
    table = table.set_column(3, "when", table.column("when").cast(pa.timestamp("us", "UTC")))
    frame = engine.session.createDataFrame(table)
    kb.update(add=frame, time_column="when", window=timedelta(minutes=1))
    (row,) = kb.expiring().collect()
    start = int(noon.timestamp() * 1000)
    assert (row.asserted_until, row.until) == (start + 65_000, start + 65_000)
    file = tmp_path / "x.nt"
    file.write_text("<e:c> <e:p> <e:d> .\n")
    kb.update(add=file, window=timedelta(minutes=1), at=noon)
    assert kb.expire(noon + timedelta(minutes=1)).expired == 1
    patch = tmp_path / "x.rdfp"
    patch.write_text("D <e:a> <e:p> <e:b> .\nA <e:e> <e:p> <e:f> .\nA <e:a> <e:p> <e:b> .\n")
    kb.update(patch=patch, window=timedelta(seconds=1), at=noon + timedelta(seconds=61))
    assert {row.until for row in kb.expiring().collect()} == {start + 62_000}
    assert "2026-01-01 12:01:02.000 UTC" in str(kb.expire(noon + timedelta(seconds=62)))


@only_sail
def test_lines_with_times_of_their_own(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, COPIES)
    quads, patch = tmp_path / "x.nq", tmp_path / "x.rdfp"
    lines = [(b"<e:a> <e:p> <e:b> .", 3), (b"<e:a> <e:p> <e:b> .", 7), (b"<e:c> <e:p> <e:d> .", 1)]
    lines += [(b'<e:e> <e:p> "f" <e:g> .', 1)]
    quads.write_bytes(b"".join(stamped(*line) + b"\n" for line in lines))
    patch.write_bytes(stamped(b"A <e:g> <e:p> <e:h> .", 9) + b"\nA <e:i> <e:p> <e:j> .\n")

    def timed(files: tuple[InputFile, ...]) -> Source:
        return Source(tuple(replace(file, stamped=True) for file in files))

    change = Change(
        add=timed(discover([str(quads)])),
        patch=timed(discover([str(patch)], changes=True)),
        operation="update",
        window=Window(10, at=1),
        clock=2,
    )
    report = apply(made.kb._store, engine, change, Silent())
    assert (report.added, report.graphs_dropped, report.clock) == (5, 0, 2)
    ends = {row.subject: row.until for row in made.kb.expiring().collect()}
    assert ends == {"<e:a>": 17, "<e:c>": 11, "<e:e>": 11, "<e:g>": 19, "<e:i>": 11}
    assert made.kb.verify().ok


@only_sail
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": 5}, "with a window only"),
        ({"window": timedelta(0)}, "of a millisecond or more"),
        ({"window": 5}, "of a millisecond or more"),
        ({"window": timedelta(1), "at": datetime(2026, 1, 1)}, "no time zone"),
        ({"window": timedelta(1), "at": "noon"}, "is no time"),
        ({"window": timedelta(1), "time_column": "time", "at": 1}, "a time_column is that of"),
        ({"window": timedelta(1), "time_column": "other"}, "has no column other"),
        ({"window": timedelta(1), "time_column": "subject"}, "is string, not a time"),
    ],
)
def test_wrong_times_are_refused(
    engine: Engine, tmp_path: Path, options: dict, message: str
) -> None:
    made = store(engine, tmp_path, "none")
    version = made.kb.version
    with pytest.raises(InputError, match=message):
        made.kb.update(add=made.frame({t("a p b"): 0}), **options)
    assert made.kb.version == version


@only_sail
def test_events_without_a_time_are_bad_statements(engine: Engine, tmp_path: Path) -> None:
    made = store(engine, tmp_path, "none")
    names = ("subject", "predicate", "object", "time")
    rows = [("<e:a>", "<e:p>", "<e:b>", 1), ("<e:c>", "<e:p>", "<e:d>", None)]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    frame = engine.session.createDataFrame(pa.table(columns))
    options: dict = {"add": frame, "time_column": "time", "window": timedelta(1)}
    with pytest.raises(InputError, match="no time of the event"):
        made.kb.update(**options)
    report = made.kb.update(**options, on_error="skip")
    assert (report.added, report.bad_count, report.graphs_dropped) == (1, 1, 0)


def test_a_store_without_windows_has_nothing_of_them(kb: KnowledgeBase, tmp_path: Path) -> None:
    file = tmp_path / "x.nt"
    file.write_text("<e:c> <e:p> <e:d> .\n")
    kb.load(file)
    kb.update(remove=file)
    assert not any(is_until(f.partition["relation"]) for f in kb._store.snapshot().files)
    assert kb.stats().clock is None and "clock" not in kb.stats().as_dict()
    assert all("clock" not in one.info for one in kb.history())
    assert kb.expiring().collect() == []
