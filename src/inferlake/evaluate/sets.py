"""Sets of facts in a removal: what rules make of them, and which of them were met before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.evaluate.blocks import (
    Block,
    FileBlock,
    Some,
    Without,
    difference_sql,
    may_match,
    same_sql,
)
from inferlake.evaluate.described import looks
from inferlake.evaluate.queries import Queries, Ranges
from inferlake.evaluate.report import Round
from inferlake.plan.groups import Group
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import Query, Range, add_members, add_variant, backward, variants
from inferlake.plan.strata import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Standing:
    """Facts and rules as they are when those to be removed are gone, and nothing else is yet."""

    # Rules that join; and linear ones too, unless they are composed.
    rules: tuple[Group, ...]
    # Composed linear rules.
    steps: tuple[Group, ...]
    # Every fact there was.
    known: tuple[Block, ...]
    # Facts that need no proof, and those of them that are not asserted.
    explicit: tuple[Block, ...]
    axioms: tuple[Block, ...]
    # All facts that rules may have derived.
    implied: tuple[Block, ...]
    # The rules again, divided so that each part may be settled before the next.
    parts: Callable[[], list[Part]] = list
    texts: dict[int, str] = field(default_factory=dict)
    # Asserted facts that go.
    removed: Block | None = None


@dataclass
class Work:
    """What a removal looked at: facts, and rule instances."""

    checked: int = 0
    examined: int = 0
    backward: int = 0
    forward: int = 0
    deletion: int = 0

    def __add__(self, other: Work) -> Work:
        mine, theirs = astuple(self), astuple(other)
        return Work(*(one + another for one, another in zip(mine, theirs, strict=True)))


# More kinds of facts than this are not told apart.
_MOST_PATTERNS = 200


class OutOfRounds(Exception):
    """A removal was not done after the rounds that it was given."""

    def __init__(self, rounds: int) -> None:
        super().__init__(rounds)
        self.rounds = rounds


@dataclass
class Account:
    """What a removal did, told round by round."""

    listen: Callable[[Round], None] = lambda done: None
    # How many rounds it may take; None means as many as it needs.
    most: int | None = None
    rounds: list[Round] = field(default_factory=list)
    work: Work = field(default_factory=Work)

    def say(self, kind: str, facts: int, began: float) -> None:
        """Tell of a round."""
        self.hear(Round(0, kind, (), facts, time.perf_counter() - began))

    def hear(self, done: Round) -> None:
        """Take over a round of a part of the work.

        Raises `OutOfRounds` if it was one too many. Only then is that known: what would have been
        the next query may have found nothing, and is no round.
        """
        self.rounds.append(replace(done, number=len(self.rounds) + 1))
        self.listen(self.rounds[-1])
        if self.most is not None and len(self.rounds) > self.most:
            raise OutOfRounds(self.most)


@dataclass
class Sets:
    """The queries of a removal over what stands."""

    queries: Queries
    standing: Standing
    account: Account = field(default_factory=Account)
    # Facts that do not meet this condition are left alone; what those that do look like, if known.
    among: str = "TRUE"
    wanted: Patterns | None = None

    def _forward(
        self, groups: tuple[Group, ...], ranges: Ranges, wanted: Patterns | None = None
    ) -> Query | None:
        """Return what groups derive with a new fact, of those that derive what is `wanted`.

        Others would be filtered out later; and Sail fails (as DataFusion does) if that leaves
        nothing of a union's first part, and something of one other.
        """
        query = Query(self.queries.layout, texts=self.standing.texts)
        facts = looks(ranges.new) or self._everything
        for group in groups:
            if wanted is not None and not group.heads.meet_any(wanted):
                continue
            for place, chosen in enumerate(variants(len(group.clause.body))):
                near = group.meeting(place, facts)
                if near is not None and ranges.can_join(near, chosen):
                    add_variant(query, near, chosen, ranges)
        return query if query.selects else None

    def _add_members(self, query: Query, ranges: Ranges) -> None:
        """Add the new facts that are among all."""
        patterns = looks(ranges.new) or self._everything
        if any(may_match(block, patterns) for block in ranges.all):
            add_members(query, patterns, ranges)

    def _add_backward(self, query: Query, groups: tuple[Group, ...], ranges: Ranges) -> None:
        """Add the new facts that groups derive from all."""
        for group in groups:
            asked = self._asked(group, ranges)
            places = (Range.NEW, *(Range.ALL for _ in group.clause.body))
            if asked is not None and ranges.can_join(asked, places):
                add_variant(query, asked, places, ranges)

    def _asked(self, group: Group, ranges: Ranges) -> Group | None:
        """Return what to ask for derivations of the new facts: the clauses that may derive one."""
        return backward(group).meeting(0, looks(ranges.new) or self._everything)

    def _new(
        self, query: Query, seen: list[Block], *, within: list[Block] | None = None
    ) -> FileBlock | None:
        """Write what a query gives with how often (`n`), and whether it was `seen` (`fresh`)."""
        layout, engine = self.queries.layout, self.queries.engine
        columns = ", ".join(layout.columns)
        grouped = f"SELECT {columns}, count(*) AS n FROM ({{made}}) made GROUP BY {columns}"
        made = self.queries.result(query, grouped).where(self.among)
        wanted = self._all(within) if within is not None else None
        if wanted is not None:
            text = f"""SELECT made.* FROM {{made}} made LEFT SEMI JOIN {{wanted}} wanted
                ON {same_sql(layout, "made", "wanted")}"""
            made = engine.sql(text, made=made, wanted=wanted)
        known = self._all(seen)
        if known is None:
            return self.queries.block(made.selectExpr("*", "BIGINT(1) AS fresh"))
        first = layout.columns[0]
        text = f"""SELECT made.*, IF(seen.{first} IS NULL, BIGINT(1), BIGINT(0)) AS fresh
            FROM {{made}} made LEFT JOIN {{seen}} seen ON {same_sql(layout, "made", "seen")}"""
        return self.queries.block(engine.sql(text, made=made, seen=known))

    def _kept(self, kind: str, made: FileBlock, seen: list[Block], began: float) -> Block | None:
        """Add what is fresh to those `seen`."""
        fresh = parquet.total(made.at, made.files, "fresh")
        self.account.say(kind, fresh, began)
        if not fresh:
            return None
        kept = Some(made, "fresh", 1, fresh)
        seen.append(kept)
        return kept

    @property
    def _everything(self) -> Patterns:
        return Patterns([(None,) * len(self.queries.layout.columns)])

    def _tell_apart(self, some: Patterns) -> bool:
        """Tell whether there are other facts than these, and a filter for them is not too long."""
        return len(some.rows) <= _MOST_PATTERNS and self._everything.rows[0] not in some.rows

    def _all(self, blocks: list[Block]) -> DataFrame | None:
        return self.queries.facts(blocks, self._everything)

    def _minus(self, facts: DataFrame | None, blocks: list[Block]) -> DataFrame | None:
        other = self._all(blocks)
        if facts is None or other is None:
            return facts
        return self.queries.engine.sql(difference_sql(self.queries.layout), one=facts, other=other)

    def _written(self, facts: DataFrame | None) -> FileBlock | None:
        if facts is None:
            return None
        return self.queries.block(facts.select(*self.queries.layout.columns))

    def _known_without(self, gone: list[Block]) -> tuple[Block, ...]:
        return self._without(self.standing.known, gone)

    def _without(self, blocks: tuple[Block, ...], gone: list[Block]) -> tuple[Block, ...]:
        if not gone:
            return blocks
        return tuple(Without(self.queries.layout, block, tuple(gone)) for block in blocks)


def rows_of(blocks: Iterable[Block]) -> int:
    return sum(block.rows for block in blocks)
