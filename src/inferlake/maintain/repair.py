"""Repair: the derived layer of a version, after asserted facts and rules have come and gone.

First what goes: facts that no longer follow are found by `bf`, `dred` or `counting`, under the
rules that stay. What is left is closed under those. Then what comes: new facts and new rules derive
more, from the facts that they can meet. Or everything is derived again from nothing (`rebuild`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.evaluate.blocks import Block, FileBlock, Scratch, Without
from inferlake.evaluate.closure import Closure, Rules, relation
from inferlake.evaluate.contradictions import Broken
from inferlake.evaluate.described import READ_BY_DRIVER, Describer
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.report import Contradiction, Round
from inferlake.evaluate.retract import Retracted, Retraction
from inferlake.evaluate.sets import OutOfRounds, Work
from inferlake.maintain.choice import Choice, choose, deeper
from inferlake.maintain.derive import AddedBlock, Derivation, Deriver, TableScratch
from inferlake.maintain.rules import ChosenRules
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.plan.clauses import Layout, clauses, layout, patterns
from inferlake.plan.patterns import Patterns
from inferlake.progress import Progress
from inferlake.rules.load import compiled
from inferlake.rules.model import TRIPLE, Program, Rule
from inferlake.session import Engine
from inferlake.store import Store
from inferlake.store.facts import ANY, Candidates, not_among, stored_columns
from inferlake.store.store import DEPTH, HURRIED, SOUND
from inferlake.store.table import LiveFile, Snapshot

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

# Contradictions of one rule that a report lists.
SHOWN = 20


@dataclass(frozen=True)
class Asserted:
    """The asserted triples that a change has written: those that come, and those that go."""

    written: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    # What is known of those that come, to find the files they can meet.
    near: Candidates = ANY
    # Triples that were to go, whether or not they were there.
    asked: int = 0

    @property
    def added(self) -> int:
        return parquet.rows(self.written)

    @property
    def taken(self) -> int:
        return parquet.rows(self.removed)


@dataclass(frozen=True)
class Repaired:
    """What the derived layer gains and loses, and what the log must say of it."""

    derived: int
    withdrawn: int
    actions: tuple[AddAction, ...]
    # Files of the derived layer that the version no longer has.
    replaced: tuple[LiveFile, ...]
    algorithm: str
    reason: str
    rounds: tuple[Round, ...]
    # How many of them it takes to derive everything, as far as is known.
    depth: int
    work: Work
    # None if nobody asked: then the version breaks no more constraints than the one before.
    contradictions: tuple[Contradiction, ...] | None
    more_contradictions: bool
    # How many removals to come are hurried.
    to_hurry: int = 0


@dataclass
class Repair:
    """The repair of one version."""

    store: Store
    engine: Engine
    rules: ChosenRules
    id_of: Callable[[str], int]
    how: Derivation
    progress: Progress
    scratch: Place
    _rounds: list[Round] = field(default_factory=list)

    def run(self, base: Snapshot, asserted: Asserted) -> Repaired:
        """Derive what follows in the version after `base`, once `asserted` triples changed."""
        before = compiled(self.store.rules_at(base) or ())
        asked, after = self.how.algorithm, self.rules.program
        # What was given up under other rules tells nothing.
        left = self.to_hurry(base) if before.rules == after.rules else 0
        taken, depth = asserted.taken, self.depth(base)
        choice = choose(asked, base, before, after, taken, depth, hurried=left > 0)
        if self.how.limits != Limits():
            choice = choice.patient()  # they are of a change, and a rebuild would count it all
        version = base.version + 1
        scratch = TableScratch(self.scratch, store=self.store, engine=self.engine, version=version)
        repaired = None
        if choice.algorithm != "rebuild":
            try:
                repaired = self._repaired(base, asserted, before, choice, scratch)
            except OutOfRounds as out:
                choice = choice.given_up(out.rounds)
        if repaired is None:
            repaired = self._rebuilt(base, asserted, choice, scratch)
        return replace(repaired, to_hurry=choice.to_hurry(left))

    @property
    def rounds(self) -> tuple[Round, ...]:
        """What was done so far."""
        return tuple(self._rounds)

    def depth(self, base: Snapshot) -> int:
        """Return how many rounds it took to derive what a version has, as far as its log says."""
        return self.store.facts.table.last_said(base, DEPTH) or 0

    def to_hurry(self, base: Snapshot) -> int:
        """Return how many removals are hurried, since one was given up."""
        return self.store.facts.table.last_said(base, HURRIED) or 0

    # --- From nothing ----------------------------------------------------------------------------

    def _rebuilt(
        self, base: Snapshot, asserted: Asserted, choice: Choice, scratch: TableScratch
    ) -> Repaired:
        deriver = self.deriver(self.rules.program)
        stored = deriver.stored(base, ["asserted"])
        if asserted.removed:
            gone = (self._triples(deriver.layout, asserted.removed),)
            stored = [Without(deriver.layout, block, gone) for block in stored]
        added = AddedBlock(deriver.layout, self.store, asserted.written)
        closure = deriver.close(scratch, [], [*stored, added])
        broken, more = closure.contradictions(SHOWN)
        actions = self._published(deriver, scratch, closure, base.version + 1)
        replaced = tuple(f for f in base.files if f.partition["layer"] == "derived")
        return Repaired(
            derived=closure.derived,
            withdrawn=live_rows(replaced),
            actions=actions,
            replaced=replaced,
            algorithm=choice.algorithm,
            reason=choice.reason,
            rounds=self.rounds,
            depth=len(closure.rounds),
            work=Work(),
            contradictions=tuple(self.told(deriver.layout, broken)),
            more_contradictions=more,
        )

    # --- From what there is ----------------------------------------------------------------------

    def _repaired(
        self,
        base: Snapshot,
        asserted: Asserted,
        before: Program,
        choice: Choice,
        scratch: TableScratch,
    ) -> Repaired:
        after = self.rules.program
        shape = layout(before + after, {TRIPLE: 3})
        kept = Program(shared(before, after), after.schema)
        version = base.version + 1
        deriver = self.deriver(before + after)
        retracted = Retracted((), Work())
        can_lose = bool(asserted.removed) or kept.rules != before.rules
        if can_lose:
            removed = self._triples(shape, asserted.removed) if asserted.removed else None
            retracted = self.retracted(deriver, scratch, base, removed, before, kept, choice)
        gone = retracted.gone
        stored = deriver.stored(base)
        if gone:
            stored: list[Block] = [Without(shape, block, gone) for block in stored]
        both = self._both(deriver, base, asserted, gone)
        known = self.store.facts.read(self.engine, both) if both else None
        added: Block = AddedBlock(shape, self.store, asserted.written, known)
        if known is None and 0 < asserted.added <= READ_BY_DRIVER:
            added = self._triples(shape, asserted.written)
        deriver = self.deriver(after, shape)
        actions: tuple[AddAction, ...] = self.store.facts.actions(both, "derived", sign=-1)
        derived, broken, more, depth = 0, [], False, self.depth(base)
        sound = self.store.facts.table.last_said(base, SOUND) is True
        if added.rows or kept.rules != after.rules:
            under = Program(shared(after, before), after.schema)  # by the names that they have now
            closure = deriver.close(scratch, stored, [added], under=under)
            derived, depth = closure.derived, deeper(depth, len(closure.rounds))
            # Before it is published: the files of a closure that is written again go with that.
            broken, more = closure.contradictions(SHOWN, sound=sound)
            actions += self._published(deriver, scratch, closure, version)
        elif not sound:
            broken, more = self._contradictions(deriver, scratch, stored)
        dropped = tuple(f for f in base.files if f.partition["relation"] not in self._relations)
        withdrawn, moved, written = self._withdrawn(deriver, version, asserted, gone)
        return Repaired(
            derived=derived + moved,
            withdrawn=withdrawn + parquet.rows(both) + live_rows(dropped),
            actions=actions + written,
            replaced=dropped,
            algorithm=choice.algorithm if can_lose else "",
            reason=choice.reason if can_lose else "",
            rounds=self.rounds,
            depth=depth,
            work=retracted.work,
            contradictions=tuple(self.told(shape, broken)),
            more_contradictions=more,
        )

    def retracted(
        self,
        deriver: Deriver,
        scratch: Scratch,
        base: Snapshot,
        removed: Block | None,
        before: Program,
        kept: Program,
        choice: Choice,
    ) -> Retracted:
        """Find what no longer follows from what is left of the facts and rules."""
        shape = deriver.layout
        rules = Rules(before, self.id_of)
        queries = rules.queries(self.engine, shape, scratch, deriver.terms)
        of_before = clauses(before, shape, self.id_of)
        of_kept = set(clauses(kept, shape, self.id_of))
        retraction = Retraction(
            queries,
            of_before,
            tuple(clause for clause in of_before if clause in of_kept),
            patterns(before, shape, self.id_of),
            tuple(deriver.stored(base, ["asserted"])),
            tuple(deriver.stored(base, ["derived"])),
            removed,
            rules.texts,
            self.how.options,
            self.listen,
        )
        assert choice.algorithm != "rebuild"
        return retraction.run(choice.algorithm, choice.most_rounds)

    def _both(
        self, deriver: Deriver, base: Snapshot, asserted: Asserted, gone: tuple[Block, ...]
    ) -> tuple[DataFile, ...]:
        """Write the new asserted triples that were derived, and so leave the derived layer."""
        facts = self.store.facts
        if not asserted.written or not facts.files(base, "derived", 1, asserted.near):
            return ()
        fresh = facts.read(self.engine, asserted.written)
        found = facts.met(self.engine, base, "derived", fresh, asserted.added, asserted.near)
        if gone:
            lost = relation(self.engine, deriver.layout, list(gone), TRIPLE)
            found = not_among(self.engine, found, lost)
        return facts.table.write(found.selectExpr("*", f"BIGINT({base.version + 1}) AS version"))

    def _withdrawn(
        self, deriver: Deriver, version: int, asserted: Asserted, gone: tuple[Block, ...]
    ) -> tuple[int, int, tuple[AddAction, ...]]:
        """Write what leaves the derived layer, and the removed triples that still follow.

        Returns how many there are of either, and their log entries.
        """
        facts, shape = self.store.facts, deriver.layout
        actions: tuple[AddAction, ...] = ()
        stamp = f"BIGINT({version}) AS version"
        withdrawn = moved = 0
        removed = facts.read(self.engine, asserted.removed) if asserted.removed else None
        for name in sorted(self._relations) if gone else ():
            arity = shape.arities[name]
            lost = relation(self.engine, shape, list(gone), name)
            if name == TRIPLE and removed is not None:
                lost = not_among(self.engine, lost, removed)
            files = facts.table.write(lost.selectExpr(*stored_columns(arity), stamp))
            withdrawn += parquet.rows(files)
            actions += facts.actions(files, "derived", sign=-1, relation=name)
        if removed is not None:
            left = removed.select("s", "p", "o")
            if gone:
                lost = relation(self.engine, shape, list(gone), TRIPLE)
                left = not_among(self.engine, left, lost)
            files = facts.table.write(left.selectExpr("*", stamp))
            moved = parquet.rows(files)
            actions += facts.actions(files, "derived")
        return withdrawn, moved, actions

    @property
    def _relations(self) -> dict[str, int]:
        """The relations that the version will have."""
        return layout(self.rules.program, {TRIPLE: 3}).arities

    # --- Parts -----------------------------------------------------------------------------------

    def deriver(self, program: Program, shape: Layout | None = None) -> Deriver:
        shape = shape or layout(program, {TRIPLE: 3})
        return Deriver(self.store, self.engine, program, shape, self.id_of, self.how, self.listen)

    def listen(self, done: Round) -> None:
        """Number the rounds of a repair from its first to its last."""
        self._rounds.append(replace(done, number=len(self._rounds) + 1))
        self.progress.note(str(self._rounds[-1]))

    def _triples(self, shape: Layout, files: tuple[DataFile, ...]) -> Block:
        """Return triples that the change has written, with what they look like."""
        triples = Patterns([shape.row(TRIPLE, ["s", "p", "o"])])
        block = FileBlock(shape, self.store.facts.table.place, files, triples, relation=TRIPLE)
        type_id = Rules(Program(), self.id_of).type_id
        return Describer(self.engine, shape, type_id).described(block)

    def _published(
        self, deriver: Deriver, scratch: TableScratch, closure: Closure, version: int
    ) -> tuple[AddAction, ...]:
        """Put what was derived into the table: the files as they are, or written once more."""
        actions = deriver.publish(closure, version)
        taken = {action.path for action in actions}
        self.store.facts.table.discard(p for p in scratch.written if p not in taken)
        return actions

    def _contradictions(
        self, deriver: Deriver, scratch: Scratch, stored: list[Block]
    ) -> tuple[list[Broken], bool]:
        """Return what constraints are broken where nothing was derived."""
        if not any(rule.is_constraint for rule in self.rules.program.rules):
            return [], False
        closure = deriver.close(scratch, stored, [])
        return closure.contradictions(SHOWN)

    def told(self, shape: Layout, broken: list[Broken]) -> Iterator[Contradiction]:
        """Yield contradictions in terms."""
        ids = {id for one in broken for row in one.facts for id in row if id is not None}
        terms = self.store.terms.look_up(self.engine, ids) if ids else {}
        for one in broken:
            named = (shape.named(row) for row in one.facts)
            facts = tuple((name, tuple(terms[id] for id in args)) for name, args in named)
            yield Contradiction(one.rule, facts)


def shared(one: Program, other: Program) -> tuple[Rule, ...]:
    """Return the rules of the one that the other has too, perhaps under other names."""
    return tuple(rule for rule in one.rules if rule in other.rules)


def live_rows(files: Iterable[LiveFile]) -> int:
    """Return how many rows signed files leave standing."""
    return sum(file.rows * int(file.partition["sign"]) for file in files)
