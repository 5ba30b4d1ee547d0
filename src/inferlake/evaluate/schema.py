"""The facts that match schema patterns, as long as a driver can hold them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, Without, matching_sql, may_match
from inferlake.evaluate.known import Known
from inferlake.plan.clauses import Fact, Row
from inferlake.plan.patterns import Patterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# What files that never change were found to say: most changes meet the schema of the last one.
_REMEMBERED: dict[tuple, frozenset[Fact]] = {}
_MOST_REMEMBERED = 20_000
_KEPT = 16


@dataclass
class SchemaFacts:
    """Finds schema facts among blocks. Patterns with too many become data, once and for all."""

    known: Known
    patterns: tuple[Row, ...]
    most: int

    def among(self, blocks: Iterable[Block]) -> set[Fact]:
        """Collect the schema facts of some blocks."""
        some = list(blocks)
        lessened = [block for block in some if isinstance(block, Without)]
        found = self._among([block for block in some if not isinstance(block, Without)])
        # Mostly they are all without the same.
        for gone in {id(block.gone): block.gone for block in lessened}.values():
            left = [block.block for block in lessened if block.gone is gone]
            found |= self.among(left) - self.among(gone)
        return found

    def _among(self, blocks: list[Block]) -> set[Fact]:
        wanted = Patterns(self.patterns)
        near = [block for block in blocks if may_match(block, wanted)]
        if not self.patterns or not near:
            return set()
        prints = tuple(block.fingerprint(wanted) for block in near)
        key = None if None in prints else (prints, self.patterns, self.most)
        if key is not None and key in _REMEMBERED:
            return set(_REMEMBERED[key])
        found = self._collected(near, wanted)
        if key is not None and key[1] == self.patterns and len(found) <= _MOST_REMEMBERED:
            _REMEMBERED[key] = frozenset(found)
            if len(_REMEMBERED) > _KEPT:
                del _REMEMBERED[next(iter(_REMEMBERED))]
        return found

    def _collected(self, blocks: list[Block], wanted: Patterns) -> set[Fact]:
        frame = self.known.facts(blocks, wanted)
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
