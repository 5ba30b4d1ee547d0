"""Repair of a version in which facts expire.

What never expires is a closed set of facts by itself: what is asserted for ever, and what follows
from that alone. It is repaired as a version without a window is (`maintain.repair`), seen without
the facts that have times. Then come those: what follows with at least one of them, and until when
(`evaluate.expiring`). Additions only raise times, from those there are. If an assertion ends sooner
than it was to, or rules change, the times are found anew from what is asserted; that costs what the
window holds, not the store. What only expires needs no rule: its time has come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, Scratch, Without, difference_sql
from inferlake.evaluate.contradictions import Broken
from inferlake.evaluate.lasting import FOREVER_SQL, lasting
from inferlake.evaluate.queries import Queries
from inferlake.evaluate.report import Round
from inferlake.evaluate.sets import Work
from inferlake.maintain.choice import Choice, choose
from inferlake.maintain.derive import Deriver
from inferlake.maintain.expiries import Expiries, after, read_expiries
from inferlake.maintain.moves import Moved, Outcome, moves
from inferlake.maintain.repair import SHOWN, Repair, Repaired, live_rows
from inferlake.maintain.touched import Counts, Touched, touched
from inferlake.plan.clauses import Layout, layout
from inferlake.plan.patterns import Patterns
from inferlake.rules.load import compiled
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import union
from inferlake.store.table import LiveFile, Snapshot
from inferlake.store.until import of_facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What a report calls the way in which it is found what no longer follows from what expires.
WINDOW = "window"


@dataclass(frozen=True)
class Lasted:
    """What became of the assertions that a change names, and of what was due."""

    counts: Counts
    # Facts whose time had come.
    expired: int
    repaired: Repaired


@dataclass(frozen=True)
class _Permanent:
    """Facts that never expire: all of them, and what of them came and went."""

    forever: tuple[Block, ...]
    gone: tuple[Block, ...] = ()
    fresh: tuple[Block, ...] = ()
    work: Work = field(default_factory=Work)


@dataclass
class WindowRepair(Repair):
    """The repair of one version, some of whose facts expire."""

    def run_until(self, base: Snapshot, said: DataFrame | None, clock: int | None) -> Lasted:
        """Let facts go up to the time `clock`, then do what is `said` of triples, and derive.

        For the columns of `said` see `maintain.touched`.
        """
        work = _WindowWork(self, base, clock)
        return work.run(said)

    @property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(self._rounds)


@dataclass
class _WindowWork:
    """One such repair under way."""

    repair: WindowRepair
    base: Snapshot
    clock: int | None

    def run(self, said: DataFrame | None) -> Lasted:
        found = Touched(None)
        if said is not None:
            store, times = self.repair.store, self.times
            found = touched(store, self.queries, self.base, times, said, self.clock)
        choice = self._choice(found)
        rebuilt = choice is not None and choice.algorithm == "rebuild"
        permanent = self._permanent(found, choice)
        times = self._lasting(found, permanent, rebuilt)
        outcome = Outcome(found, permanent.gone, permanent.fresh, tuple(times), rebuilt)
        moved = moves(
            self.repair.store,
            self.queries,
            self.times,
            outcome,
            self.clock,
            self.base.version + 1,
            self.after.arities.keys() | {TRIPLE},
        )
        broken, more = None, False
        if said is not None or self._rules_change:
            broken, more = self._contradictions(permanent, times)
        repaired = self._repaired(moved, permanent, self._how(found, choice), broken, more)
        return Lasted(found.counts, moved.due, repaired)

    # --- What there is ---------------------------------------------------------------------------

    @cached_property
    def before(self) -> Program:
        return compiled(self.repair.store.rules_at(self.base) or ())

    @property
    def after(self) -> Program:
        return self.repair.rules.program

    @cached_property
    def kept(self) -> Program:
        """The rules that stay."""
        stay = tuple(rule for rule in self.before.rules if rule in self.after.rules)
        return Program(stay, self.after.schema)

    @property
    def _rules_change(self) -> bool:
        return self.before.rules != self.kept.rules or self.kept.rules != self.after.rules

    @cached_property
    def shape(self) -> Layout:
        return layout(self.before + self.after, {TRIPLE: 3})

    @cached_property
    def scratch(self) -> Scratch:
        return Scratch(self.repair.scratch)

    @cached_property
    def queries(self) -> Queries:
        return self._deriver(self.after).queries(self.scratch)

    @cached_property
    def times(self) -> Expiries:
        """What expires in the version before."""
        arities = {**self.before.arities, TRIPLE: 3}
        return read_expiries(self.repair.store, self.queries, self.base, arities)

    def _deriver(self, program: Program, *, window: bool = False) -> Deriver:
        found = self.repair.deriver(program, self.shape)
        return replace(found, window=self.times) if window else found

    @property
    def _everything(self) -> Patterns:
        return Patterns([(None,) * len(self.shape.columns)])

    # --- What never expires ----------------------------------------------------------------------

    def _choice(self, found: Touched) -> Choice | None:
        """Return how to repair what never expires, or None if nothing of it changes."""
        counts = found.counts
        if not (counts.comes or counts.goes or self._rules_change):
            return None
        asked = self.repair.how.algorithm
        return choose(asked, self.base, self.before, self.after, counts.goes)

    def _permanent(self, found: Touched, choice: Choice | None) -> _Permanent:
        if choice is None:
            return _Permanent(tuple(self._deriver(self.after, window=True).stored(self.base)))
        if choice.algorithm == "rebuild":
            return self._rebuilt(found)
        deriver = self._deriver(self.before + self.after, window=True)
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
        deriver = self._deriver(self.after)
        closure = deriver.close(self.scratch, stored, given, under=self.kept)
        fresh = (*given, *closure.fixpoint.new)
        return _Permanent((*stored, *fresh), gone, fresh, work)

    def _rebuilt(self, found: Touched) -> _Permanent:
        """Derive what never expires from nothing."""
        stored = self._deriver(self.after, window=True).stored(self.base, ["asserted"])
        removed = found.goes
        if removed is not None:
            stored = [Without(self.shape, block, (removed,)) for block in stored]
        given = () if found.comes is None else (self._block(found.comes),)
        some = [block for block in given if block is not None]
        closure = self._deriver(self.after).close(self.scratch, [], [*stored, *some])
        fresh = (*some, *closure.fixpoint.new)
        return _Permanent((*stored, *fresh), (), fresh)

    def _given(self, found: Touched, gone: tuple[Block, ...]) -> list[Block]:
        """Return what comes to be asserted for ever and does not follow for ever already."""
        comes = found.comes
        if comes is None or not found.counts.comes:
            return []
        frame = comes.frame(self.repair.engine, self._everything)
        assert frame is not None
        columns = self.shape.columns
        known = frame.where(f"e0 <=> {FOREVER_SQL}").select(*columns)
        lost = self.queries.facts(gone, self._everything)
        if lost is not None:
            text = difference_sql(self.shape)
            known = self.repair.engine.sql(text, one=known, other=lost)
        text = difference_sql(self.shape)
        new = self.repair.engine.sql(text, one=frame.select(*columns), other=known)
        block = self.queries.block(new)
        return [] if block is None else [block]

    def _block(self, chosen: Block) -> Block | None:
        """Write some facts by themselves, described."""
        frame = chosen.frame(self.repair.engine, self._everything)
        return None if frame is None else self.queries.block(frame.select(*self.shape.columns))

    # --- What expires ----------------------------------------------------------------------------

    def _lasting(self, found: Touched, permanent: _Permanent, rebuilt: bool) -> list[Block]:
        """Return the facts that stand for a time, with the times."""
        alive = self.times.alive(self.clock)
        again = bool(rebuilt or found.counts.lowered or self._rules_change)
        known = None if again else alive
        given = self._assertions(found) if again else self._arrivals(found)
        fresh = () if again else permanent.fresh
        before: list[Block] = [] if known is None else [known]
        if given is None and not (known is not None and fresh):
            return before
        expiring = self._deriver(self.after).expiring(self.queries, permanent.forever)
        return [*before, *expiring.run(known, given, fresh)]

    def _arrivals(self, found: Touched) -> Block | None:
        """Return what is asserted for longer than it stood, with the time."""
        if not found.counts.timed:
            return None
        # What stood until the clock has gone: a time later than that is longer.
        longer = f"a1 < {FOREVER_SQL} AND (e0 IS NULL OR e0 < a1)"
        return found.chosen(longer, "a1 AS e")

    def _assertions(self, found: Touched) -> Block | None:
        """Return all that is asserted for a time, with the time."""
        engine = self.repair.engine
        frames: list[DataFrame] = []
        kept = self.times.chosen(f"{after(self.clock, 'a')} AND a IS NOT NULL", "a AS e")
        here = None if kept is None else kept.frame(engine, self._everything)
        named = found.chosen("TRUE")
        if here is not None and named is not None:
            others = named.frame(engine, self._everything)
            assert others is not None
            here = engine.sql(difference_sql(self.shape), one=here, other=others)
        if here is not None:
            frames.append(here)
        timed = found.chosen(f"a1 < {FOREVER_SQL}", "a1 AS e")
        if timed is not None and found.counts.timed:
            frame = timed.frame(engine, self._everything)
            assert frame is not None
            frames.append(frame)
        block = self.queries.block(union(frames)) if frames else None
        return None if block is None else lasting(block)

    # --- What to tell ----------------------------------------------------------------------------

    def _contradictions(
        self, permanent: _Permanent, times: Iterable[Block]
    ) -> tuple[list[Broken], bool]:
        """Return what constraints are broken, by facts with times or without."""
        if not any(rule.is_constraint for rule in self.after.rules):
            return [], False
        blocks: list[Block] = [*permanent.forever]
        frame = self.queries.facts(times, self._everything)
        if frame is not None:
            once = self.queries.block(frame.select(*self.shape.columns).distinct())
            if once is not None:
                # What never expires now may have had a time before.
                blocks = [*(Without(self.shape, block, (once,)) for block in blocks), once]
        closure = self._deriver(self.after).close(self.scratch, blocks, [])
        return closure.contradictions(SHOWN)

    def _how(self, found: Touched, choice: Choice | None) -> tuple[str, str]:
        """Return how it was found what no longer follows, and why so."""
        loses = bool(found.counts.goes) or self.kept.rules != self.before.rules
        if choice is not None and (loses or choice.algorithm == "rebuild"):
            return choice.algorithm, choice.reason
        if found.counts.lowered:
            return WINDOW, "what expires was derived again"
        return "", ""

    def _repaired(
        self,
        moved: Moved,
        permanent: _Permanent,
        how: tuple[str, str],
        broken: list[Broken] | None,
        more: bool,
    ) -> Repaired:
        algorithm, reason = how
        replaced = self._replaced(algorithm == "rebuild")
        lost = live_rows(f for f in replaced if f.partition["relation"] in self.shape.arities)
        return Repaired(
            derived=moved.derived,
            withdrawn=moved.withdrawn + lost,
            actions=moved.actions,
            replaced=replaced,
            algorithm=algorithm,
            reason=reason,
            rounds=self.repair.rounds,
            work=permanent.work,
            contradictions=None if broken is None else tuple(self.repair.told(self.shape, broken)),
            more_contradictions=more,
        )

    def _replaced(self, rebuilt: bool) -> tuple[LiveFile, ...]:
        """Return the files that the version no longer has."""
        relations = {*self.after.arities, TRIPLE}
        return tuple(
            file
            for file in self.base.files
            if of_facts(file.partition["relation"]) not in relations
            or (rebuilt and file.partition["layer"] == "derived")
        )
