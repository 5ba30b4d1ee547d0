"""Load: stage the input, commit its terms, then commit new facts and all that follows from them.

If another writer commits in between, the staged input is compared with the new state, written and
closed again: no load is lost, no fact is in the store twice, and every version is closed under its
rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.errors import Conflict
from inferlake.input import InputFile, Staged, stage
from inferlake.maintain.derive import AddedBlock, Derivation, Derived, Deriver
from inferlake.maintain.report import LoadReport
from inferlake.maintain.rules import ChosenRules, add_constants, chosen_rules
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.progress import Progress, Stopwatch
from inferlake.rules.load import compiled, read_rules
from inferlake.session import Engine, peak_memory
from inferlake.store.dictionary import encoded
from inferlake.store.facts import Candidates
from inferlake.store.failures import explained
from inferlake.store.layout import place_facts
from inferlake.store.store import RULES, Store
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
    how: Derivation | None = None,
) -> LoadReport:
    """Add the triples of `files`, or of a `frame`, to the store as one new version.

    With a `transaction` (an application's name and the number of its batch), a batch that was
    committed before changes nothing. On any error the store is as it was.
    """
    how = how or Derivation()
    if how.rules is not None:
        compiled(read_rules(how.rules))  # before any work
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
                rules = chosen_rules(store, how.rules)
                add_constants(store, engine, rules)
                displaced = store.terms.add(
                    engine,
                    staged.terms,
                    staged.term_count,
                    once=staged.terms_once,
                    ids=staged.few_terms,
                )
            work = _Load(store, engine, staged, displaced, rules, how, folder.child("closure"))
            return work.run(watch, files, transaction)


@dataclass(frozen=True)
class _Asserted:
    """What a load writes of its own, before anything is derived."""

    actions: tuple[AddAction, ...]
    written: tuple[DataFile, ...]
    # Facts that were derived in the version before.
    both: tuple[DataFile, ...]
    files_read: int

    @property
    def added(self) -> int:
        return parquet.rows(self.written)


@dataclass(frozen=True)
class _Load:
    """Valid, encoded triples on their way into the facts."""

    store: Store
    engine: Engine
    staged: Staged
    displaced: dict[str, int]
    rules: ChosenRules
    how: Derivation
    scratch: Place

    def run(
        self, watch: Stopwatch, files: tuple[InputFile, ...], transaction: tuple[str, int] | None
    ) -> LoadReport:
        table = self.store.facts.table
        for _ in range(_ATTEMPTS):
            base = table.snapshot()
            if self.how.rules is None and not self.rules.stand_in(base):
                rules = chosen_rules(self.store, None)
                if rules.digest != self.rules.digest:
                    # Another writer has changed the rules, and we came without any of our own.
                    add_constants(self.store, self.engine, rules)
                    return replace(self, rules=rules).run(watch, files, transaction)
            if transaction is not None and _applied(base, transaction):
                return _repeated(base.version, files, self.engine, watch)
            with watch.phase("facts"):
                asserted = self._asserted(base)
            with watch.phase("derive"):
                derived = self._derived(base, asserted, watch)
            actions = asserted.actions + derived.actions
            info = {
                "operation": "load",
                RULES: self.rules.said,
                "added": asserted.added,
                "removed": 0,
                "derived": derived.closure.derived,
                "withdrawn": sum(file.rows for file in derived.replaced),
                "rounds": len(derived.closure.rounds),
                "inconsistent": bool(derived.contradictions),
                "read": self.staged.triples_read,
                "bad": self.staged.bad_count,
                "files": len(files),
                "engine": self.engine.name,
                "seconds": {name: round(s, 3) for name, s in watch.seconds.items()},
            }
            batch = dict([transaction] if transaction else [])
            commit = Commit(info, actions, derived.replaced, transactions=batch)
            try:
                with watch.phase("commit"):
                    version = table.commit(base, commit)
            except CommitRace:
                table.discard(action.path for action in actions)
                continue
            return self._report(version, asserted, derived, base, files, watch)
        raise Conflict(
            f"{self.store.place.address}: {_ATTEMPTS} other commits came first; nothing was loaded;"
            " load again when fewer writers are at work"
        )

    @cached_property
    def triples(self) -> DataFrame:
        """The ids of the staged triples, with repetitions."""
        return encoded(self.engine, self.staged.triples, self.displaced)

    def _asserted(self, base: Snapshot) -> _Asserted:
        """Write the facts that `base` does not have.

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
        both: tuple[DataFile, ...] = ()
        if derived and written and self.rules.stand_in(base):
            known = facts.live(self.engine, base, "derived", candidates)
            rows = self.engine.sql(_BOTH_SQL.format(version=version), stored=known, fresh=fresh)
            both = facts.table.write(rows)
            actions += facts.actions(both, "derived", sign=-1)
        return _Asserted(actions, written, both, len(near) + len(derived))

    def _derived(self, base: Snapshot, asserted: _Asserted, watch: Stopwatch) -> Derived:
        """Derive what follows from the new facts, or from all of them if the rules are new."""
        deriver = Deriver(
            self.store, self.engine, self.rules, self._id_of, self.how, watch.progress
        )
        known = self.store.facts.read(self.engine, asserted.both) if asserted.both else None
        added = AddedBlock(deriver.layout, self.store, asserted.written, known)
        return deriver.derive(base, added, self.scratch.child(str(base.version)))

    def _id_of(self, term: str) -> int:
        return self.displaced.get(term, self.store.hash.of(term))

    def _candidates(self, base: Snapshot) -> Candidates:
        """Return what the log needs to tell which files this load can meet."""
        if not base.files:
            return Candidates()
        if self.staged.few is not None and not self.displaced:
            return Candidates(points=self.staged.few)
        rows = self.triples.select("p").distinct().limit(_MANY_PREDICATES + 1).collect()
        many = len(rows) > _MANY_PREDICATES
        return Candidates({} if many else {"p": frozenset(row.p for row in rows)})

    def _report(
        self,
        version: int,
        asserted: _Asserted,
        derived: Derived,
        base: Snapshot,
        files: tuple[InputFile, ...],
        watch: Stopwatch,
    ) -> LoadReport:
        return LoadReport(
            version=version,
            read=self.staged.triples_read,
            added=asserted.added,
            files=len(files),
            engine=self.engine.name,
            seconds=dict(watch.seconds),
            rules=self.rules.names,
            derived=derived.closure.derived,
            withdrawn=sum(file.rows for file in derived.replaced),
            rounds=tuple(derived.closure.rounds),
            contradictions=derived.contradictions,
            more_contradictions=derived.more_contradictions,
            peak_memory=peak_memory(),
            bad_count=self.staged.bad_count,
            bad=self.staged.bad,
            graphs_dropped=self.staged.graphs_dropped,
            files_read=asserted.files_read,
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
