"""A change: what is added and removed, of facts, schema and rules, becomes one new version.

The input is staged, its terms are committed, and then the facts with all that follows from them.
If another writer commits in between, the staged input is compared with the new state, and the
consequences are found again: no change is lost, no fact is in the store twice, and every version
is closed under its rules. A load is a change that only adds.
"""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.engines.machine import peak_memory
from inferlake.errors import Conflict, StoreError
from inferlake.input import Staged, stage
from inferlake.maintain.asked import Change, Source
from inferlake.maintain.repair import Asserted, Repair, Repaired
from inferlake.maintain.report import ChangeReport
from inferlake.maintain.rules import ChosenRules, add_constants, chosen_rules
from inferlake.maintain.sides import Side, Sides
from inferlake.maintain.windows import WindowRepair
from inferlake.paths import Place
from inferlake.progress import Progress, Stopwatch
from inferlake.rules.load import compiled, read_rules
from inferlake.session import Engine, is_engine_failure
from inferlake.store.facts import Candidates, not_among
from inferlake.store.failures import explained
from inferlake.store.layout import ordered, place_facts
from inferlake.store.store import DEPTH, DROPPED, HURRIED, PURGED, PURGING, RULES, SOUND, Store
from inferlake.store.table import Commit, CommitRace, Snapshot
from inferlake.store.until import CLOCK, clock, has_expiring

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

    from inferlake.parquet import DataFile

_ATTEMPTS = 100

# So many times fewer triples than stored ones are looked for among those, before the rest is done.
_FEWER = 4

_FRESH_SQL = """
    SELECT part, s, p, o, BIGINT({version}) AS version
    FROM (SELECT part, s, p, o FROM {{placed}} GROUP BY part, s, p, o)"""


def apply(store: Store, engine: Engine, change: Change, progress: Progress) -> ChangeReport:
    """Make a change the next version of the store.

    With a `transaction`, a batch that was committed before changes nothing. On any error the store
    is as it was.
    """
    if isinstance(change.how.rules, tuple):
        compiled(read_rules(change.how.rules))  # before any work
    watch = Stopwatch(progress)
    with explained(store.place, engine, change.undone):
        if store.exists():
            base = store.snapshot()  # refuses what this release cannot read, before any work
            if change.transaction is not None and applied(base, change.transaction):
                return _repeated(base.version, change, engine, watch)
        with store.staging() as folder:
            with watch.phase("parse", sum(file.size for file in change.files)):
                sides = {
                    name: _staged(store, engine, folder.child(name), change, name, progress)
                    for name in ("add", "remove", "patch")
                }
            if change.rejected is not None:
                bad = (staged.rejects() for staged in sides.values() if staged is not None)
                change.rejected(itertools.chain.from_iterable(bad))
            store.create()  # not before the input is known to be good
            with watch.phase("terms"):
                purges, dropped = _purges(store.snapshot()), _dropped(store)
                rules = chosen_rules(store, change.how.rules)
                add_constants(store, engine, rules)
                displaced = _add_terms(store, engine, (sides["add"], sides["patch"]))
            work = _Work(store, engine, change, sides, displaced, rules, folder, purges, dropped)
            return work.run(watch)


def _staged(
    store: Store, engine: Engine, folder: Place, change: Change, name: str, progress: Progress
) -> Staged | None:
    source: Source = getattr(change, name)
    if not source.files:
        return None
    return stage(
        engine,
        folder,
        source.files,
        hash=store.hash,
        progress=progress,
        skip_bad=change.skip_bad,
        frame=source.frame,
        time_column=source.time_column,
        stored_labels=name != "add",
    )


def _add_terms(store: Store, engine: Engine, sides: tuple[Staged | None, ...]) -> dict[str, int]:
    """Commit the terms of new facts, and return those whose id is not their hash."""
    displaced: dict[str, int] | None = None
    for staged in sides:
        if staged is not None and staged.term_count:
            displaced = store.terms.add(
                engine,
                staged.terms,
                staged.term_count,
                once=staged.terms_once,
                few=staged.few_terms,
            )
    return store.terms.displaced(engine) if displaced is None else displaced


@dataclass(frozen=True)
class _Done:
    """What a change does to a version: to the asserted triples, and to what follows."""

    repaired: Repaired
    # Log entries besides those of the repair.
    actions: tuple[AddAction, ...]
    added: int
    removed: int
    not_asserted: int
    expired: int = 0
    late: int = 0
    clock: int | None = None


@dataclass(frozen=True)
class _Work:
    """Valid, encoded triples on their way into, and out of, the facts."""

    store: Store
    engine: Engine
    change: Change
    sides: dict[str, Staged | None]
    displaced: dict[str, int]
    rules: ChosenRules
    folder: Place
    # The last purge that had begun, and the last that had ended, when our terms were looked up; and
    # the last that had taken terms away.
    purges: tuple[int, int]
    dropped: int

    def run(self, watch: Stopwatch) -> ChangeReport:
        table = self.store.facts.table
        transaction = self.change.transaction
        for _ in range(_ATTEMPTS):
            base = table.snapshot()
            if not isinstance(self.change.how.rules, tuple) and not self.rules.fit(base):
                # Another writer has changed the rules that ours were chosen for.
                rules = chosen_rules(self.store, self.change.how.rules)
                add_constants(self.store, self.engine, rules)
                displaced = self.store.terms.displaced(self.engine)
                return replace(self, rules=rules, displaced=displaced).run(watch)
            if _purges(base) != self.purges:
                return self._with_terms_again(base).run(watch)
            if transaction is not None and applied(base, transaction):
                return _repeated(base.version, self.change, self.engine, watch)
            if self.change.operation == "expire" and not self._advances(base):
                return self._told_the_time(base, watch)
            store = self.store.attempt()
            try:
                done = self._done(base, store, watch)
            except BaseException as exc:
                store.facts.table.undo()
                # A vacuum may have taken the files of a version that is no longer the newest.
                if _may_be_gone(exc) and table.snapshot().version != base.version:
                    continue
                raise
            begun, ended = self.purges
            if begun > ended and _dropped(self.store) != self.dropped:
                # Rules that compare texts may not have found ours.
                store.facts.table.undo()
                return self._with_terms_again(base).run(watch)
            try:
                with watch.phase("commit"):
                    version = table.commit(base, self._commit(base, done, watch))
            except CommitRace:
                store.facts.table.undo()
                continue
            if begun > ended:  # it may have taken our terms meanwhile, or died while it did
                self._with_terms_again(base)
            return self._report(version, store, done, base, watch)
        raise Conflict(
            f"{self.store.place.address}: {_ATTEMPTS} other commits came first;"
            f" {self.change.undone}; try again when fewer writers are at work"
        )

    def _with_terms_again(self, base: Snapshot) -> _Work:
        """Return the same work, once the dictionary has lost terms that ours may be among."""
        dropped = _dropped(self.store)
        add_constants(self.store, self.engine, self.rules, anew=True)
        sides = (self.sides["add"], self.sides["patch"])
        displaced = _add_terms(self.store, self.engine, sides)
        return replace(self, displaced=displaced, purges=_purges(base), dropped=dropped)

    @property
    def _sides(self) -> Sides:
        inputs = self.sides, self.displaced, self.folder
        return Sides(self.store, self.engine, self.change, *inputs)

    # --- What comes of it ------------------------------------------------------------------------

    def _done(self, base: Snapshot, store: Store, watch: Stopwatch) -> _Done:
        if self._expires(base):
            return self._lasted(base, store, watch)
        return self._settled(base, store, watch)

    def _settled(self, base: Snapshot, store: Store, watch: Stopwatch) -> _Done:
        """Do the work on a version of which nothing expires."""
        facts = store.facts
        with watch.phase("facts"):
            asserted = self._asserted(base, store)
        with watch.phase("derive"):
            repaired = self._repair(base, store, watch).run(base, asserted)
        actions = facts.actions(asserted.written, "asserted")
        actions += facts.actions(asserted.removed, "asserted", sign=-1)
        not_asserted = asserted.asked - asserted.taken
        counts = (asserted.added, asserted.taken, not_asserted)
        return _Done(repaired, actions, *counts, clock=clock(base))

    def _asserted(self, base: Snapshot, store: Store) -> Asserted:
        """Write the triples that `base` does not have yet, and those it has and is to lose."""
        add, remove = self._sides.net()
        removed = self._removed(base, store, remove) if remove is not None else ()
        asked = 0 if remove is None else remove.distinct(at_least=parquet.rows(removed))
        if add is None:
            return Asserted((), removed, asked=asked)
        near = add.candidates(base)
        return Asserted(self._written(base, store, add, near), removed, near, asked)

    def _written(
        self, base: Snapshot, store: Store, add: Side, candidates: Candidates
    ) -> tuple[DataFile, ...]:
        facts, version = store.facts, base.version + 1
        placed = place_facts(self.engine, add.triples, add.size)
        there = facts.files(base, "asserted", 1, candidates)
        # Looking for many stored facts moves the rows once more, so that they are gathered last.
        last = bool(there) and placed.parts > 1
        rows = placed.rows if last else placed.gathered().rows
        fresh = self.engine.sql(_FRESH_SQL.format(version=version), placed=rows)
        if there:
            if add.size * _FEWER < sum(file.rows for file in there):
                stored = facts.met(self.engine, base, "asserted", add.triples, add.size, candidates)
                fresh = not_among(self.engine, fresh, stored, add.size)
            else:
                stored = facts.live(self.engine, base, "asserted", candidates)
                fresh = not_among(self.engine, fresh, stored)
        done = replace(placed, rows=fresh)
        return (done.gathered() if last else done).write(facts.table)

    def _removed(self, base: Snapshot, store: Store, remove: Side) -> tuple[DataFile, ...]:
        facts, candidates = store.facts, remove.candidates(base)
        if not facts.files(base, "asserted", 1, candidates):
            return ()
        found = facts.met(self.engine, base, "asserted", remove.triples, remove.size, candidates)
        rows = found.selectExpr("*", f"BIGINT({base.version + 1}) AS version")
        return facts.table.write(ordered(self.engine, rows))

    def _repair(self, base: Snapshot, store: Store, watch: Stopwatch) -> Repair:
        scratch = self.folder.child(f"closure-{uuid.uuid4().hex}")  # a version may be tried twice
        how, progress = self.change.how, watch.progress
        return Repair(store, self.engine, self.rules, self._id_of, how, progress, scratch)

    # --- What expires ----------------------------------------------------------------------------

    def _expires(self, base: Snapshot) -> bool:
        """Tell whether facts of a version or of the next may expire."""
        change = self.change
        return change.window is not None or change.clock is not None or has_expiring(base)

    def _clock(self, base: Snapshot) -> int | None:
        """Return the time of the next version."""
        times = [time for time in (clock(base), self.change.clock) if time is not None]
        return max(times, default=None)

    def _advances(self, base: Snapshot) -> bool:
        return self._clock(base) != clock(base)

    def _lasted(self, base: Snapshot, store: Store, watch: Stopwatch) -> _Done:
        """Do the work on a version of which some facts expire."""
        with watch.phase("derive"):
            repair = WindowRepair(self._repair(base, store, watch), base, self._clock(base))
            lasted = repair.run(self._sides.said())
        found = lasted.counts
        return _Done(
            lasted.repaired,
            (),
            found.added,
            found.removed,
            found.not_asserted,
            lasted.expired,
            found.late,
            self._clock(base),
        )

    def _told_the_time(self, base: Snapshot, watch: Stopwatch) -> ChangeReport:
        """Report that it is later already than the time a change was to bring."""
        return ChangeReport(
            operation=self.change.operation,
            version=base.version,
            read=0,
            added=0,
            files=0,
            engine=self.engine.name,
            seconds=dict(watch.seconds),
            clock=clock(base),
        )

    def _id_of(self, term: str) -> int:
        return self.displaced.get(term, self.store.hash.of(term))

    def _commit(self, base: Snapshot, done: _Done, watch: Stopwatch) -> Commit:
        repaired = done.repaired
        info = {
            "operation": self.change.operation,
            RULES: self.rules.said,
            "added": done.added,
            "removed": done.removed,
            "derived": repaired.derived,
            "withdrawn": repaired.withdrawn,
            "algorithm": repaired.algorithm,
            "rounds": len(repaired.rounds),
            DEPTH: repaired.depth,
            HURRIED: repaired.to_hurry,
            **({} if repaired.contradictions is None else {SOUND: not repaired.contradictions}),
            "read": self._read,
            "bad": sum(staged.bad_count for staged in self._inputs),
            "files": len(self.change.files),
            "engine": self.engine.name,
            "seconds": {name: round(s, 3) for name, s in watch.seconds.items()},
        }
        batch = dict([self.change.transaction] if self.change.transaction else [])
        if done.clock is not None and self._expires(base):
            info |= {"clock": done.clock, "expired": done.expired, "late": done.late}
            batch[CLOCK] = done.clock
        actions = done.actions + repaired.actions
        return Commit(info, actions, repaired.replaced, transactions=batch)

    @property
    def _inputs(self) -> list[Staged]:
        return [staged for staged in self.sides.values() if staged is not None]

    @property
    def _read(self) -> int:
        return sum(staged.triples_read for staged in self._inputs)

    def _report(
        self,
        version: int,
        store: Store,
        done: _Done,
        base: Snapshot,
        watch: Stopwatch,
    ) -> ChangeReport:
        inputs, repaired = self._inputs, done.repaired
        return ChangeReport(
            operation=self.change.operation,
            version=version,
            read=self._read,
            added=done.added,
            removed=done.removed,
            not_asserted=done.not_asserted,
            expired=done.expired,
            late=done.late,
            clock=done.clock,
            files=len(self.change.files),
            engine=self.engine.name,
            seconds=dict(watch.seconds),
            rules=self.rules.names,
            derived=repaired.derived,
            withdrawn=repaired.withdrawn,
            algorithm=repaired.algorithm,
            reason=repaired.reason,
            work=repaired.work,
            rounds=repaired.rounds,
            contradictions=repaired.contradictions or (),
            more_contradictions=repaired.more_contradictions,
            peak_memory=peak_memory(),
            bad_count=sum(staged.bad_count for staged in inputs),
            bad=tuple(bad for staged in inputs for bad in staged.bad),
            graphs_dropped=sum(staged.graphs_dropped for staged in inputs),
            files_read=len(store.reads),
            rows_read=sum(store.reads.values()),
            files_stored=len(base.files),
            rows_stored=sum(file.rows for file in base.files),
        )


def _purges(base: Snapshot) -> tuple[int, int]:
    """Return the numbers of the commits that began the last purge of terms, and ended one."""
    return base.transaction(PURGING) or 0, base.transaction(PURGED) or 0


def _dropped(store: Store) -> int:
    """Return the number of the last commit that took terms away."""
    return store.terms.table.snapshot().transaction(DROPPED) or 0


def _may_be_gone(exc: BaseException) -> bool:
    """Tell whether something failed as it does where files are missing."""
    if isinstance(exc, StoreError | OSError):
        return True
    return isinstance(exc, Exception) and is_engine_failure(exc)


def applied(base: Snapshot, transaction: tuple[str, int]) -> bool:
    """Tell whether a version has a batch of an application already."""
    application, batch = transaction
    last = base.transaction(application)
    return last is not None and last >= batch


def _repeated(version: int, change: Change, engine: Engine, watch: Stopwatch) -> ChangeReport:
    return ChangeReport(
        operation=change.operation,
        version=version,
        read=0,
        added=0,
        files=len(change.files),
        engine=engine.name,
        seconds=dict(watch.seconds),
        repeated=True,
    )
