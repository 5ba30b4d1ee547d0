"""Queries of the plan over blocks of facts: which blocks an atom ranges over, and their frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, FileBlock, Near, Scratch, facts, may_match
from inferlake.evaluate.described import Describer
from inferlake.plan.checks_sql import VALUED, typed_sql, value_steps_sql
from inferlake.plan.clauses import Layout
from inferlake.plan.groups import Group
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import (
    FactInput,
    Input,
    LiteralInput,
    Query,
    Range,
    TableInput,
    TermInput,
)
from inferlake.session import Engine
from inferlake.terms.ids import is_resource_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Ranges:
    """The blocks that one use of a group ranges over."""

    old: tuple[Block, ...] = ()
    new: tuple[Block, ...] = ()
    all: tuple[Block, ...] = ()

    def blocks(self, range: Range, wanted: Patterns) -> Iterator[Block]:
        """Yield the blocks of a range that may match."""
        chosen = {Range.OLD: self.old, Range.NEW: self.new, Range.ALL: self.all}[range]
        return (block for block in chosen if may_match(block, wanted))

    @cached_property
    def values(self) -> dict[int, frozenset[int]]:
        """The values of the new facts in places that have only few."""
        if not self.new:
            return {}
        places = set.intersection(*(set(block.values) for block in self.new))
        return {p: frozenset().union(*(block.values[p] for block in self.new)) for p in places}

    def can_join(self, group: Group, ranges: tuple[Range, ...]) -> bool:
        """Tell whether every atom of a group has a block that may match it."""
        pairs = zip(ranges, group.atoms, strict=True)
        return all(next(self.blocks(*pair), None) is not None for pair in pairs)


@dataclass
class Queries:
    """Runs queries of the plan on an engine, and keeps what they find in a scratch folder."""

    engine: Engine
    layout: Layout
    scratch: Scratch
    # The dictionary `id, term`; only asked for when a rule compares values.
    terms: Callable[[], DataFrame]
    type_id: int
    # Columns that blocks give besides those of the layout.
    extra: tuple[str, ...] = ()

    @cached_property
    def _literals(self) -> DataFrame:
        """The literals with their values."""
        return self._valued(self._literal_terms)

    @cached_property
    def _ill_typed(self) -> DataFrame:
        """Those literals with their values whose text may not fit their datatype."""
        return self._valued(self._literal_terms.where(typed_sql()))

    @property
    def _literal_terms(self) -> DataFrame:
        return self.terms().where(f"NOT {is_resource_sql('id')}")

    def _valued(self, literals: DataFrame) -> DataFrame:
        """Return literals with values, written once: engines would compute them in each join."""
        frame = literals
        for columns in value_steps_sql():
            frame = frame.selectExpr(*columns)
        at, _ = self.scratch.write_whole(frame)
        return self.engine.session.read.schema(VALUED).parquet(at.address)

    def frames(self, query: Query) -> dict[str, DataFrame]:
        """Return the frames that a query names."""
        return {name: self._frame(what) for name, what in query.inputs.items()}

    def result(self, query: Query, text: str = "{made}") -> DataFrame:
        """Return what a query gives; `text` says what to make of it."""
        return self.engine.sql(text.replace("{made}", query.union), **self.frames(query))

    def facts(self, blocks: Iterable[Block], wanted: Patterns) -> DataFrame | None:
        """Return the facts of some blocks that may match `wanted`, or None."""
        return facts(blocks, self.engine, wanted, self.layout)

    def _near(self, new: tuple[Block, ...], bound: tuple[tuple[int, int], ...]) -> Near | None:
        """Return what facts must agree with to meet the new ones, if that is known of them."""
        columns = self.layout.columns
        everything = Patterns([(None,) * len(columns)])
        frame = self.facts(new, everything)
        if frame is None:
            return None
        pairs = tuple((columns[place], columns[mine]) for place, mine in bound)
        if not any(mine == self.layout.arguments[0] for _, mine in pairs):
            # Many facts may be alike but for their first argument, such as members of a class, and
            # Sail would go through all of them for each fact that meets one.
            frame = frame.select(*sorted({mine for _, mine in pairs})).distinct()
        return Near(frame, sum(block.rows for block in new), pairs)

    def block(self, frame: DataFrame) -> FileBlock | None:
        """Write facts, and their other columns, as a block; None if there are none."""
        at, files = self.scratch.write_whole(frame)
        block = FileBlock(self.layout, at, files, None)
        if not block.rows:
            return None
        found = Describer(self.engine, self.layout, self.type_id).described(block)
        assert isinstance(found, FileBlock)
        return found

    def _frame(self, what: Input) -> DataFrame:
        if isinstance(what, TableInput):
            return self.scratch.table(self.engine, what.columns, what.rows)
        if isinstance(what, LiteralInput):
            return self._ill_typed if what.ill else self._literals
        if isinstance(what, TermInput):
            return self.terms()
        assert isinstance(what, FactInput) and isinstance(what.of, Ranges)
        values = what.of.values if what.bound else {}
        limits = {place: values[new] for place, new in what.bound if new in values}
        wanted = what.patterns.limited(limits)
        blocks = what.of.blocks(what.range, wanted)
        near = self._near(what.of.new, what.bound) if what.bound else None
        found = facts(blocks, self.engine, wanted, self.layout, near)
        if found is not None:
            return found
        # By way of a file: Sail, as DataFusion, fails on unions with a part that a plan alone shows
        # to be empty.
        return self.scratch.table(self.engine, (*self.layout.columns, *self.extra), ())
