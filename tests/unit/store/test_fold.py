"""Which files a fold takes together: by versions and sizes alone, without any engine."""

from __future__ import annotations

from inferlake.store.fold import due_run
from inferlake.store.table import LiveFile


def _file(name: str, first: int, last: int, rows: int = 10) -> LiveFile:
    return LiveFile(name, 1, rows, {"sign": 1}, {"version": first}, {"version": last})


def _names(files: tuple[LiveFile, ...]) -> set[str]:
    return {file.path for file in files}


def test_nothing_is_due_while_versions_are_few():
    files = [_file(str(n), n, n) for n in range(3)]
    assert due_run(files, 4) == ()
    assert _names(due_run(files, 3)) == {"0", "1", "2"}


def test_a_large_file_of_older_versions_is_left_alone():
    files = [_file("base", 0, 9, 1_000_000), *(_file(str(n), n, n) for n in range(10, 15))]
    assert _names(due_run(files, 5)) == {"10", "11", "12", "13", "14"}


def test_files_of_one_version_are_one_unit():
    files = [_file(f"{n}-{part}", n, n) for n in range(4) for part in "ab"]
    assert due_run(files, 5) == ()
    assert len(due_run(files, 4)) == 8


def test_no_file_is_left_out_whose_versions_lie_between():
    """A removal of version 3 in a wide file would else not meet the addition of 2 before it."""
    files = [_file("wide", 1, 9, 1_000_000), *(_file(str(n), n, n) for n in range(2, 8))]
    assert due_run(files, 2) == ()
    later = [*files, _file("10", 10, 10), _file("11", 11, 11)]
    assert _names(due_run(later, 2)) == {"10", "11"}


def test_a_run_takes_in_what_is_not_much_larger_than_itself():
    sizes = {"old": 90_000, "mid": 50_000, "new": 20_000, "last": 20_000}
    files = [_file(name, n, n, rows) for n, (name, rows) in enumerate(sizes.items())]
    assert _names(due_run(files, 4)) == set(sizes)
    files[0] = _file("old", 0, 0, 150_000)
    assert due_run(files, 4) == ()
    assert _names(due_run(files, 3)) == {"mid", "new", "last"}
    large = [_file("huge", 0, 0, 5_000_000), _file("last", 1, 1, 4_000_000)]
    assert _names(due_run(large, 1)) == {"last"}


def test_runs_grow_geometrically():
    """However many versions come, files stay few and a row is rewritten few times."""
    files: list[LiveFile] = []
    rewritten = most = 0
    for version in range(1, 2_000):
        files.append(_file(f"v{version}", version, version, 1_000))
        run = due_run(files, 8)
        if run:
            rows = sum(file.rows for file in run)
            rewritten += rows
            first = min(file.mins["version"] for file in run)
            files = [file for file in files if file not in run]
            files.append(_file(f"f{version}", first, version, rows))
        most = max(most, len(files))
    assert most < 24
    assert rewritten < 12 * 2_000_000
