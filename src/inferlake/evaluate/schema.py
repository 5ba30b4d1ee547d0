"""The facts that match schema patterns, as long as a driver can hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, matching_sql
from inferlake.evaluate.known import Known
from inferlake.plan.clauses import Fact, Row
from inferlake.plan.patterns import Patterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class SchemaFacts:
    """Finds schema facts among blocks. Patterns with too many become data, once and for all."""

    known: Known
    patterns: tuple[Row, ...]
    most: int

    def among(self, blocks: Iterable[Block]) -> set[Fact]:
        """Collect the schema facts of some blocks."""
        if not self.patterns:
            return set()
        frame = self.known.facts(blocks, Patterns(self.patterns))
        if frame is None:
            return set()
        layout = self.known.layout
        while self.patterns:
            some = frame.where(matching_sql(self.patterns, layout)).limit(self.most + 1).collect()
            if len(some) <= self.most:
                return {layout.fact(row) for row in some}
            self._demote_largest(frame)
        return set()

    def _demote_largest(self, frame: DataFrame) -> None:
        """Treat the facts of the most frequent pattern as data from now on."""
        layout = self.known.layout
        counts = frame.selectExpr(
            *(
                f"count_if({matching_sql([row], layout)}) AS n{i}"
                for i, row in enumerate(self.patterns)
            )
        ).collect()[0]
        largest = max(range(len(self.patterns)), key=lambda i: counts[i])
        self.patterns = self.patterns[:largest] + self.patterns[largest + 1 :]
