"""Vacuum: delete the files that no kept version needs.

A version is kept if it was current at some time within the retention. Which files are past it is
deltalake's to say; files that no commit ever named may belong to a writer at work, and are left
alone for a day at least.
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow.fs as pafs

from inferlake.errors import Conflict
from inferlake.store.store import Store, VersionInfo
from inferlake.store.table import Commit, CommitRace, Table

_ATTEMPTS = 20

# The longest that we expect a writer to work on files it has not committed yet.
_UNCOMMITTED_HOURS = 24

# A file's removal is stamped a moment before its commit: claim no version that close to the edge.
_SLACK = timedelta(minutes=1)


@dataclass(frozen=True)
class Vacuumed:
    """What a vacuum deleted, and what it left to travel back to."""

    files: int
    bytes: int
    oldest_kept: int
    version: int
    # Terms of what was forgotten, deleted from the dictionary.
    terms: int = 0


def vacuum(store: Store, older_than: timedelta) -> Vacuumed:
    """Delete files that only versions older than `older_than` need; whole hours, rounded up."""
    hours = math.ceil(older_than / timedelta(hours=1))
    tables = (store.facts.table, store.terms.table)
    doomed = [(table, table.expired(hours, _UNCOMMITTED_HOURS)) for table in tables]
    # Asked afterwards: a version that was current until now may just have lost its files.
    oldest = oldest_within(store.history(), datetime.now(UTC) - timedelta(hours=hours))
    files = [info for table, names in doomed for info in _infos(table, names)]
    size = sum(info.size for info in files)
    # Announced before anything is deleted: nobody is then led to a version that is half gone.
    info = {
        "operation": "vacuum",
        "files": len(files),
        "bytes": size,
        "oldest_kept": max(oldest, store.oldest_kept()),
    }
    version = _commit(store.facts.table, Commit(info, changes_data=False))
    for file in files:
        with suppress(FileNotFoundError):  # another vacuum was quicker
            store.place.filesystem.delete_file(file.path)
    _sweep_staging(store, max(hours, _UNCOMMITTED_HOURS))
    return Vacuumed(len(files), size, info["oldest_kept"], version)


def oldest_within(history: list[VersionInfo], cutoff: datetime) -> int:
    """Return the oldest version that was still current at `cutoff` or later.

    `history` is newest first; a version is current until the next one is committed.
    """
    oldest = history[0].version
    for newer, older in itertools.pairwise(history):
        if newer.time <= cutoff + _SLACK:
            break
        oldest = older.version
    return oldest


def _infos(table: Table, names: list[str]) -> list[pafs.FileInfo]:
    paths = [table.place.child(name).path for name in names]
    infos = table.place.filesystem.get_file_info(paths) if paths else []
    return [info for info in infos if info.type == pafs.FileType.File]


def _commit(table: Table, commit: Commit) -> int:
    for _ in range(_ATTEMPTS):
        try:
            return table.commit(table.snapshot(), commit)
        except CommitRace:
            continue
    raise Conflict(
        f"{table.place.address}: other writers came first every time; vacuum again later"
    )


def _sweep_staging(store: Store, hours: int) -> None:
    """Remove the work of loads that died: folders whose newest file is that old."""
    staging = store.place.child("_staging")
    if not staging.exists():
        return
    cutoff = datetime.now(UTC) - timedelta(hours=hours)
    folders: dict[str, datetime] = {}
    for info in staging.files():
        name = info.path[len(staging.path) + 1 :].split("/")[0]
        stamp = info.mtime or cutoff
        folders[name] = max(folders.get(name, stamp), stamp)
    for name, newest in folders.items():
        if newest < cutoff:
            staging.child(name).remove()
