"""What never expires in a version some of whose facts do, and its repair.

What is asserted for ever, and what follows from that alone, is a closed set of facts. It is
repaired as a version without a window is (`maintain.repair`), seen without the facts that have
times.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from inferlake.evaluate.blocks import Block, Scratch, Without, difference_sql
from inferlake.evaluate.lasting import FOREVER_SQL
from inferlake.evaluate.queries import Queries
from inferlake.evaluate.sets import Work
from inferlake.maintain.choice import Choice, choose, deeper
from inferlake.maintain.derive import Deriver
from inferlake.maintain.expiries import Expiries, read_expiries
from inferlake.maintain.repair import Repair, shared
from inferlake.maintain.touched import Touched
from inferlake.plan.clauses import Layout, layout
from inferlake.plan.patterns import Patterns
from inferlake.rules.load import compiled
from inferlake.rules.model import TRIPLE, Program
from inferlake.store.table import Snapshot


@dataclass(frozen=True)
class Permanent:
    """Facts that never expire: all of them, and what of them came and went."""

    forever: tuple[Block, ...]
    gone: tuple[Block, ...] = ()
    fresh: tuple[Block, ...] = ()
    work: Work = field(default_factory=Work)
    # How many rounds it takes to derive them all, as far as is known; None if that is as before.
    depth: int | None = None


@dataclass
class PermanentRepair:
    """The repair of what never expires in the version after `base`."""

    repair: Repair
    base: Snapshot

    @cached_property
    def before(self) -> Program:
        return compiled(self.repair.store.rules_at(self.base) or ())

    @property
    def after(self) -> Program:
        return self.repair.rules.program

    @cached_property
    def kept(self) -> Program:
        """The rules that stay."""
        return Program(shared(self.before, self.after), self.after.schema)

    @property
    def rules_change(self) -> bool:
        return self.before.rules != self.kept.rules or self.kept.rules != self.after.rules

    @cached_property
    def shape(self) -> Layout:
        return layout(self.before + self.after, {TRIPLE: 3})

    @cached_property
    def scratch(self) -> Scratch:
        return Scratch(self.repair.scratch)

    @cached_property
    def queries(self) -> Queries:
        return self.deriver(self.after).queries(self.scratch)

    @cached_property
    def times(self) -> Expiries:
        """What expires in the version before."""
        arities = {**self.before.arities, TRIPLE: 3}
        return read_expiries(self.repair.store, self.queries, self.base, arities)

    def deriver(self, program: Program, *, window: bool = False) -> Deriver:
        found = self.repair.deriver(program, self.shape)
        return replace(found, window=self.times) if window else found

    @property
    def everything(self) -> Patterns:
        return Patterns([(None,) * len(self.shape.columns)])

    # --- What comes and goes --------------------------------------------------------------------

    def choice(self, found: Touched) -> Choice | None:
        """Return how to repair what never expires, or None if nothing of it changes."""
        counts = found.counts
        if not (counts.comes or counts.goes or self.rules_change):
            return None
        asked = self.repair.how.algorithm
        depth = self.repair.depth(self.base)
        chosen = choose(asked, self.base, self.before, self.after, counts.goes, depth)
        # None is given up: a rebuild would also find anew until when everything else stands.
        return chosen.patient()

    def permanent(self, found: Touched, choice: Choice | None) -> Permanent:
        if choice is None:
            return Permanent(tuple(self.deriver(self.after, window=True).stored(self.base)))
        if choice.algorithm == "rebuild":
            return self._rebuilt(found)
        deriver = self.deriver(self.before + self.after, window=True)
        gone: tuple[Block, ...] = ()
        work = Work()
        if found.counts.goes or self.kept.rules != self.before.rules:
            removed = found.goes if found.counts.goes else None
            block = None if removed is None else self._block(removed)
            retracted = self.repair.retracted(
                deriver, self.scratch, self.base, block, self.before, self.kept, choice
            )
            gone, work = retracted.gone, retracted.work
        stored = deriver.stored(self.base)
        if gone:
            stored: list[Block] = [Without(self.shape, block, gone) for block in stored]
        given = self._given(found, gone)
        deriver = self.deriver(self.after)
        under = Program(shared(self.after, self.before), self.after.schema)
        closure = deriver.close(self.scratch, stored, given, under=under)
        fresh = (*given, *closure.fixpoint.new)
        depth = deeper(self.repair.depth(self.base), len(closure.rounds))
        return Permanent((*stored, *fresh), gone, fresh, work, depth)

    def _rebuilt(self, found: Touched) -> Permanent:
        """Derive what never expires from nothing."""
        stored = self.deriver(self.after, window=True).stored(self.base, ["asserted"])
        removed = found.goes
        if removed is not None:
            stored = [Without(self.shape, block, (removed,)) for block in stored]
        given = () if found.comes is None else (self._block(found.comes),)
        some = [block for block in given if block is not None]
        closure = self.deriver(self.after).close(self.scratch, [], [*stored, *some])
        fresh = (*some, *closure.fixpoint.new)
        return Permanent((*stored, *fresh), (), fresh, depth=len(closure.rounds))

    def _given(self, found: Touched, gone: tuple[Block, ...]) -> list[Block]:
        """Return what comes to be asserted for ever and does not follow for ever already."""
        comes = found.comes
        if comes is None or not found.counts.comes:
            return []
        frame = comes.frame(self.repair.engine, self.everything)
        assert frame is not None
        columns = self.shape.columns
        known = frame.where(f"e0 <=> {FOREVER_SQL}").select(*columns)
        lost = self.queries.facts(gone, self.everything)
        if lost is not None:
            text = difference_sql(self.shape)
            known = self.repair.engine.sql(text, one=known, other=lost)
        text = difference_sql(self.shape)
        new = self.repair.engine.sql(text, one=frame.select(*columns), other=known)
        block = self.queries.block(new)
        return [] if block is None else [block]

    def _block(self, chosen: Block) -> Block | None:
        """Write some facts by themselves, described."""
        frame = chosen.frame(self.repair.engine, self.everything)
        return None if frame is None else self.queries.block(frame.select(*self.shape.columns))
