"""Load: stage the input, commit its terms, then commit the facts that are new as one version.

If another writer commits in between, the staged input is compared with the new state and written
again: no load is lost, and no fact is in the store twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.errors import Conflict
from inferlake.input import InputFile, Staged, stage
from inferlake.maintain.report import LoadReport
from inferlake.progress import Progress, Stopwatch
from inferlake.session import Engine
from inferlake.store.dictionary import encoded
from inferlake.store.facts import Candidates
from inferlake.store.failures import explained
from inferlake.store.layout import place_facts
from inferlake.store.store import Store
from inferlake.store.table import Commit, CommitRace, Snapshot

if TYPE_CHECKING:
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame

_ATTEMPTS = 100

# A change with more predicates than this is compared with every file: the list itself costs.
_MANY_PREDICATES = 10_000

_FRESH_SQL = """
    SELECT part, s, p, o, BIGINT({version}) AS version
    FROM (SELECT part, s, p, o FROM {{placed}} GROUP BY part, s, p, o)"""

_NOT_STORED_SQL = """
    SELECT fresh.* FROM {fresh} fresh LEFT ANTI JOIN {stored} stored
      ON fresh.s = stored.s AND fresh.p = stored.p AND fresh.o = stored.o"""

_BOTH_SQL = """
    SELECT stored.s, stored.p, stored.o, BIGINT({version}) AS version
    FROM {{stored}} stored LEFT SEMI JOIN {{fresh}} fresh
      ON fresh.s = stored.s AND fresh.p = stored.p AND fresh.o = stored.o"""


def load(
    store: Store,
    engine: Engine,
    files: tuple[InputFile, ...],
    *,
    progress: Progress,
    skip_bad: bool = False,
    transaction: tuple[str, int] | None = None,
    frame: DataFrame | None = None,
) -> LoadReport:
    """Add the triples of `files`, or of a `frame`, to the store as one new version.

    With a `transaction` (an application's name and the number of its batch), a batch that was
    committed before changes nothing. On any error the store is as it was.
    """
    watch = Stopwatch(progress)
    with explained(store.place, engine, "nothing was loaded"):
        if store.exists():
            base = store.snapshot()  # refuses what this release cannot read, before any work
            if transaction is not None and _applied(base, transaction):
                return _repeated(base.version, files, engine, watch)
        with store.staging() as folder:
            with watch.phase("parse", sum(file.size for file in files)):
                staged = stage(
                    engine,
                    folder,
                    files,
                    hash=store.hash,
                    progress=progress,
                    skip_bad=skip_bad,
                    frame=frame,
                )
            store.create()  # not before the input is known to be good
            with watch.phase("terms"):
                displaced = store.terms.add(
                    engine,
                    staged.terms,
                    staged.term_count,
                    once=staged.terms_once,
                    ids=staged.few_terms,
                )
            return _Load(store, engine, staged, displaced).run(watch, files, transaction)


@dataclass(frozen=True)
class _Load:
    """Valid, encoded triples on their way into the facts."""

    store: Store
    engine: Engine
    staged: Staged
    displaced: dict[str, int]

    def run(
        self, watch: Stopwatch, files: tuple[InputFile, ...], transaction: tuple[str, int] | None
    ) -> LoadReport:
        table = self.store.facts.table
        for _ in range(_ATTEMPTS):
            base = table.snapshot()
            if transaction is not None and _applied(base, transaction):
                return _repeated(base.version, files, self.engine, watch)
            with watch.phase("facts"):
                actions, added, files_read = self._actions(base)
            info = {
                "operation": "load",
                "added": added,
                "removed": 0,
                "read": self.staged.triples_read,
                "bad": self.staged.bad_count,
                "files": len(files),
                "engine": self.engine.name,
                "seconds": {name: round(s, 3) for name, s in watch.seconds.items()},
            }
            commit = Commit(info, actions, transactions=dict([transaction] if transaction else []))
            try:
                with watch.phase("commit"):
                    version = table.commit(base, commit)
            except CommitRace:
                _discard(self.store, actions)
                continue
            return self._report(version, added, files_read, base, files, watch)
        raise Conflict(
            f"{self.store.place.address}: {_ATTEMPTS} other commits came first; nothing was loaded;"
            " load again when fewer writers are at work"
        )

    @cached_property
    def triples(self) -> DataFrame:
        """The ids of the staged triples, with repetitions."""
        return encoded(self.engine, self.staged.triples, self.displaced)

    def _actions(self, base: Snapshot) -> tuple[tuple[AddAction, ...], int, int]:
        """Write the facts that `base` does not have; return log entries, rows, and files read.

        A fact that was derived until now becomes asserted: it leaves the derived layer.
        """
        facts = self.store.facts
        version = base.version + 1
        candidates = self._candidates(base)
        placed, parts = place_facts(self.engine, self.triples, self.staged.triples_read)
        grouped = placed.repartition(parts, "part")
        fresh = self.engine.sql(_FRESH_SQL.format(version=version), placed=grouped)
        near = facts.files(base, "asserted", 1, candidates)
        if near:
            stored = facts.live(self.engine, base, "asserted", candidates)
            fresh = self.engine.sql(_NOT_STORED_SQL, fresh=fresh, stored=stored)
        ordered = fresh.sortWithinPartitions("part", "p", "s", "o")
        written = facts.table.write(ordered, by="part")
        actions = facts.actions(written, "asserted")
        derived = facts.files(base, "derived", 1, candidates)
        if derived and written:
            known = facts.live(self.engine, base, "derived", candidates)
            both = self.engine.sql(_BOTH_SQL.format(version=version), stored=known, fresh=fresh)
            actions += facts.actions(facts.table.write(both), "derived", sign=-1)
        return actions, parquet.rows(written), len(near) + len(derived)

    def _candidates(self, base: Snapshot) -> Candidates:
        """Return what the log needs to tell which files this load can meet."""
        if not base.files:
            return Candidates()
        if self.staged.few is not None and not self.displaced:
            return Candidates(points=self.staged.few)
        rows = self.triples.select("p").distinct().limit(_MANY_PREDICATES + 1).collect()
        many = len(rows) > _MANY_PREDICATES
        return Candidates(None if many else frozenset(row.p for row in rows))

    def _report(
        self,
        version: int,
        added: int,
        files_read: int,
        base: Snapshot,
        files: tuple[InputFile, ...],
        watch: Stopwatch,
    ) -> LoadReport:
        return LoadReport(
            version=version,
            read=self.staged.triples_read,
            added=added,
            files=len(files),
            engine=self.engine.name,
            seconds=dict(watch.seconds),
            bad_count=self.staged.bad_count,
            bad=self.staged.bad,
            graphs_dropped=self.staged.graphs_dropped,
            files_read=files_read,
            files_stored=len(base.files),
        )


def _applied(base: Snapshot, transaction: tuple[str, int]) -> bool:
    application, batch = transaction
    last = base.transaction(application)
    return last is not None and last >= batch


def _repeated(
    version: int, files: tuple[InputFile, ...], engine: Engine, watch: Stopwatch
) -> LoadReport:
    return LoadReport(version, 0, 0, len(files), engine.name, dict(watch.seconds), repeated=True)


def _discard(store: Store, actions: Iterable[AddAction]) -> None:
    """Delete files whose commit failed; a vacuum would find them too."""
    for action in actions:
        place = store.facts.table.place.child(action.path)
        with suppress(FileNotFoundError):
            place.filesystem.delete_file(place.path)
