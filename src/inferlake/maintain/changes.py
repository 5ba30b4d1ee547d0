"""What became true between two versions, and what ceased to be.

A version is a list of files of signed rows, and a fact stands in a layer if its signs there add up
to one. So the files that only one of the two versions has tell the whole difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inferlake.session import Engine, union
from inferlake.store import ARRANGING, Layer, Store
from inferlake.store.facts import TRIPLE
from inferlake.store.table import LiveFile, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NET_SQL = """
    SELECT s, p, o, IF(sum(sign) > 0, 'added', 'removed') AS change
    FROM {rows} GROUP BY s, p, o HAVING sum(sign) <> 0"""

_IDS = "s BIGINT, p BIGINT, o BIGINT, change STRING"


@dataclass(frozen=True)
class Changes:
    """The triples that differ between two versions, one row each: change and the three terms.

    Iterate over it, or take the `frame`.
    """

    earlier: int
    later: int
    frame: DataFrame
    _store: Store = field(repr=False)
    _snapshots: tuple[Snapshot, ...] = field(repr=False)
    _terms: Snapshot = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        yield from self.frame.toLocalIterator()
        self.require_files()

    def lines(self, change: str) -> DataFrame:
        """Return the lines of an RDF Patch for what was added, or removed."""
        letter = "A" if change == "added" else "D"
        line = f"concat('{letter} ', subject, ' ', predicate, ' ', object, ' .') AS value"
        return self.frame.where(f"change = '{change}'").selectExpr(line)

    def require_files(self) -> None:
        """Raise if files went missing while they were read: rows may then be missing too."""
        for snapshot in self._snapshots:
            self._store.require_files(snapshot, self._terms)


def changes(
    store: Store, engine: Engine, earlier: Snapshot, later: Snapshot, layers: Iterable[Layer]
) -> Changes:
    """Return how the triples of some layers, taken together, differ between two versions."""
    wanted = set(layers)
    ids = _changed(store, engine, earlier, later, wanted)
    names = {"s": "subject", "p": "predicate", "o": "object"}
    terms = store.terms.table.snapshot()
    decoded = store.terms.decode_columns(engine, ids, names, "change", snapshot=terms)
    frame = decoded.select("change", *names.values())
    return Changes(earlier.version, later.version, frame, store, (earlier, later), terms)


def followed(
    store: Store,
    engine: Callable[[], Engine],
    start: int,
    layers: Iterable[Layer],
    *,
    poll: float,
    until: Callable[[], bool] | None = None,
) -> Iterator[Changes]:
    """Yield the changes of each version after `start`, as they are committed.

    `engine` is asked for one before each version.
    Ends when `until()` is true and all versions that were there then have been told of.
    """
    wanted = tuple(layers)
    earlier = store.snapshot(start)
    while True:
        last_look = until is not None and until()
        newest = store.snapshot().version
        done = earlier.version
        operations = {
            one.version: one.operation for one in store.history(newest - done) if newest > done
        }
        for version in range(done + 1, newest + 1):
            later = store.facts.table.snapshot(version)
            if operations.get(version) not in ARRANGING:
                yield changes(store, engine(), earlier, later, wanted)
            earlier = later
        if last_look:
            return
        if newest == done:
            time.sleep(poll)


def _changed(
    store: Store, engine: Engine, earlier: Snapshot, later: Snapshot, layers: set[Layer]
) -> DataFrame:
    before, after = _files(earlier, layers), _files(later, layers)
    only_after = [after[path] for path in after.keys() - before.keys()]
    only_before = [before[path] for path in before.keys() - after.keys()]
    frames = [
        store.facts.read(engine, some).selectExpr("s", "p", "o", f"{sign} AS sign")
        for files, factor in ((only_after, 1), (only_before, -1))
        for sign, some in _by_sign(files, factor)
    ]
    if not frames:
        return engine.empty(_IDS)
    return engine.sql(_NET_SQL, rows=union(frames))


def _files(snapshot: Snapshot, layers: set[Layer]) -> dict[str, LiveFile]:
    """Return the files of triples by path: a file never changes."""
    return {
        file.path: file
        for file in snapshot.files
        if file.partition["relation"] == TRIPLE and file.partition["layer"] in layers
    }


def _by_sign(files: list[LiveFile], factor: int) -> Iterator[tuple[int, list[LiveFile]]]:
    for sign in (1, -1):
        some = [file for file in files if int(file.partition["sign"]) == sign]
        if some:
            yield sign * factor, some
