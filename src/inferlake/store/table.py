"""A Delta table: engines write its Parquet files, and `deltalake` commits them from the driver.

A version becomes visible by one put-if-absent of a log entry, so readers see all of it or nothing.
Whoever commits names the version it started from; if another writer took the next number first,
the commit fails with `CommitRace` and nothing has changed.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
    create_table_with_add_actions,
)

from inferlake import parquet
from inferlake.engines.quiet import without_stack
from inferlake.errors import StoreError, VersionNotFound
from inferlake.parquet import DataFile, Ranged
from inferlake.paths import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class CommitRace(Exception):
    """Another writer committed first; start again from the newest version."""


@dataclass(frozen=True)
class LiveFile(Ranged):
    """A data file of one version, with what the log says of it."""

    path: str
    size: int
    rows: int
    partition: Mapping[str, Any] = field(hash=False)
    mins: Mapping[str, int] = field(hash=False)
    maxs: Mapping[str, int] = field(hash=False)


# A file of the table, committed or not yet.
AnyFile = LiveFile | DataFile


@dataclass(frozen=True)
class Snapshot:
    """One version of a table: a list of files, and what the next commit starts from."""

    version: int
    files: tuple[LiveFile, ...]
    _table: DeltaTable = field(repr=False, compare=False)
    # What commits up to it said, by key, and the last batches, as far as anybody asked.
    _said: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _batches: dict[str, int | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def description(self) -> str:
        """What `create` was told."""
        return self._table.metadata().description or ""

    def transaction(self, application: str) -> int | None:
        """Return the last batch that `application` has committed up to this version."""
        if application not in self._batches:
            self._batches[application] = self._table.transaction_version(application)
        return self._batches[application]


@dataclass(frozen=True)
class Commit:
    """What a commit adds and removes, and what it says of itself in the log."""

    info: Mapping[str, Any]
    add: tuple[AddAction, ...] = ()
    remove: tuple[LiveFile, ...] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    # False for commits that only arrange the same rows differently.
    changes_data: bool = True


@dataclass(frozen=True)
class Table:
    """A Delta table at a place, with the columns it has and those that only its log has."""

    place: Place
    schema: Schema
    partition_columns: tuple[str, ...]
    # Takes the names of folders that are written, where somebody may have to undo that.
    writes: list[str] | None = field(default=None, repr=False, compare=False)

    def exists(self) -> bool:
        """Tell whether a Delta table is there."""
        known = _NEWEST.get(self.place.address)
        if known is not None and self._stamps(known.snapshot.version)[0] == known.stamps[0]:
            return True
        with _store_errors(self.place):
            return DeltaTable.is_deltatable(self.place.address)

    def create(self, description: str) -> None:
        """Create the table, empty, as version 0; one that is there already is left as it is."""
        try:
            create_table_with_add_actions(
                self.place.address,
                self.schema,
                [],
                mode="error",
                partition_by=list(self.partition_columns),
                description=description,
                configuration=_KEEP_EVERYTHING,
                commit_properties=CommitProperties(
                    custom_metadata={INFO: {"operation": "create"}},
                    # A retry would create the table that another writer just created once more.
                    max_commit_retries=0,
                ),
            )
        except (DeltaError, OSError) as exc:
            if not self.exists():
                raise StoreError(
                    f"{self.place.address}: cannot be created: {without_stack(exc)}"
                ) from exc

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return a version, the newest by default."""
        if version is None:
            return self._newest()
        return self._opened(version)

    def _newest(self) -> Snapshot:
        """Return the newest version; one that was opened before, if the log has not grown.

        Reading the log takes several milliseconds, looking for its next entry hardly any.
        """
        address = self.place.address
        known = _NEWEST.pop(address, None)
        now = self._stamps(known.snapshot.version) if known else (None, None)
        if known is None or now != known.stamps:
            grown = known is not None and now[0] == known.stamps[0]
            snapshot = self._followed(known.snapshot) if known and grown else self._opened(None)
            stamps = self._stamps(snapshot.version)
            if stamps[1] is not None:  # another commit came while we looked
                return snapshot
            known = _Newest(snapshot, stamps)
        _NEWEST[address] = known
        if len(_NEWEST) > _TABLES_KEPT:
            _NEWEST.pop(next(iter(_NEWEST)), None)
        return known.snapshot

    def _followed(self, known: Snapshot) -> Snapshot:
        """Return the version that a log has grown to, from one that was read before.

        That one can no longer be committed upon: others came first.
        """
        with _store_errors(self.place), _FOLLOWING:
            known._table.update_incremental()
            return _snapshot(known._table)

    def _stamps(self, version: int) -> tuple[int | None, int | None]:
        """Return when a version's log entry and the next one were written, if they are there."""
        log = self.place.child("_delta_log")
        paths = [log.child(f"{number:020}.json").path for number in (version, version + 1)]
        infos = self.place.filesystem.get_file_info(paths)
        first, second = (info.mtime_ns if info.is_file else None for info in infos)
        return first, second

    def _opened(self, version: int | None) -> Snapshot:
        with _store_errors(self.place, version):
            return _snapshot(DeltaTable(self.place.address, version=version))

    def commit(self, base: Snapshot, commit: Commit) -> int:
        """Make `commit` the version after `base` and return its number, or raise `CommitRace`.

        A store in a cloud may write the entry and lose the answer; the entry's token then tells
        that it is ours, whatever the error says.
        """
        token = uuid.uuid4().hex
        add = [replace(action, data_change=commit.changes_data) for action in commit.add]
        remove = [
            RemoveAction(
                path=file.path,
                data_change=commit.changes_data,
                deletion_timestamp=_now_ms(),
                size=file.size,
                partition_values={k: _text(v) for k, v in file.partition.items()},
            )
            for file in commit.remove
        ]
        properties = CommitProperties(
            custom_metadata={INFO: {**commit.info, TOKEN: token}},
            # A blind retry would let two writers who saw the same state both win.
            max_commit_retries=0,
            app_transactions=[Transaction(name, n) for name, n in commit.transactions.items()],
        )
        try:
            with _FOLLOWING:
                if base._table.version() != base.version:
                    raise CommitRace("the log has grown")
                base._table.create_write_transaction(
                    [*add, *remove],
                    "append",
                    self.schema,
                    list(self.partition_columns),
                    commit_properties=properties,
                    post_commithook_properties=_NO_HOOKS,
                )
        except (DeltaError, OSError) as exc:
            if self.snapshot().version == base.version:
                raise StoreError(
                    f"{self.place.address}: the commit failed: {without_stack(exc)}"
                ) from exc
            if not self._is_ours(base.version + 1, token):
                raise CommitRace(str(exc)) from exc
        self._checkpoint(base.version + 1)
        return base.version + 1

    def _is_ours(self, version: int, token: str) -> bool:
        # Where nothing can be read, nobody may take what was written for lost, and delete it.
        entries = self.history(1)
        while entries[-1]["version"] > version:  # others have committed since
            entries = self.history(entries[0]["version"] - version + 1)
        said = next(entry.get(INFO) for entry in entries if entry["version"] == version)
        return (said or {}).get(TOKEN) == token

    def _checkpoint(self, version: int) -> None:
        """Fold the log now and then, so that opening the table stays quick."""
        if version % _CHECKPOINT_EVERY == 0:
            # The version is committed whether or not this works; the next time comes.
            with suppress(DeltaError, OSError):
                DeltaTable(self.place.address).create_checkpoint()

    def history(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the commits that the log still has, newest first, as deltalake gives them.

        It begins so many before its own version, lists all that were made since, too, and numbers
        them down from its own.
        """
        table = self._newest()._table
        with _store_errors(self.place), _FOLLOWING:
            version, found = table.version(), table.history(most)
        asked = min(most or version + 1, version + 1)
        since = max(0, len(found) - asked)
        return [{**one, "version": one["version"] + since} for one in found[:most]]

    def last_said(self, snapshot: Snapshot, key: str) -> Any:
        """Return what the last commit up to `snapshot` that said anything under `key` said."""
        if key not in snapshot._said:
            snapshot._said[key] = self._find_said(snapshot.version, key)
        return snapshot._said[key]

    def _find_said(self, version: int, key: str) -> Any:
        for most in (1, 16, None):  # the newest nearly always knows
            for entry in self.history(most):
                if entry["version"] <= version and key in (entry.get(INFO) or {}):
                    return entry[INFO][key]
        return None

    def write(self, frame: DataFrame, *, by: str | None = None) -> tuple[DataFile, ...]:
        """Write rows into a fresh folder of the table; until a commit names it, nobody sees it.

        The paths of the files are relative to the table, as its log wants them.
        """
        name = self._fresh_folder()
        files = parquet.write(frame, self.place.child(name), by=by)
        return tuple(replace(file, path=f"{name}/{file.path}") for file in files)

    def write_table(self, table: pa.Table) -> tuple[DataFile, ...]:
        """Write a few rows that the driver has."""
        name = self._fresh_folder()
        files = parquet.write_table(table, self.place.child(name))
        return tuple(replace(file, path=f"{name}/{file.path}") for file in files)

    def _fresh_folder(self) -> str:
        name = uuid.uuid4().hex
        if self.writes is not None:
            self.writes.append(name)
        return name

    def undo(self) -> None:
        """Delete all that was written, as far as storage lets us; a vacuum finds the rest.

        Only where no commit names it, nor ever will.
        """
        for name in self.writes or ():
            with suppress(OSError):  # what went wrong before this is what the caller must hear of
                self.place.child(name).remove()

    def discard(self, paths: Iterable[str]) -> None:
        """Delete files that no commit names; a vacuum would find them too."""
        gone = list(paths)
        for path in gone:
            place = self.place.child(path)
            with suppress(FileNotFoundError):
                place.filesystem.delete_file(place.path)
        for folder in {path.split("/")[0] for path in gone}:
            with suppress(OSError):  # not empty, or not there: other files of the same job remain
                self.place.child(folder).remove_if_empty()

    def addresses(self, files: Iterable[AnyFile]) -> list[str]:
        """Return where engines find `files`."""
        return [f"{self.place.address}/{file.path}" for file in files]

    def require(self, files: Iterable[AnyFile]) -> None:
        """Raise unless all `files` are there."""
        paths = [self.place.child(file.path).path for file in files]
        for info in self.place.filesystem.get_file_info(paths) if paths else ():
            if info.type == pafs.FileType.NotFound:
                raise StoreError(
                    f"{info.path}: missing, though the log names it; restore it from a backup,"
                    " or load what it held into a new store"
                )

    def expired(self, hours: int, uncommitted_hours: int) -> list[str]:
        """Return the files, relative to the table, that nothing younger than `hours` needs.

        Files that no commit ever named count only once they are `uncommitted_hours` old.
        """
        with _store_errors(self.place):
            table = DeltaTable(self.place.address)
            removed = table.vacuum(hours, dry_run=True, enforce_retention_duration=False)
            longest = max(hours, uncommitted_hours)
            never = table.vacuum(longest, dry_run=True, enforce_retention_duration=False, full=True)
        return sorted({*removed, *never})


@dataclass(frozen=True)
class _Newest:
    """The newest version of a table, as far as this process knows, and what its log looked like."""

    snapshot: Snapshot
    stamps: tuple[int | None, int | None]


# By address; the last one used comes last.
_NEWEST: dict[str, _Newest] = {}
_TABLES_KEPT = 16

# Snapshots of one process share what is known of the log: one thread must not follow it while
# another, which has looked at its version, commits upon it.
_FOLLOWING = threading.Lock()

# The key under which every commit of ours keeps its account in the log, and in it, its own name.
INFO = "inferlake"
TOKEN = "commit"

# Our own vacuum decides what goes, and says so; Delta would forget versions after 30 days, and what
# it had removed after 7.
_KEEP_EVERYTHING = {
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
}

# A hook that failed would make a commit that succeeded look like one that did not.
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_CHECKPOINT_EVERY = 50


def add_action(file: DataFile, *, columns: Iterable[str], **partition: object) -> AddAction:
    """Return the log entry for a written file, with the statistics of its footer."""
    columns = tuple(columns)
    stats = {
        "numRecords": file.rows,
        "minValues": {c: file.mins[c] for c in columns if c in file.mins},
        "maxValues": {c: file.maxs[c] for c in columns if c in file.maxs},
        "nullCount": {c: file.nulls.get(c, 0) for c in columns},
    }
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={name: _text(value) for name, value in partition.items()},
        modification_time=file.modified_ms,
        data_change=True,
        stats=json.dumps(stats),
    )


def _snapshot(table: DeltaTable) -> Snapshot:
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return Snapshot(table.version(), tuple(map(_live_file, rows)), table)


def _live_file(row: dict[str, Any]) -> LiveFile:
    def group(prefix: str) -> dict[str, Any]:
        keys = (key for key in row if key.startswith(prefix) and row[key] is not None)
        return {key.removeprefix(prefix): row[key] for key in keys}

    return LiveFile(
        row["path"],
        row["size_bytes"],
        row["num_records"],
        group("partition."),
        group("min."),
        group("max."),
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextmanager
def _store_errors(at: Place, version: int | None = None) -> Iterator[None]:
    """Turn deltalake's exceptions into ours, with the place and, where asked for, the version."""
    try:
        yield
    except (DeltaError, OSError, OverflowError) as exc:
        if version is not None:
            store = at.address.rpartition("/")[0]  # users do not know its tables
            raise VersionNotFound(
                f"{store}: no version {version}; `inferlake history` lists those there are"
            ) from exc
        if isinstance(exc, TableNotFoundError):
            raise no_table(at) from exc
        raise StoreError(
            f"{at.address}: cannot be read: {without_stack(exc)}; give this user the right to read"
            " it, or restore it from a backup"
        ) from exc


def no_table(at: Place) -> StoreError:
    """Return the error that a store has lost one of its tables."""
    return StoreError(
        f"{at.address}: no table there, though the rest of the store is; restore it from a backup,"
        " or load into a new store"
    )
