"""The fixpoint: what follows from facts and rules, by set, in as few rounds as the rules allow.

A round is one query over blocks of facts, and what it finds is the next block. Every task (the
expander, or a group of joining rules) remembers how many blocks it has worked through. It runs when
a later one may match an atom of its own, and then ranges over old and new blocks semi-naively: each
new match is made once.

The invariant after each round: what a task can derive from the blocks it has worked through is in
some block. The cost of a round is that of its joins, one pass for repetitions and one against the
facts already known. The hazard: blocks are files in a scratch folder, which must outlive whatever
reads the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from inferlake.errors import LimitReached
from inferlake.evaluate.agenda import Agenda
from inferlake.evaluate.blocks import (
    Block,
    FileBlock,
    Near,
    difference_sql,
    facts,
    may_match,
    read,
)
from inferlake.evaluate.described import looks
from inferlake.evaluate.known import Known, Makers, Task
from inferlake.evaluate.queries import Queries, Ranges
from inferlake.evaluate.report import Round
from inferlake.evaluate.schema import SchemaFacts
from inferlake.evaluate.transitive import Doubling
from inferlake.plan.clauses import Clause, Row, Slot
from inferlake.plan.compile import Options, Plan
from inferlake.plan.groups import Group
from inferlake.plan.linear import Entry
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import Query, Range, TableInput, add_expansion, add_variant, variants
from inferlake.rules.model import TRIPLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Beside so many known facts, what a round made is written before it is looked for among them: one
# more plan, and engines then see how little it is.
_MANY = 500_000

SCHEMA, EXPAND, JOIN, DOUBLE = "schema", "expand", "join", "double"


@dataclass(frozen=True)
class Limits:
    """How far an evaluation may go; None means as far as it takes."""

    rounds: int | None = None
    facts: int | None = None

    def check_rounds(self, done: int) -> None:
        """Raise if no round may follow those done."""
        if self.rounds is not None and done >= self.rounds:
            raise LimitReached(
                f"stopped before round {self.rounds + 1}, with rules left to apply, and kept"
                " nothing; allow more with --max-rounds, or see which rules go on with: inferlake"
                " check"
            )

    def check_facts(self, derived: int) -> None:
        """Raise if more was derived than may be."""
        if self.facts is not None and derived > self.facts:
            raise LimitReached(
                f"stopped at {derived:,} derived facts with more to derive, and kept nothing;"
                " allow more with --max-facts"
            )


@dataclass
class Fixpoint:
    """An evaluation under way. `run` it once; then `blocks` hold all facts, `new` what it found."""

    queries: Queries
    clauses: tuple[Clause, ...]
    patterns: tuple[Row, ...]
    texts: dict[int, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    listen: Callable[[Round], None] = lambda done: None

    rounds: list[Round] = field(default_factory=list)

    @cached_property
    def _known(self) -> Known:
        queries = self.queries
        return Known(queries.engine, queries.layout, queries.scratch, queries.type_id)

    @cached_property
    def _agenda(self) -> Agenda:
        patterns = self.patterns if self.options.specialised else ()
        finder = SchemaFacts(self._known, patterns, self.options.driver_facts)
        return Agenda(self.clauses, self.queries.layout, self.options, finder)

    @property
    def blocks(self) -> list[Block]:
        """All facts."""
        return self._known.blocks

    @property
    def new(self) -> list[FileBlock]:
        """What was derived."""
        found = self.blocks[self._given :]
        return [block for block in found if isinstance(block, FileBlock)]

    @property
    def ranges(self) -> Ranges:
        """The facts by when they came: the closed ones are old, all others new."""
        old, new = self.blocks[: self._closed], self.blocks[self._closed :]
        return Ranges(tuple(old), tuple(new), tuple(self.blocks))

    @property
    def plan(self) -> Plan:
        """The rules as they were last specialised."""
        return self._agenda.plan

    @property
    def earlier_constraints(self) -> tuple[Group, ...]:
        """The constraints that closed facts were closed under."""
        earlier = self._agenda.earlier
        return () if earlier is None else earlier.constraints()

    def run(
        self,
        old: Iterable[Block],
        given: Iterable[Block],
        under: tuple[Clause, ...] | None = None,
    ) -> None:
        """Derive all that follows from `old` and `given` facts, of which `old` are closed already.

        `old` blocks must be closed under the same rules, or those `under`, with all their schema.
        """
        closed, fresh = list(old), list(given)
        if under == ():  # that says nothing: they are given like others
            closed, fresh = [], closed + fresh
        for block in (*closed, *fresh):
            self._known.append(block)
        self._closed, self._given = len(closed), len(self.blocks)
        self._agenda.begin(closed, fresh, self.clauses if under is None else under)
        if self._agenda.joins:
            self.blocks[len(closed) :] = map(self._known.described, fresh)
        self._state_schema()
        while self._expand() or self._join():
            self._known.merge(self._agenda.tasks, self._given)

    # --- Rounds ----------------------------------------------------------------------------------

    def _state_schema(self) -> None:
        """Make a block of what follows from the schema alone."""
        fresh = self._agenda.unstated()
        if not fresh:
            return
        began = time.perf_counter()
        columns, heads = self.queries.layout.columns, Patterns(fresh)
        rows = tuple(tuple(slot or 0 for slot in fact) for fact in fresh)
        if all(map(self.plan.patterns.cover, fresh)):
            # All facts that look so are on the driver, and these are none of them.
            self.limits.check_rounds(len(self.rounds))
            relation = TRIPLE if self.queries.layout.only_triples else None
            at, files = self.queries.scratch.keep(columns, rows, relation)
            derived = len(rows) if self.options.counted else None
            block = FileBlock(self.queries.layout, at, files, heads, relation=relation)
            self._kept(SCHEMA, (), block, began, derived)
            return
        query = Query(self.queries.layout)
        table = query.input(TableInput(columns, rows))
        query.selects.append(f"SELECT {', '.join(columns)} FROM {table}")
        self._step(SCHEMA, (), query, heads, began)

    def _expand(self) -> bool:
        """Run the expander over what it has not seen; return whether it ran."""
        began = time.perf_counter()
        query = Query(self.queries.layout)
        ran: list[Task] = []
        limits: list[dict[int, frozenset[int]]] = []
        heads: list[Row] = []
        for task in self._agenda.expanders:
            bodies = Patterns(entry.body for entry in task.entries)
            pending = (b for b, makers in self._known.pending(task) if self._to_expand(makers))
            new = tuple(block for block in pending if may_match(block, bodies))
            if new:
                ranges = Ranges(new=new)
                entries = _meeting(task.entries, looks(new))
                add_expansion(query, entries, ranges)
                heads += [entry.head for entry in entries]
                limits.append(_head_values(entries, ranges.values))
                ran.append(task)
            task.seen = len(self.blocks)
        if ran:
            shared = set.intersection(*map(set, limits))
            few = {place: frozenset().union(*(one[place] for one in limits)) for place in shared}
            self._step(EXPAND, tuple(ran), query, Patterns(heads, few), began)
        return bool(ran)

    def _to_expand(self, makers: Makers) -> bool:
        """What a closed expander made holds all that it would make of it.

        Unless it was made by entries that the plan no longer has: nothing is composed with those.
        """
        entries = self.plan.entries
        own = all(maker.group is None and maker.entries <= entries for maker in makers)
        return not (self.plan.closed and makers and own)

    def _join(self) -> bool:
        """Run the groups of the first stratum that has work; return whether one had."""
        for tasks in self._agenda.strata():
            # First, because paths come cheap this way and other rules then see them at once.
            if any(self._double(task) for task in tasks if task.edges is not None):
                return True
            tasks = [task for task in tasks if task.edges is None]
            # Alone, so that what they derive is known to be theirs, and not given back to them.
            alone = [task for task in tasks if self._agenda.idle_place(task) is not None]
            together = [task for task in tasks if task not in alone]
            if any(map(self._join_together, [*([task] for task in alone), together])):
                return True
        return False

    def _join_together(self, tasks: list[Task]) -> bool:
        """Run groups in one query over what they have not seen; return whether there was any."""
        began = time.perf_counter()
        query = Query(self.queries.layout, texts=self.texts)
        ran = tuple(task for task in tasks if self._add_variants(query, task))
        for task in tasks:
            task.seen = len(self.blocks)
        if ran:
            heads = Patterns(row for t in ran if t.group for row in t.group.heads.rows)
            self._step(JOIN, ran, query, heads, began)
        return bool(ran)

    def _double(self, task: Task) -> bool:
        """Close a transitive relation over what its task has not seen; return whether it did."""
        assert task.group is not None and task.edges is not None
        atom, there = task.group.atoms[0], len(self.blocks)
        pending = list(self._known.pending(task))
        # What the task has made is closed, wherever it stands.
        own = (block for block, makers in pending if makers == (task,))
        old = tuple(b for b in (*self.blocks[: task.seen], *own) if may_match(b, atom))
        new = tuple(b for b, made_by in pending if made_by != (task,) and may_match(b, atom))
        if new:
            doubling = Doubling(
                self.queries.engine, self.queries.layout, task.edges, partial(self._paths, task)
            )
            doubling.close(self._some(task, old) if old else None, self._some(task, new))
        task.seen = there  # what it has made since, others may have taken further
        return bool(new)

    def _some(self, task: Task, blocks: tuple[Block, ...]) -> DataFrame:
        """Return the facts among `blocks` that a task's first atom matches."""
        group = task.group
        assert group is not None
        first = group.clause.body[0]
        itself = replace(group, clause=Clause("", first, (first,)))
        query = Query(self.queries.layout)
        add_variant(query, itself, (Range.NEW,), Ranges(new=blocks))
        return self.queries.result(query)

    def _paths(self, task: Task, made: DataFrame) -> FileBlock | None:
        """Keep those of the paths `made` that are new, with what else is told of them."""
        assert task.group is not None
        began = time.perf_counter()
        self.limits.check_rounds(len(self.rounds))
        fresh = self._unknown(made, task.group.heads)
        derived = made.count() if self.options.counted else None
        at, files = self.queries.scratch.write_whole(fresh)
        block = FileBlock(self.queries.layout, at, files, task.group.heads)
        return self._kept(DOUBLE, (task,), block, began, derived)

    def _add_variants(self, query: Query, task: Task) -> bool:
        """Add a task's semi-naive variants that have something to join."""
        group = task.group
        assert group is not None
        old = tuple(self.blocks[: task.seen])
        added = False
        for place, ranges in enumerate(variants(len(group.clause.body))):
            new = tuple(
                block
                for block, makers in self._known.pending(task)
                if may_match(block, group.atoms[place]) and not self._idle(task, place, makers)
            )
            of = Ranges(old, new, tuple(self.blocks))
            if new and of.can_join(group, ranges):
                add_variant(query, group, ranges, of)
                added = True
        return added

    def _idle(self, task: Task, place: int, makers: Makers) -> bool:
        """Tell whether `task` could only repeat what is known of what it has itself derived."""
        return makers == (task,) and self._agenda.idle_place(task) == place

    def _step(self, kind: str, makers: Makers, query: Query, heads: Patterns, began: float) -> None:
        """Run a query, keep what is new as a block, and say so."""
        self.limits.check_rounds(len(self.rounds))
        derived = self._count(query) if self.options.counted else None
        layout, scratch = self.queries.layout, self.queries.scratch
        relation = layout.shared(heads.rows)
        columns = ", ".join(layout.columns_of(relation))
        made = self.queries.result(query, f"SELECT DISTINCT {columns} FROM ({{made}}) made")
        fresh: DataFrame | None = None
        if not self._upon_many:
            fresh = self._unknown(made, heads, relation)
        elif near := self._aside(made, relation):
            fresh = self._unknown(near.frame, heads, relation, near)
        at, files = scratch.write(fresh, relation) if fresh is not None else (scratch.at, ())
        block = FileBlock(layout, at, files, heads, relation=relation)
        self._kept(kind, makers, block, began, derived)

    @cached_property
    def _upon_many(self) -> bool:
        """Whether there are so many closed facts that it pays to look for few among them."""
        return sum(block.rows for block in self.blocks[: self._closed]) > _MANY

    def _aside(self, made: DataFrame, relation: str | None) -> Near | None:
        """Write what a round made, so that engines see how little it is beside what is known.

        Returns None if that is nothing.
        """
        at, files = self.queries.scratch.write_whole(made)
        if not files:
            return None
        columns = self.queries.layout.columns_of(relation)
        block = FileBlock(self.queries.layout, at, files, None)
        frame = read(self.queries.engine, block.addresses, columns)
        return Near(frame, block.rows, tuple(zip(columns, columns, strict=True)))

    def _unknown(
        self,
        made: DataFrame,
        heads: Patterns,
        relation: str | None = None,
        near: Near | None = None,
    ) -> DataFrame:
        """Return those of the facts `made` that are not known, of which some are `near`."""
        queries = self.queries
        known = facts(self.blocks, queries.engine, heads, queries.layout, near)
        if known is None:
            return made
        text = difference_sql(queries.layout, relation)
        return queries.engine.sql(text, one=made, other=known)

    def _kept(
        self,
        kind: str,
        makers: Makers,
        block: FileBlock,
        began: float,
        derived: int | None,
    ) -> FileBlock | None:
        """Take in what a round has written, unless that is nothing, and say so."""
        names = tuple(dict.fromkeys(name for task in makers for name in task.names))
        seconds = time.perf_counter() - began
        done = Round(len(self.rounds) + 1, kind, names, block.rows, seconds, derived)
        self.rounds.append(done)
        self.listen(done)
        if not block.rows:
            return None
        known = self._known.described(block) if self._agenda.joins else block
        self._known.append(known, makers)
        self.limits.check_facts(sum(block.rows for block in self.new))
        if self._agenda.follow(known):
            self._state_schema()
        return block

    def _count(self, query: Query) -> int:
        """Count what a query derives, with repetitions: the same work again, without keeping it."""
        text = "SELECT count(*) AS made FROM ({made}) made"
        return self.queries.result(query, text).collect()[0].made


def _meeting(entries: Iterable[Entry], facts: Patterns | None) -> tuple[Entry, ...]:
    """Return the entries that some facts may match."""
    return tuple(entry for entry in entries if facts is None or facts.meet(entry.body))


def _head_values(
    entries: Iterable[Entry], values: Mapping[int, frozenset[int]]
) -> dict[int, frozenset[int]]:
    """Return the values that heads can have in places where they are few, given those of facts."""
    found: dict[int, frozenset[int]] = {}
    some = tuple(entries)
    for place in range(len(some[0].head)):
        slots = {(entry.head[place], entry.body) for entry in some}
        sources = [_values(slot, body, values) for slot, body in slots]
        if all(source is not None for source in sources):
            found[place] = frozenset().union(*(source or () for source in sources))
    return found


def _values(slot: Slot, body: Row, values: Mapping[int, frozenset[int]]) -> frozenset[int] | None:
    """Return the values that a slot of a head can have, if they are few."""
    if isinstance(slot, int):
        return frozenset({slot})
    return values.get(body.index(slot)) if slot is not None else None
