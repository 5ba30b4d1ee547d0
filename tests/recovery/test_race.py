"""Several writers at once: every load is in the result, once, and nobody's work is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inferlake.errors import Conflict
from inferlake.kb import KnowledgeBase
from inferlake.session import Engine, Sessions
from inferlake.store import Commit, CommitRace, Store
from inferlake.store.compact import compact_facts, compact_terms
from inferlake.store.table import Snapshot, Table

from .processes import Event, Pair, assert_sound, write_numbered

_ROUNDS = 10


def race(
    pair: Pair, kb: Path, files: tuple[Path, Path], *gates: str, **command: Any
) -> list[Event]:
    """Load two files at once and return both reports.

    Before each of `gates`, in this order, the processes wait for each other.
    """
    for loader, file in zip(pair, files, strict=True):
        loader.send(kb, "load", file, gates=gates, **command)
    for loader in pair:
        loader.wait("begin")
    for gate in gates:
        for loader in pair:
            assert loader.wait("gate")["step"] == gate
        for loader in pair:
            loader.go()
    return [loader.wait("done") for loader in pair]


def facts(kb: Path) -> set[str]:
    """Return the facts of the store, each of which must be there once."""
    out = kb.with_name("exported.nt")
    KnowledgeBase(kb, engine="sail").export(out)
    lines = out.read_text().splitlines()
    assert len(lines) == len(set(lines))
    return set(lines)


# --- processes ----------------------------------------------------------------------------------


def test_two_processes_load_overlapping_files_at_once(pair: Pair, tmp_path: Path) -> None:
    kb, one, other = tmp_path / "kb", tmp_path / "one.nt", tmp_path / "other.nt"
    expected: set[str] = set()
    for number in range(_ROUNDS):
        start = 2000 * number
        expected |= write_numbered(one, range(start, start + 2000))
        expected |= write_numbered(other, range(start + 1000, start + 3000))

        reports = race(pair, kb, (one, other))

        versions = {2 * number + 1, 2 * number + 2}
        assert {report["version"] for report in reports} == versions
        history = KnowledgeBase(kb, engine="sail").history()
        added = {info.version: info.info["added"] for info in history if info.version in versions}
        assert added == {report["version"]: report["added"] for report in reports}
        assert sum(info.info.get("added", 0) for info in history) == len(expected)
    assert facts(kb) == expected
    assert_sound(kb)


def test_of_two_commits_from_one_version_the_later_is_done_again(
    pair: Pair, tmp_path: Path
) -> None:
    kb, one, other = tmp_path / "kb", tmp_path / "one.nt", tmp_path / "other.nt"
    write_numbered(one, range(5))
    KnowledgeBase(kb, engine="sail").load(one)
    left = write_numbered(one, range(700))
    right = write_numbered(other, range(300, 1000))

    reports = race(pair, kb, (one, other), "commit terms", "commit facts")

    lost = sorted(step for report in reports for step in report["races"])
    assert lost == ["commit facts", "commit terms"]
    assert {report["version"] for report in reports} == {2, 3}
    assert sum(report["added"] for report in reports) == len(left | right) - 5
    assert facts(kb) == left | right
    assert_sound(kb)


@pytest.mark.parametrize(
    "gates",
    [(), ("create terms",), ("create facts",), ("create terms", "create facts", "commit terms")],
    ids=["free", "terms", "facts", "all"],
)
def test_two_processes_create_one_store(gates: tuple[str, ...], pair: Pair, tmp_path: Path) -> None:
    kb, one, other = tmp_path / "kb", tmp_path / "one.nt", tmp_path / "other.nt"
    expected = write_numbered(one, range(100)) | write_numbered(other, range(50, 150))
    reports = race(pair, kb, (one, other), *gates)
    assert {report["version"] for report in reports} == {1, 2}
    operations = [info.operation for info in KnowledgeBase(kb, engine="sail").history()]
    assert operations == ["load", "load", "create"]
    assert facts(kb) == expected
    assert_sound(kb)


def test_of_two_equal_batches_at_once_one_is_applied(pair: Pair, tmp_path: Path) -> None:
    kb, file = tmp_path / "kb", tmp_path / "batch.nt"
    write_numbered(file, range(5))
    KnowledgeBase(kb, engine="sail").load(file)
    expected = write_numbered(file, range(100))

    reports = race(pair, kb, (file, file), "commit facts", transaction=["app", 7])

    outcomes = sorted((report["repeated"], report["added"]) for report in reports)
    assert outcomes == [(False, 95), (True, 0)]
    assert KnowledgeBase(kb, engine="sail").version == 2
    assert facts(kb) == expected
    assert_sound(kb)


# --- in one process -----------------------------------------------------------------------------


@pytest.fixture
def sail() -> Engine:
    return Sessions("sail").for_reading()


@pytest.fixture
def loaded(tmp_path: Path) -> KnowledgeBase:
    """A store of two loads, so that there is something to compact."""
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    for numbers in (range(100), range(80, 200)):
        write_numbered(tmp_path / "some.nt", numbers)
        kb.load(tmp_path / "some.nt")
    return kb


def _log(table: Table) -> dict[str, bytes]:
    folder = Path(table.place.path) / "_delta_log"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["facts", "terms"])
def test_a_commit_from_a_version_of_the_past_changes_nothing(
    name: str, loaded: KnowledgeBase, tmp_path: Path
) -> None:
    store = Store.at(loaded.path)
    table = store.facts.table if name == "facts" else store.terms.table
    past = table.snapshot()
    write_numbered(tmp_path / "more.nt", range(200, 210))
    loaded.load(tmp_path / "more.nt")
    before, expected = _log(table), facts(Path(loaded.path))
    for commit in (
        Commit({"operation": "test"}),
        Commit({"operation": "test"}, remove=past.files),
        Commit({"operation": "test"}, transactions={"app": 1}),
    ):
        with pytest.raises(CommitRace):
            table.commit(past, commit)
    assert _log(table) == before
    assert facts(Path(loaded.path)) == expected


def _meanwhile(monkeypatch: pytest.MonkeyPatch, operation: str, act: Callable[[], object]) -> None:
    """Let `act` happen just before the first commit that says `operation`."""
    original = Table.commit
    waiting = [act]

    def commit(table: Table, base: Snapshot, wanted: Commit) -> int:
        if wanted.info["operation"] == operation and waiting:
            waiting.pop()()
        return original(table, base, wanted)

    monkeypatch.setattr(Table, "commit", commit)


def test_a_load_during_a_compaction_is_kept(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = facts(Path(loaded.path)) | write_numbered(tmp_path / "more.nt", range(150, 260))
    _meanwhile(monkeypatch, "compact", lambda: loaded.load(tmp_path / "more.nt"))
    report = loaded.compact()
    operations = [info.operation for info in loaded.history()]
    assert operations == ["compact", "load", "load", "load", "create"]
    assert report.version == loaded.version == 4
    assert facts(Path(loaded.path)) == expected
    assert_sound(Path(loaded.path))


def test_a_removal_during_a_compaction_stays_removed(
    loaded: KnowledgeBase, tmp_path: Path, sail: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.at(loaded.path)
    gone = write_numbered(tmp_path / "gone.nt", range(30))
    KnowledgeBase(tmp_path / "gone", engine="sail").load(tmp_path / "gone.nt")
    doomed = KnowledgeBase(tmp_path / "gone", engine="sail").encoded_facts().drop("layer")
    expected = facts(Path(loaded.path)) - gone

    def remove() -> None:
        base = store.facts.table.snapshot()
        rows = doomed.selectExpr("*", f"BIGINT({base.version + 1}) AS version")
        actions = store.facts.actions(store.facts.table.write(rows), "asserted", sign=-1)
        store.facts.table.commit(base, Commit({"operation": "remove"}, actions))

    _meanwhile(monkeypatch, "compact", remove)
    compact_facts(sail, store.facts, lambda base: {})
    assert facts(Path(loaded.path)) == expected
    loaded.compact()
    assert facts(Path(loaded.path)) == expected
    assert {file.partition["sign"] for file in store.snapshot().files} == {1}


@pytest.mark.parametrize("name", ["facts", "terms"])
def test_of_two_compactions_at_once_the_later_gives_up(
    name: str, loaded: KnowledgeBase, sail: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.at(loaded.path)
    expected = facts(Path(loaded.path))

    def compact() -> None:
        if name == "facts":
            compact_facts(sail, store.facts, lambda base: {})
        else:
            compact_terms(sail, store.terms)

    _meanwhile(monkeypatch, "compact", compact)
    with pytest.raises(Conflict, match="nothing is lost"):
        compact()
    assert facts(Path(loaded.path)) == expected
    assert_sound(Path(loaded.path))
    table = store.facts.table if name == "facts" else store.terms.table
    assert len(table.snapshot().files) == 1


# --- batches of an application ------------------------------------------------------------------


def test_a_batch_is_applied_once(tmp_path: Path) -> None:
    kb, file = KnowledgeBase(tmp_path / "kb", engine="sail"), tmp_path / "batch.nt"

    def load(numbers: range, transaction: tuple[str, int] | None) -> tuple[bool, int, int]:
        write_numbered(file, numbers)
        report = kb.load(file, transaction=transaction)
        return report.repeated, report.added, report.version

    assert load(range(10), ("app", 7)) == (False, 10, 1)
    assert load(range(10), ("app", 7)) == (True, 0, 1)
    assert load(range(20), ("app", 7)) == (True, 0, 1)
    assert load(range(20), ("app", 6)) == (True, 0, 1)
    assert load(range(20), ("app", 8)) == (False, 10, 2)
    assert load(range(30), ("another app", 1)) == (False, 10, 3)
    assert load(range(40), None) == (False, 10, 4)
    assert load(range(50), ("app", 8)) == (True, 0, 4)
    kb.compact()
    assert load(range(50), ("app", 8)) == (True, 0, 5)
    assert kb.stats().asserted == 40
