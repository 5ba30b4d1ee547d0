"""Which predicates and classes a block really has: it saves every join that would find nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import LISTED, Block, FileBlock, Near
from inferlake.plan.clauses import Layout, Row
from inferlake.plan.patterns import Patterns
from inferlake.rules.model import TRIPLE
from inferlake.session import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# With more predicates and classes than this, a block is not described by them.
_MOST = 5_000
# So many rows are read sooner than an engine starts a query.
READ_BY_DRIVER = 20_000


@dataclass(frozen=True)
class Described:
    """A block of which more is known than it says itself."""

    block: Block
    patterns: Patterns

    @property
    def rows(self) -> int:
        return self.block.rows

    def may_hold(self, wanted: Patterns) -> bool:
        return self.block.may_hold(wanted)

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        return self.block.frame(engine, wanted, near)

    @property
    def values(self) -> Mapping[int, frozenset[int]]:
        return self.block.values

    def fingerprint(self, wanted: Patterns) -> Hashable | None:
        return self.block.fingerprint(wanted)


@dataclass(frozen=True)
class Describer:
    """Finds out what blocks look like."""

    engine: Engine
    layout: Layout
    # The id of rdf:type: its objects say as much about a triple as other predicates do.
    type_id: int

    def described(self, block: Block) -> Block:
        """Return a block that says which predicates and classes it has, if they are not many."""
        if TRIPLE not in self.layout.arities:
            return block
        if isinstance(block, FileBlock) and block.rows <= READ_BY_DRIVER:
            return self._by_driver(block)
        found = self._by_engine(block)
        if found is None or len(found) > _MOST:
            return block
        patterns = Patterns(self._pattern(*row) for row in found)
        if isinstance(block, FileBlock):
            return replace(block, patterns=patterns)
        return Described(block, patterns)

    def _by_driver(self, block: FileBlock) -> FileBlock:
        """Read a small block: which predicates and classes, and which values where they are few."""
        table = block.table()
        columns = [table.column(name).to_pylist() for name in self.layout.columns]
        distinct = {place: frozenset(column) for place, column in enumerate(columns)}
        values = {place: some for place, some in distinct.items() if len(some) <= LISTED}
        found = self._looks(dict(zip(self.layout.columns, columns, strict=True)))
        if len(found) > _MOST:
            return replace(block, values=values)
        patterns = Patterns(self._pattern(*row) for row in found)
        return replace(block, patterns=patterns, values=values)

    def _looks(self, columns: dict[str, list[int]]) -> set[tuple[int, int | None, int | None]]:
        type_id = self.type_id
        if self.layout.only_triples:
            rows = zip(columns["p"], columns["o"], strict=True)
            return {(0, p, o if p == type_id else None) for p, o in rows}
        triple = self.layout.number(TRIPLE)
        rows = zip(columns["r"], columns["p"], columns["o"], strict=True)
        return {
            (r, p, o if p == type_id else None) if r == triple else (r, None, None)
            for r, p, o in rows
        }

    def _by_engine(self, block: Block) -> list[tuple[int, int | None, int | None]] | None:
        everything = Patterns([(None,) * len(self.layout.columns)])
        frame = block.frame(self.engine, everything)
        if frame is None:
            return None
        is_triple = "TRUE" if self.layout.only_triples else f"r = {self.layout.number(TRIPLE)}"
        relation = "0" if self.layout.only_triples else "r"
        rows = (
            frame.selectExpr(
                f"{relation} AS relation",
                f"IF({is_triple}, p, NULL) AS p",
                f"IF({is_triple} AND p = {self.type_id}, o, NULL) AS class",
            )
            .distinct()
            .limit(_MOST + 1)
            .collect()
        )
        return [tuple(row) for row in rows]

    def _pattern(self, relation: int, predicate: int | None, class_: int | None) -> Row:
        if self.layout.only_triples:
            return (None, predicate, class_)
        rest = (None,) * (len(self.layout.columns) - 4)
        return (relation, None, predicate, class_, *rest)[: len(self.layout.columns)]


def looks(blocks: Iterable[Block]) -> Patterns | None:
    """Return what the facts of some blocks look like; None if they may be any."""
    rows: list[Row] = []
    for block in blocks:
        if block.patterns is None:
            return None
        rows += block.patterns.rows
    return Patterns(rows)
