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
from typing import TYPE_CHECKING

from inferlake.errors import LimitReached
from inferlake.evaluate.blocks import Block, FileBlock, Scratch, facts
from inferlake.evaluate.report import Round
from inferlake.plan.clauses import Clause, Fact, Layout, Row
from inferlake.plan.compile import Options, Plan, compile_plan
from inferlake.plan.groups import Group
from inferlake.plan.linear import Entry
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
    id_sql,
    variants,
)
from inferlake.plan.strata import strata
from inferlake.session import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Blocks beyond this are merged: a file costs more to open than a few rows to write again.
_MOST_BLOCKS = 24
_MERGED_AT_ONCE = 16

SCHEMA, EXPAND, JOIN = "schema", "expand", "join"


@dataclass(frozen=True)
class Limits:
    """How far an evaluation may go; None means as far as it takes."""

    rounds: int | None = None
    facts: int | None = None


@dataclass(eq=False)
class Task:
    """Rules that run together, and how many blocks they have worked through."""

    names: tuple[str, ...]
    seen: int
    group: Group | None = None
    entries: frozenset[Entry] = frozenset()
    stratum: int = 0


@dataclass(frozen=True, eq=False)
class _Application:
    """A task over certain new blocks, in one round."""

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
    texts: dict[int, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    listen: Callable[[Round], None] = lambda done: None

    blocks: list[Block] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)

    def run(self, old: Iterable[Block], given: Iterable[Block]) -> None:
        """Derive all that follows from `old` and `given` facts, of which `old` are closed already.

        `old` blocks must be closed under the same rules, with all their schema.
        """
        self.blocks = [*old]
        self._makers: list[tuple[Task, ...]] = [() for _ in self.blocks]
        closed = len(self.blocks)
        known = self._schema_facts(self.blocks)
        for block in given:
            self._append(block, ())
        self._schema = known | self._schema_facts(self.blocks[closed:])
        self._plan = self._compiled(self._schema)
        before = self._compiled(known, self._plan) if closed else None
        self._tasks: list[Task] = []
        self._expanders: list[Task] = []
        if before is not None:
            self._enlist(before, None, closed)
        self._enlist(self._plan, before, 0)
        self._given = len(self.blocks)
        self._lean = self.options.lean
        self._state_schema()
        while self._expand() or self._join():
            self._merge()

    @property
    def new(self) -> list[FileBlock]:
        """What was derived."""
        found = self.blocks[self._given :]
        return [block for block in found if isinstance(block, FileBlock)]

    @property
    def plan(self) -> Plan:
        """The rules as they were last specialised."""
        return self._plan

    def answer(self, query: Query) -> list:
        """Return the rows of a query over all facts, once they are closed."""
        frames = {name: self._frame(what) for name, what in query.inputs.items()}
        return self.engine.sql(query.union, **frames).collect()

    # --- Schema and tasks ------------------------------------------------------------------------

    def _compiled(self, schema: set[Fact], like: Plan | None = None) -> Plan:
        """Compile for a schema; `like` another plan in which patterns are data."""
        demoted = () if like is None else like.demoted
        patterns = [row for row in self.patterns if row not in demoted]
        return compile_plan(self.clauses, patterns, schema, self.options)

    def _enlist(self, plan: Plan, before: Plan | None, seen: int) -> None:
        """Make tasks of what `plan` has and `before` had not."""
        entries = plan.entries - (before.entries if before is not None else frozenset())
        if entries:
            self._expanders.append(Task(plan.entry_names, seen, entries=entries))
        self._tasks += [
            Task(group.names, seen, group)
            for group in plan.joins(before)
            if group.clause.head is not None
        ]
        groups = [task.group for task in self._tasks if task.group is not None]
        for task, stratum in zip(self._tasks, strata(groups, plan.entries), strict=True):
            task.stratum = stratum

    def _schema_facts(self, blocks: Iterable[Block]) -> set[Fact]:
        """Collect the facts that match schema patterns, unless they are too many."""
        if not self.options.specialised or not self.patterns:
            return set()
        wanted = Patterns(self.patterns)
        near = [b for b in blocks if b.patterns is None or b.patterns.meet_any(wanted)]
        frame = facts(near, self.engine, wanted, self.layout)
        if frame is None:
            return set()
        most = self.options.driver_facts
        while self.patterns:
            some = frame.where(_matching_sql(self.patterns, self.layout)).limit(most + 1).collect()
            if len(some) <= most:
                return {self.layout.fact(row) for row in some}
            self._demote_largest(frame)
        return set()

    def _demote_largest(self, frame: DataFrame) -> None:
        """Treat the facts of the most frequent schema pattern as data from now on."""
        counts = frame.selectExpr(
            *(
                f"count_if({_matching_sql((row,), self.layout)}) AS n{i}"
                for i, row in enumerate(self.patterns)
            )
        ).collect()[0]
        largest = max(range(len(self.patterns)), key=lambda i: counts[i])
        self.patterns = self.patterns[:largest] + self.patterns[largest + 1 :]

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
        self._step(SCHEMA, (), query, Patterns(fresh), began)
        self._schema |= {fact for fact in self._plan.schema if self._plan.patterns.cover(fact)}

    def _follow_schema(self, block: Block) -> None:
        """If a block says something new about the schema, take it into the rules."""
        if not self._plan.patterns.rows or (
            block.patterns is not None and not block.patterns.meet_any(self._plan.patterns)
        ):
            return
        fresh = self._schema_facts([block]) - self._schema
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
            new = [b for b, makers in self._pending(task) if self._needs_expansion(makers)]
            new = [b for b in new if b.patterns is None or b.patterns.meet_any(bodies)]
            if new:
                add_expansion(query, task.entries, _Application((), tuple(new)))
                ran.append(task)
            task.seen = len(self.blocks)
        if ran:
            heads = Patterns(entry.head for task in ran for entry in task.entries)
            self._step(EXPAND, tuple(ran), query, heads, began)
        return bool(ran)

    def _needs_expansion(self, makers: tuple[Task, ...]) -> bool:
        """What a closed expander made holds all that it would make of it."""
        return not (self._plan.closed and makers and all(m.group is None for m in makers))

    def _join(self) -> bool:
        """Run the groups of the first stratum that has work; return whether one had."""
        began = time.perf_counter()
        for stratum in sorted({task.stratum for task in self._tasks}):
            query = Query(self.layout, texts=self.texts)
            tasks = [task for task in self._tasks if task.stratum == stratum]
            ran = tuple(task for task in tasks if self._add_variants(query, task))
            if not ran:
                for task in tasks:
                    task.seen = len(self.blocks)
                continue
            heads = Patterns(row for t in ran if t.group for row in t.group.heads.rows)
            for task in tasks:
                task.seen = len(self.blocks)
            self._step(JOIN, ran, query, heads, began)
            return True
        return False

    def _add_variants(self, query: Query, task: Task) -> bool:
        """Add a task's semi-naive variants that have something to join."""
        group = task.group
        assert group is not None
        added = False
        for place, ranges in enumerate(variants(len(group.clause.body))):
            atom = group.atoms[place]
            new = tuple(
                block
                for block, makers in self._pending(task)
                if (block.patterns is None or block.patterns.meet_any(atom))
                and not self._idle(task, place, makers)
            )
            application = _Application(tuple(self.blocks[: task.seen]), new)
            filled = (
                any(True for _ in self._blocks_of(application, range, patterns))
                for range, patterns in zip(ranges, group.atoms, strict=True)
            )
            if new and all(filled):
                add_variant(query, group, ranges, application)
                added = True
        return added

    def _idle(self, task: Task, place: int, makers: tuple[Task, ...]) -> bool:
        """Tell whether `task` could only repeat what is known of what `makers` derived."""
        if not self._lean or not makers or task.group is None:
            return False
        if any(maker.group is None for maker in makers):
            return False
        settled = [
            clause
            for other in self._tasks
            if other.group is not None and other.stratum < task.stratum
            for clause in other.group.clauses
        ]
        producers = [c for m in makers if m.group is not None for c in m.group.clauses]
        return only_repeats(task.group.clauses, place, producers, settled)

    def _step(
        self, kind: str, makers: tuple[Task, ...], query: Query, heads: Patterns, began: float
    ) -> None:
        """Run a query, keep what is new as a block, and say so."""
        self._check_rounds()
        columns = ", ".join(self.layout.columns)
        known = self._facts(self.blocks, heads)
        text = f"SELECT DISTINCT {columns} FROM ({query.union}) made"
        if known is not None:
            same = " AND ".join(f"made.{name} = known.{name}" for name in self.layout.columns)
            text = f"SELECT {columns} FROM ({text}) made LEFT ANTI JOIN {{known}} known ON {same}"
        frames = {name: self._frame(what) for name, what in query.inputs.items()}
        if known is not None:
            frames["known"] = known
        at, files = self.scratch.write(self.engine.sql(text, **frames))
        block = FileBlock(self.layout, at, files, heads)
        names = tuple(dict.fromkeys(name for task in makers for name in task.names))
        seconds = time.perf_counter() - began
        done = Round(len(self.rounds) + 1, kind, names, block.rows, seconds)
        self.rounds.append(done)
        self.listen(done)
        if block.rows:
            self._append(block, makers)
            self._check_facts()
            self._follow_schema(block)

    def _append(self, block: Block, makers: tuple[Task, ...]) -> None:
        self.blocks.append(block)
        self._makers.append(makers)

    def _pending(self, task: Task) -> Iterator[tuple[Block, tuple[Task, ...]]]:
        return zip(self.blocks[task.seen :], self._makers[task.seen :], strict=True)

    # --- Frames ----------------------------------------------------------------------------------

    def _frame(self, what: Input) -> DataFrame:
        if isinstance(what, TableInput):
            return self.scratch.table(self.engine, what.columns, what.rows)
        if isinstance(what, TermInput):
            return self.terms()
        of = what.of if isinstance(what.of, _Application) else _Application((), ())
        found = self._facts(self._blocks_of(of, what.range, what.patterns), what.patterns)
        if found is not None:
            return found
        return self.engine.empty(", ".join(f"{name} BIGINT" for name in self.layout.columns))

    def _blocks_of(self, of: _Application, range: Range, wanted: Patterns) -> Iterator[Block]:
        """Yield the blocks of a range that may match."""
        chosen = {
            Range.OLD: of.old,
            Range.NEW: of.new,
            Range.ALL: self.blocks,
        }[range]
        return (b for b in chosen if b.patterns is None or b.patterns.meet_any(wanted))

    def _facts(self, blocks: Iterable[Block], wanted: Patterns) -> DataFrame | None:
        near = (b for b in blocks if b.patterns is None or b.patterns.meet_any(wanted))
        return facts(near, self.engine, wanted, self.layout)

    # --- Keeping within bounds -------------------------------------------------------------------

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

    def _merge(self) -> None:
        """Write small blocks together, so that a round reads few files however many came before.

        Only blocks that no task stands between: it has worked through all of them, or none.
        """
        if len(self.blocks) - self._given <= _MOST_BLOCKS:
            return
        marks = {task.seen for task in (*self._tasks, *self._expanders)}
        start = max((m for m in marks if m < len(self.blocks)), default=0)
        start = max(start, self._given)
        movable = range(start, len(self.blocks))
        if len(movable) <= _MOST_BLOCKS // 2:
            return
        chosen = sorted(movable, key=lambda i: self.blocks[i].rows)[:_MERGED_AT_ONCE]
        some = [self.blocks[i] for i in chosen]
        wanted = Patterns([(None,) * len(self.layout.columns)])
        together = facts(some, self.engine, wanted, self.layout)
        assert together is not None
        at, files = self.scratch.write(together.coalesce(1))
        patterns = Patterns(row for b in some for row in (b.patterns or wanted).rows)
        makers = tuple(dict.fromkeys(task for i in chosen for task in self._makers[i]))
        kept = [i for i in range(len(self.blocks)) if i not in chosen]
        # All tasks that have seen any of these have seen all blocks up to here.
        self._makers = [self._makers[i] for i in kept] + [makers]
        self.blocks = [self.blocks[i] for i in kept]
        self.blocks.append(FileBlock(self.layout, at, files, patterns))
        for task in (*self._tasks, *self._expanders):
            if task.seen > start:
                task.seen = len(self.blocks)


def _matching_sql(patterns: tuple[Row, ...], layout: Layout) -> str:
    """Return SQL that tells whether a fact matches one of `patterns`."""
    return " OR ".join(
        "("
        + " AND ".join(
            f"{name} = {id_sql(slot)}"
            for slot, name in zip(row, layout.columns, strict=True)
            if isinstance(slot, int)
        )
        + ")"
        for row in patterns
    )
