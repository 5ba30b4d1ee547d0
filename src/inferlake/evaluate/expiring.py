"""Until when facts stand that follow from facts which expire.

After IMaRS (Barbieri et al., *Incremental Reasoning on Streams and Rich Background Knowledge*, ESWC
2010): a derived fact stands until the first of the facts goes that it follows from, and if it
follows in several ways, until the last of these ends. Times form a semiring with `max` for `+` and
`min` for `*`, which absorbs: going round a circle of rules never makes a time later, so a fixpoint
over (fact, time) ends, and facts that support each other in a circle expire with what brought them.

Facts that never expire are closed by other means. Here only those instances of rules are looked at
that have a fact with a time among their premises: the work follows the window, not the store.

The invariant after each round: what follows in one step from the rounds before is known, with a
time at least as late. A round is one query for what follows with its latest time, and one for what
of that is not known, or not known for so long.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from inferlake.evaluate.blocks import Block, FileBlock, matching_sql, may_match, same_sql
from inferlake.evaluate.described import looks
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.known import Known
from inferlake.evaluate.lasting import Forever, lasting
from inferlake.evaluate.queries import Queries, Ranges
from inferlake.evaluate.report import Round
from inferlake.evaluate.schema import SchemaFacts
from inferlake.plan.clauses import Clause, Row
from inferlake.plan.compile import Options, Plan, compile_plan
from inferlake.plan.groups import Group
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import Query, Range, add_lasting, variants

WINDOW = "window"

# Beyond this, the blocks of the rounds are merged: a file costs more to open than rows to write.
_MOST_BLOCKS = 16


class _SchemaMoves(Exception):
    """Schema is among the facts at work, and rules put together with it do not show it.

    If it expires, they do not say when; if it is new, they do not say what of old facts is.
    """


@dataclass
class Expiring:
    """One evaluation of times. The queries must know the extra column `e`."""

    queries: Queries
    clauses: tuple[Clause, ...]
    patterns: tuple[Row, ...]
    # Facts that never expire, closed under the rules.
    forever: tuple[Block, ...]
    texts: dict[int, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    listen: Callable[[Round], None] = lambda done: None
    rounds: list[Round] = field(default_factory=list)

    def run(
        self, known: Block | None, given: Block | None, fresh: Iterable[Block] = ()
    ) -> list[Block]:
        """Return what is to stand longer than it was known to, with the times until when.

        `known` facts have times that were right before `given` ones came, and before some of those
        that never expire did, which are `fresh`. What is given comes back too, unless it was known
        to stand as long; a fact may come back several times, and then its latest time counts.
        """
        before = () if known is None else (known,)
        start = None if given is None else self._longer(given, before)
        new = tuple(block for block in fresh if block.rows)
        if start is None and (known is None or not new):
            return []
        try:
            return self._closed(self._specialised(), before, start, new)
        except _SchemaMoves:
            plain = compile_plan(self.clauses, (), (), replace(self.options, specialised=False))
            return self._closed(plain, before, start, new)

    def _specialised(self) -> Plan:
        """Put the schema that never expires into the rules."""
        queries = self.queries
        if not self.options.specialised or not self.patterns:
            raise _SchemaMoves
        known = Known(queries.engine, queries.layout, queries.scratch, queries.type_id)
        finder = SchemaFacts(known, self.patterns, self.options.driver_facts)
        schema = finder.among(self.forever)
        return compile_plan(self.clauses, finder.patterns, schema, self.options)

    def _closed(
        self,
        plan: Plan,
        before: tuple[Block, ...],
        start: FileBlock | None,
        fresh: tuple[Block, ...],
    ) -> list[Block]:
        found: list[Block] = [] if start is None else [lasting(start)]
        self._refuse_schema(plan, (*before, *found))
        groups = (*(g for g in plan.joins() if g.clause.head is not None), *plan.steps())
        forever = tuple(map(Forever, self.forever))
        new = tuple(found)
        query = self._query()
        if before and fresh:
            self._refuse_schema(plan, fresh)
            there = (*forever, *before, *found)
            of = Ranges(before, tuple(map(Forever, fresh)), there)
            _add(query, groups, of, _beside_known)
        while True:
            earlier = (*forever, *before, *(block for block in found if block not in new))
            if new:
                _add(query, groups, Ranges(earlier, new, (*earlier, *new)), _semi_naive)
            last = self._round(query, (*before, *found), groups) if query.selects else None
            if last is None:
                return found
            new = (lasting(last),)
            self._refuse_schema(plan, new)
            if len(found) > _MOST_BLOCKS:
                found = [lasting(self._merged(found))]
            found += new
            query = self._query()

    def _query(self) -> Query:
        return Query(self.queries.layout, texts=self.texts)

    def _round(
        self, query: Query, known: tuple[Block, ...], groups: tuple[Group, ...]
    ) -> FileBlock | None:
        """Return what a query finds that is not known to stand as long."""
        self.limits.check_rounds(len(self.rounds))
        began = time.perf_counter()
        made = self.queries.block(self.queries.result(query, self._latest_sql))
        last = None if made is None else self._longer(lasting(made), known)
        names = tuple(dict.fromkeys(name for group in groups for name in group.names if name))
        rows, seconds = last.rows if last else 0, time.perf_counter() - began
        done = Round(len(self.rounds) + 1, WINDOW, names, rows, seconds)
        self.rounds.append(done)
        self.listen(done)
        self.limits.check_facts(sum(one.new for one in self.rounds))
        return last

    @property
    def _latest_sql(self) -> str:
        columns = ", ".join(self.queries.layout.columns)
        return f"SELECT {columns}, max(e) AS e FROM ({{made}}) made GROUP BY {columns}"

    def _longer(self, made: Block, known: tuple[Block, ...]) -> FileBlock | None:
        """Return the facts of a block that are not known, or not for so long."""
        wanted = (looks((made,)) or self._everything).limited(made.values)
        frame = self.queries.facts((*map(Forever, self.forever), *known), wanted)
        own = made.frame(self.queries.engine, self._everything)
        if frame is None or own is None:
            return None if own is None else self.queries.block(own)
        text = f"""SELECT made.* FROM {{made}} made LEFT ANTI JOIN {{known}} known
            ON {same_sql(self.queries.layout, "made", "known")} AND known.e >= made.e"""
        return self.queries.block(self.queries.engine.sql(text, made=own, known=frame))

    def _merged(self, blocks: list[Block]) -> FileBlock:
        together = self.queries.facts(blocks, self._everything)
        assert together is not None
        text = self._latest_sql.replace("({made})", "{made}")
        merged = self.queries.block(self.queries.engine.sql(text, made=together))
        assert merged is not None
        return merged

    def _refuse_schema(self, plan: Plan, blocks: tuple[Block, ...]) -> None:
        """Raise if blocks have facts that the plan takes for schema."""
        schema = plan.patterns
        near = [block for block in blocks if schema.rows and may_match(block, schema)]
        frame = self.queries.facts(near, schema) if near else None
        if frame is None:
            return
        if frame.where(matching_sql(schema.rows, self.queries.layout)).limit(1).collect():
            raise _SchemaMoves

    @property
    def _everything(self) -> Patterns:
        return Patterns([(None,) * len(self.queries.layout.columns)])


def _add(
    query: Query,
    groups: tuple[Group, ...],
    of: Ranges,
    places: Callable[[int], Iterator[tuple[int, tuple[Range, ...]]]],
) -> None:
    """Add what groups derive with a new fact, of those that it may match."""
    facts = looks(of.new) or Patterns([(None,) * len(query.layout.columns)])
    for group in groups:
        for place, ranges in places(len(group.clause.body)):
            near = group.meeting(place, facts)
            if near is not None and of.can_join(near, ranges):
                add_lasting(query, near, ranges, of)


def _semi_naive(n: int) -> Iterator[tuple[int, tuple[Range, ...]]]:
    """Yield the semi-naive variants of a body, each with the place of the new fact."""
    yield from enumerate(variants(n))


def _beside_known(n: int) -> Iterator[tuple[int, tuple[Range, ...]]]:
    """Yield the ways in which a body has a new fact and, elsewhere, one that was known.

    >>> [(place, [r.value for r in ranges]) for place, ranges in _beside_known(2)]
    [(0, ['new', 'old']), (1, ['old', 'new'])]
    """
    for new, old in itertools.permutations(range(n), 2):
        chosen = {new: Range.NEW, old: Range.OLD}
        yield new, tuple(chosen.get(place, Range.ALL) for place in range(n))
