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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, Without, difference_sql
from inferlake.evaluate.contradictions import Broken
from inferlake.evaluate.lasting import FOREVER_SQL, lasting
from inferlake.maintain.choice import Choice
from inferlake.maintain.expiries import after
from inferlake.maintain.moves import Moved, Outcome, moves
from inferlake.maintain.permanent import Permanent, PermanentRepair
from inferlake.maintain.repair import SHOWN, Repaired, live_rows
from inferlake.maintain.touched import Counts, Touched, touched
from inferlake.rules.model import TRIPLE
from inferlake.session import union
from inferlake.store.table import LiveFile
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


@dataclass
class WindowRepair(PermanentRepair):
    """The repair of the version after `base`, at the time `clock`."""

    clock: int | None

    def run(self, said: DataFrame | None) -> Lasted:
        """Let facts go that are due, then do what is `said` of triples, and derive.

        For the columns of `said` see `maintain.touched`.
        """
        found = Touched(None)
        if said is not None:
            store, times = self.repair.store, self.times
            found = touched(store, self.queries, self.base, times, said, self.clock)
        choice = self.choice(found)
        rebuilt = choice is not None and choice.algorithm == "rebuild"
        permanent = self.permanent(found, choice)
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
        if said is not None or self.rules_change:
            broken, more = self._contradictions(permanent, times)
        repaired = self._repaired(moved, permanent, self._how(found, choice), broken, more)
        return Lasted(found.counts, moved.due, repaired)

    # --- What expires ----------------------------------------------------------------------------

    def _lasting(self, found: Touched, permanent: Permanent, rebuilt: bool) -> list[Block]:
        """Return the facts that stand for a time, with the times."""
        alive = self.times.alive(self.clock)
        again = bool(rebuilt or found.counts.lowered or self.rules_change)
        known = None if again else alive
        given = self._assertions(found) if again else self._arrivals(found)
        fresh = () if again else permanent.fresh
        before: list[Block] = [] if known is None else [known]
        if given is None and not (known is not None and fresh):
            return before
        expiring = self.deriver(self.after).expiring(self.queries, permanent.forever)
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
        here = None if kept is None else kept.frame(engine, self.everything)
        named = found.chosen("TRUE")
        if here is not None and named is not None:
            others = named.frame(engine, self.everything)
            assert others is not None
            here = engine.sql(difference_sql(self.shape), one=here, other=others)
        if here is not None:
            frames.append(here)
        timed = found.chosen(f"a1 < {FOREVER_SQL}", "a1 AS e")
        if timed is not None and found.counts.timed:
            frame = timed.frame(engine, self.everything)
            assert frame is not None
            frames.append(frame)
        block = self.queries.block(union(frames)) if frames else None
        return None if block is None else lasting(block)

    # --- What to tell ----------------------------------------------------------------------------

    def _contradictions(
        self, permanent: Permanent, times: Iterable[Block]
    ) -> tuple[list[Broken], bool]:
        """Return what constraints are broken, by facts with times or without."""
        if not any(rule.is_constraint for rule in self.after.rules):
            return [], False
        blocks: list[Block] = [*permanent.forever]
        frame = self.queries.facts(times, self.everything)
        if frame is not None:
            once = self.queries.block(frame.select(*self.shape.columns).distinct())
            if once is not None:
                # What never expires now may have had a time before.
                blocks = [*(Without(self.shape, block, (once,)) for block in blocks), once]
        closure = self.deriver(self.after).close(self.scratch, blocks, [])
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
        permanent: Permanent,
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
            depth=self.repair.depth(self.base) if permanent.depth is None else permanent.depth,
            work=permanent.work,
            contradictions=None if broken is None else tuple(self.repair.told(self.shape, broken)),
            more_contradictions=more,
            to_hurry=self.repair.to_hurry(self.base),
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
