"""The newest version of a table is remembered: nobody must be shown, or build on, an older one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from inferlake.errors import StoreError
from inferlake.paths import place
from inferlake.store import table as table_module
from inferlake.store.table import Commit, CommitRace, Snapshot, Table, add_action

SCHEMA = Schema([Field("id", PrimitiveType("long")), Field("part", PrimitiveType("integer"))])

_ELSEWHERE = """
import sys
from pathlib import Path
from tests.unit.store.test_table import says, table_at
table = table_at(Path(sys.argv[1]))
table.commit(table.snapshot(), says("elsewhere"))
"""


def table_at(folder: Path) -> Table:
    return Table(place(str(folder)), SCHEMA, ("part",))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An empty table: version 0."""
    made = table_at(tmp_path / "table")
    made.create("first")
    return made


def says(name: str) -> Commit:
    """Return a commit that changes nothing and can be found again."""
    return Commit({"operation": name})


def operations(table: Table) -> list[str]:
    """Return what the log says was done, oldest first."""
    return [entry["inferlake"]["operation"] for entry in reversed(table.history())]


def test_commits_since_the_newest_known_are_told_at_once(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not until nobody commits: in a long log that may never be."""
    for number in range(1, 4):
        table.commit(table.snapshot(), says(f"{number}"))
    known = DeltaTable(table.place.address)
    for number in range(4, 6):
        table.commit(table.snapshot(), says(f"{number}"))
    stale = replace(table.snapshot(), _table=known)
    monkeypatch.setattr(Table, "_newest", lambda self: stale)
    for most in (1, 3, 100, None):
        told = [(one["version"], one["inferlake"]["operation"]) for one in table.history(most)]
        whole = [(number, f"{number}" if number else "create") for number in range(5, -1, -1)]
        assert told == whole[:most]


def commit_elsewhere(table: Table) -> None:
    """Commit in another process."""
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", _ELSEWHERE, table.place.path], check=True, cwd=root)


def commit_beside(table: Table, add: tuple = (), remove: tuple = ()) -> None:
    """Commit past what this process remembers, but without another process."""
    Table.commit(table, table._opened(None), Commit({"operation": "beside"}, add, remove))


# --- What is seen --------------------------------------------------------------------------------


def test_a_version_is_read_once_while_the_log_stays(table: Table) -> None:
    assert table.snapshot() is table.snapshot()
    assert table.snapshot() is table_at(Path(table.place.path)).snapshot()


def test_a_commit_of_another_process_is_seen(table: Table) -> None:
    before = table.snapshot()
    commit_elsewhere(table)
    assert table.snapshot().version == 1
    assert operations(table) == ["create", "elsewhere"]
    with pytest.raises(CommitRace):
        table.commit(before, says("late"))
    assert table.commit(table.snapshot(), says("then")) == 2


@pytest.mark.parametrize("commits", [0, 1, 3], ids=["shorter", "as-long", "longer"])
def test_a_table_deleted_and_created_again_is_seen(table: Table, commits: int) -> None:
    table.commit(table.snapshot(), says("old"))
    old = table.snapshot()
    assert (old.version, old.description) == (1, "first")
    shutil.rmtree(table.place.path)
    time.sleep(0.01)  # file systems keep time in steps
    another = table_at(Path(table.place.path))
    another.create("second")
    for number in range(commits):
        commit_beside(another)
        assert another._opened(None).version == number + 1
    found = table.snapshot()
    assert (found.version, found.description) == (commits, "second")
    assert table.last_said(found, "operation") == ("beside" if commits else "create")
    assert table.commit(found, says("new")) == commits + 1


def test_a_table_that_is_deleted_is_not_there(table: Table) -> None:
    table.snapshot()
    assert table.exists()
    shutil.rmtree(table.place.path)
    assert not table.exists()
    with pytest.raises(StoreError, match="no table there"):
        table.snapshot()


def test_a_log_that_is_followed_tells_what_one_opened_anew_does(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_module, "_CHECKPOINT_EVERY", 4)
    table.snapshot()
    for number in range(12):
        written = table.write_table(pa.table({"id": pa.array([number, 100], pa.int64())}))
        add = tuple(add_action(file, columns=("id",), part=number % 3) for file in written)
        there = table._opened(None).files
        commit_beside(table, add, there[::2] if number % 4 == 3 else ())
        if number % 3 == 1:  # several entries at once, too
            continue
        found, anew = table.snapshot(), table._opened(None)
        assert found.version == number + 1
        assert sorted(found.files, key=repr) == sorted(anew.files, key=repr)
        assert table.last_said(found, "operation") == "beside"


def test_more_tables_than_are_remembered(tmp_path: Path) -> None:
    tables = [table_at(tmp_path / f"{n}") for n in range(table_module._TABLES_KEPT + 3)]
    for number, one in enumerate(tables):
        one.create(f"{number}")
    for _ in range(2):
        assert [one.snapshot().description for one in tables] == [
            f"{n}" for n, _ in enumerate(tables)
        ]
        assert len(table_module._NEWEST) <= table_module._TABLES_KEPT


# --- What is built upon --------------------------------------------------------------------------


def test_nothing_is_committed_upon_a_version_of_long_ago(table: Table) -> None:
    long_ago = table.snapshot()
    for number in range(3):
        table.commit(table.snapshot(), says(f"{number}"))
        table.snapshot()
    for past in (long_ago, table.snapshot(0), table.snapshot(2)):
        with pytest.raises(CommitRace):
            table.commit(past, says("late"))
    assert operations(table) == ["create", "0", "1", "2"]


def test_of_two_commits_upon_one_snapshot_the_second_fails(table: Table) -> None:
    base = table.snapshot()
    assert table.commit(base, says("one")) == 1
    with pytest.raises(CommitRace):
        table.commit(base, says("two"))
    assert operations(table) == ["create", "one"]


def test_what_a_snapshot_says_stays_when_the_log_grows(table: Table) -> None:
    base = table.snapshot()
    table.commit(base, Commit({"operation": "one", "colour": "red"}, transactions={"app": 1}))
    one = table.snapshot()
    assert one.transaction("app") == 1
    table.commit(one, Commit({"operation": "two", "colour": "blue"}, transactions={"app": 2}))
    assert table.snapshot().transaction("app") == 2
    assert one.transaction("app") == 1
    assert table.last_said(one, "colour") == "red"
    assert table.last_said(base, "colour") is None


# --- Threads -------------------------------------------------------------------------------------


def test_threads_commit_each_of_their_commits_once(table: Table) -> None:
    each, threads = 15, 4
    start = threading.Barrier(threads)

    def work(thread: int) -> dict[int, str]:
        landed = {}
        start.wait()
        for number in range(each):
            name = f"{thread}-{number}"
            while True:
                try:
                    landed[table.commit(table.snapshot(), says(name))] = name
                    break
                except CommitRace:
                    continue
        return landed

    with ThreadPoolExecutor(threads) as pool:
        told = [pair for landed in pool.map(work, range(threads)) for pair in landed.items()]
    found = dict(enumerate(operations(table)))
    assert found.pop(0) == "create"
    assert len(told) == each * threads
    assert dict(told) == found


def test_of_threads_that_commit_upon_the_same_snapshot_one_succeeds(table: Table) -> None:
    def work(base: Snapshot, start: threading.Barrier, name: str) -> str | None:
        start.wait()
        try:
            table.commit(base, says(name))
        except CommitRace:
            return None
        return name

    for turn in range(10):
        base, start = table.snapshot(), threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            told = pool.map(partial(work, base, start), [f"{turn}-one", f"{turn}-other"])
            landed = [name for name in told if name is not None]
        assert len(landed) == 1
        assert operations(table)[base.version + 1 :] == landed


def test_the_log_grows_and_another_thread_follows_it_just_before_a_commit(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots of one process share what deltalake knows of the log, and must not be swapped."""
    written = DeltaTable.create_write_transaction

    def late(self: DeltaTable, *arguments, **options) -> None:
        monkeypatch.setattr(DeltaTable, "create_write_transaction", written)
        DeltaTable(table.place.address).create_write_transaction([], "append", SCHEMA, ["part"])
        follower = threading.Thread(target=table.snapshot)
        follower.start()
        follower.join(0.3)  # it may have to wait until we are done
        written(self, *arguments, **options)

    base = table.snapshot()
    monkeypatch.setattr(DeltaTable, "create_write_transaction", late)
    with pytest.raises(CommitRace):
        table.commit(base, says("late"))
    assert table.snapshot().version == 1


def test_a_damaged_log_is_told_in_one_line(table: Table) -> None:
    table.commit(table.snapshot(), says("once"))
    Path(table.place.path, "_delta_log", f"{2:020}.json").write_text("garbage\n")
    with pytest.raises(StoreError, match=r"/table: cannot be read: .*restore it from") as caught:
        table.snapshot()
    assert len(str(caught.value).splitlines()) == 1
