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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake.errors import LimitReached
from inferlake.evaluate.blocks import Block, FileBlock, Scratch
from inferlake.evaluate.known import Known, Makers, Task
from inferlake.evaluate.report import Round
from inferlake.evaluate.schema import SchemaFacts
from inferlake.plan.clauses import Clause, Fact, Layout, Row
from inferlake.plan.compile import Options, Plan, compile_plan
from inferlake.plan.patterns import Patterns
from inferlake.plan.redundant import only_repeats
from inferlake.plan.sql import (
    Input,
    Query,
    Range,
    TableInput,
    TermInput,
    add_expansion,
    add_variant,
    variants,
)
from inferlake.plan.strata import strata
from inferlake.session import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA, EXPAND, JOIN = "schema", "expand", "join"


@dataclass(frozen=True)
class Limits:
    """How far an evaluation may go; None means as far as it takes."""

    rounds: int | None = None
    facts: int | None = None


@dataclass(frozen=True, eq=False)
class _Application:
    """The blocks that one use of a task ranges over."""

    old: tuple[Block, ...]
    new: tuple[Block, ...]


@dataclass
class Fixpoint:
    """An evaluation under way. `run` it once; then `blocks` hold all facts, `new` what it found."""

    engine: Engine
    layout: Layout
    clauses: tuple[Clause, ...]
    patterns: tuple[Row, ...]
    scratch: Scratch
    # The dictionary, with the columns of `checks_sql`; only asked for when a rule compares values.
    terms: Callable[[], DataFrame]
    type_id: int
    texts: dict[int, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    listen: Callable[[Round], None] = lambda done: None

    rounds: list[Round] = field(default_factory=list)

    @cached_property
    def _known(self) -> Known:
        return Known(self.engine, self.layout, self.scratch, self.type_id)

    @cached_property
    def _schema_facts(self) -> SchemaFacts:
        patterns = self.patterns if self.options.specialised else ()
        return SchemaFacts(self._known, patterns, self.options.driver_facts)

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
    def plan(self) -> Plan:
        """The rules as they were last specialised."""
        return self._plan

    def run(self, old: Iterable[Block], given: Iterable[Block]) -> None:
        """Derive all that follows from `old` and `given` facts, of which `old` are closed already.

        `old` blocks must be closed under the same rules, with all their schema.
        """
        for block in old:
            self._known.append(block)
        closed = len(self.blocks)
        before = self._schema_facts.among(self.blocks)
        for block in given:
            self._known.append(block)
        self._given = len(self.blocks)
        self._schema = before | self._schema_facts.among(self.blocks[closed:])
        self._plan = self._compiled(self._schema)
        self._expanders: list[Task] = []
        self._tasks: list[Task] = []
        earlier = self._compiled(before, self._plan) if closed else None
        if earlier is not None:
            self._enlist(earlier, None, closed)
        self._enlist(self._plan, earlier, 0)
        if self._tasks:
            self.blocks[closed:] = map(self._known.described, self.blocks[closed:])
        self._lean = self.options.lean
        self._state_schema()
        while self._expand() or self._join():
            self._known.merge((*self._tasks, *self._expanders), self._given)

    def may_hold(self, wanted: Patterns) -> bool:
        """Tell whether some fact may match."""
        return any(_may_match(block, wanted) for block in self.blocks)

    def answer(self, query: Query) -> list:
        """Return the rows of a query over all facts, once they are closed."""
        frames = {name: self._frame(what) for name, what in query.inputs.items()}
        return self.engine.sql(query.union, **frames).collect()

    # --- Schema and tasks ------------------------------------------------------------------------

    def _compiled(self, schema: set[Fact], like: Plan | None = None) -> Plan:
        """Compile for a schema; patterns that are data in a plan `like` it stay data."""
        data = () if like is None else like.demoted
        patterns = [row for row in self._schema_facts.patterns if row not in data]
        return compile_plan(self.clauses, patterns, schema, self.options)

    def _enlist(self, plan: Plan, before: Plan | None, seen: int) -> None:
        """Make tasks of what `plan` has and `before` had not."""
        entries = plan.entries - (before.entries if before is not None else frozenset())
        if entries:
            self._expanders.append(Task(plan.entry_names, seen, entries=entries))
        groups = (group for group in plan.joins(before) if group.clause.head is not None)
        self._tasks += [Task(group.names, seen, group) for group in groups]
        joins = [task.group for task in self._tasks if task.group is not None]
        for task, stratum in zip(self._tasks, strata(joins, plan.entries), strict=True):
            task.stratum = stratum

    def _state_schema(self) -> None:
        """Make a block of what follows from the schema alone."""
        fresh = self._plan.schema - self._schema
        if not fresh:
            return
        began = time.perf_counter()
        query = Query(self.layout)
        rows = tuple(tuple(slot or 0 for slot in fact) for fact in fresh)
        table = query.input(TableInput(self.layout.columns, rows))
        query.selects.append(f"SELECT {', '.join(self.layout.columns)} FROM {table}")
        self._schema |= {fact for fact in self._plan.schema if self._plan.patterns.cover(fact)}
        self._step(SCHEMA, (), query, Patterns(fresh), began)

    def _follow_schema(self, block: Block) -> None:
        """If a block says something new about the schema, take it into the rules."""
        schema = self._plan.patterns
        if not schema.rows or not (block.patterns or schema).meet_any(schema):
            return
        fresh = self._schema_facts.among([block]) - self._schema
        if not fresh:
            return
        before, self._schema = self._plan, self._schema | fresh
        self._plan = self._compiled(self._schema, before)
        # Old facts now meet new rules: what was left out as idle may no longer be so.
        self._lean = False
        self._enlist(self._plan, before, 0)
        self._state_schema()

    # --- Rounds ----------------------------------------------------------------------------------

    def _expand(self) -> bool:
        """Run the expander over what it has not seen; return whether it ran."""
        began = time.perf_counter()
        query = Query(self.layout)
        ran: list[Task] = []
        for task in self._expanders:
            bodies = Patterns(entry.body for entry in task.entries)
            pending = (b for b, makers in self._known.pending(task) if self._to_expand(makers))
            new = tuple(block for block in pending if _may_match(block, bodies))
            if new:
                add_expansion(query, task.entries, _Application((), new))
                ran.append(task)
            task.seen = len(self.blocks)
        if ran:
            heads = Patterns(entry.head for task in ran for entry in task.entries)
            self._step(EXPAND, tuple(ran), query, heads, began)
        return bool(ran)

    def _to_expand(self, makers: Makers) -> bool:
        """What a closed expander made holds all that it would make of it."""
        return not (self._plan.closed and makers and all(m.group is None for m in makers))

    def _join(self) -> bool:
        """Run the groups of the first stratum that has work; return whether one had."""
        began = time.perf_counter()
        for stratum in sorted({task.stratum for task in self._tasks}):
            query = Query(self.layout, texts=self.texts)
            tasks = [task for task in self._tasks if task.stratum == stratum]
            ran = tuple(task for task in tasks if self._add_variants(query, task))
            for task in tasks:
                task.seen = len(self.blocks)
            if ran:
                heads = Patterns(row for t in ran if t.group for row in t.group.heads.rows)
                self._step(JOIN, ran, query, heads, began)
                return True
        return False

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
                if _may_match(block, group.atoms[place]) and not self._idle(task, place, makers)
            )
            of = _Application(old, new)
            pairs = zip(ranges, group.atoms, strict=True)
            if new and all(any(True for _ in self._blocks_of(of, *pair)) for pair in pairs):
                add_variant(query, group, ranges, of)
                added = True
        return added

    def _idle(self, task: Task, place: int, makers: Makers) -> bool:
        """Tell whether `task` could only repeat what is known of what `makers` derived."""
        groups = [maker.group for maker in makers]
        if not self._lean or task.group is None or not groups or None in groups:
            return False
        # What these strata derive was complete before the makers began.
        first = min(task.stratum, *(maker.stratum for maker in makers))
        earlier = (t.group for t in self._tasks if t.stratum < first)
        settled = (clause for group in earlier if group is not None for clause in group.clauses)
        producers = (clause for group in groups if group is not None for clause in group.clauses)
        return only_repeats(task.group.clauses, place, producers, settled)

    def _step(self, kind: str, makers: Makers, query: Query, heads: Patterns, began: float) -> None:
        """Run a query, keep what is new as a block, and say so."""
        self._check_rounds()
        frames = {name: self._frame(what) for name, what in query.inputs.items()}
        derived = self._count(query, frames) if self.options.counted else None
        at, files = self.scratch.write(self._fresh(query, frames, heads))
        block: Block = FileBlock(self.layout, at, files, heads)
        names = tuple(dict.fromkeys(name for task in makers for name in task.names))
        seconds = time.perf_counter() - began
        done = Round(len(self.rounds) + 1, kind, names, block.rows, seconds, derived)
        self.rounds.append(done)
        self.listen(done)
        if block.rows:
            block = self._known.described(block) if self._tasks else block
            self._known.append(block, makers)
            self._check_facts()
            self._follow_schema(block)

    def _fresh(self, query: Query, frames: dict[str, DataFrame], heads: Patterns) -> DataFrame:
        """Return what a query derives that is not known, each fact once."""
        columns = ", ".join(self.layout.columns)
        text = f"SELECT DISTINCT {columns} FROM ({query.union}) made"
        known = self._known.facts(self.blocks, heads)
        if known is None:
            return self.engine.sql(text, **frames)
        same = " AND ".join(f"made.{name} = known.{name}" for name in self.layout.columns)
        text = f"SELECT {columns} FROM ({text}) made LEFT ANTI JOIN {{known}} known ON {same}"
        return self.engine.sql(text, **frames, known=known)

    def _count(self, query: Query, frames: dict[str, DataFrame]) -> int:
        """Count what a query derives, with repetitions: the same work again, without keeping it."""
        text = f"SELECT count(*) AS made FROM ({query.union}) made"
        return self.engine.sql(text, **frames).collect()[0].made

    # --- Frames ----------------------------------------------------------------------------------

    def _frame(self, what: Input) -> DataFrame:
        if isinstance(what, TableInput):
            return self.scratch.table(self.engine, what.columns, what.rows)
        if isinstance(what, TermInput):
            return self.terms()
        of = what.of if isinstance(what.of, _Application) else _Application((), ())
        found = self._known.facts(self._blocks_of(of, what.range, what.patterns), what.patterns)
        if found is not None:
            return found
        return self.engine.empty(", ".join(f"{name} BIGINT" for name in self.layout.columns))

    def _blocks_of(self, of: _Application, range: Range, wanted: Patterns) -> Iterator[Block]:
        """Yield the blocks of a range that may match."""
        chosen = {Range.OLD: of.old, Range.NEW: of.new, Range.ALL: self.blocks}[range]
        return (block for block in chosen if _may_match(block, wanted))

    # --- Limits ----------------------------------------------------------------------------------

    def _check_rounds(self) -> None:
        most = self.limits.rounds
        if most is not None and len(self.rounds) >= most:
            raise LimitReached(
                f"stopped after {most} rounds with more to derive, and kept nothing;"
                " allow more with --max-rounds, or see which rules go on with: inferlake check"
            )

    def _check_facts(self) -> None:
        most = self.limits.facts
        derived = sum(block.rows for block in self.new)
        if most is not None and derived > most:
            raise LimitReached(
                f"stopped at {derived:,} derived facts with more to derive, and kept nothing;"
                " allow more with --max-facts"
            )


def _may_match(block: Block, wanted: Patterns) -> bool:
    return block.patterns is None or block.patterns.meet_any(wanted)
