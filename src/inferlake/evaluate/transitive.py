"""The closure of a transitive relation, in rounds that double the length of the paths.

Let C be the edges known to be paths of at most m steps, and F, the far ones, those of no fewer than
m. Then F followed by C gives all paths of up to 2m steps, and each of them that F followed by the
rest of C does not give is far again. So a chain of n nodes takes log n rounds and derives each pair
once, where the rule as it is written would derive it once for every node between.

Old edges that are closed already count as no step of their own: with E the new edges, and new ones
followed by an old one, all that is new is C, and old edges followed by C.

Where many far edges meet many others (a thousand equal resources), one step more, F followed by E,
is far cheaper than doubling: a round does whichever costs less. Both keep the invariant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import read
from inferlake.plan.clauses import Layout
from inferlake.plan.transitive import Edges
from inferlake.session import Engine, union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from inferlake.evaluate.blocks import FileBlock

# Below this many far edges a doubling costs nothing worth a look at.
_LOOK_AT = 100_000
# A doubling that derives more than this many pairs, and so many times what a step would, waits.
_COSTLY = 50_000_000
_TIMES = 20

FAR = "far"


@dataclass
class Doubling:
    """One closure under way."""

    engine: Engine
    layout: Layout
    edges: Edges
    # Turns derived edges (with column far) into a block of those that are new, or None.
    keep: Callable[[DataFrame], FileBlock | None]

    def close(self, old: DataFrame | None, new: DataFrame) -> None:
        """Derive all that follows from `new` edges, on top of `old` ones that are closed."""
        steps = [new]
        if old is not None:
            extended = self.keep(self._joined("{a}", "{b}", a=new, b=old))
            steps += [self._all(extended)] if extended is not None else []
        found = self._paths(union(steps))
        if old is not None:
            self.keep(self._joined("{a}", "{b}", a=old, b=union([*steps, *found])))

    def _paths(self, steps: DataFrame) -> list[DataFrame]:
        """Derive the paths over `steps`, of any length."""
        found: list[FileBlock] = []
        while True:
            if not found:
                far, near = steps, []
            else:
                *earlier, last = found
                far = self._some(last, "1")
                near = [steps, self._some(last, "0"), *([self._all(*earlier)] if earlier else [])]
            if found and self._one_step_is_better(far, near, steps, found[-1].rows):
                block = self.keep(self._joined("{a}", "{b}", a=far, b=steps))
            else:
                block = self.keep(self._doubled(far, near))
            if block is None:
                return [self._all(*found)] if found else []
            found.append(block)

    def _doubled(self, far: DataFrame, near: list[DataFrame]) -> DataFrame:
        """Return far edges followed by any: far again where nothing nearer gives the same."""
        columns = self.edges.columns(self.layout)
        parts = [f"SELECT {columns}, BIGINT(1) AS {FAR} {self.edges.compose('{far}', '{far}')}"]
        frames = {"far": far}
        if near:
            parts.append(
                f"SELECT {columns}, BIGINT(0) AS {FAR} {self.edges.compose('{far}', '{near}')}"
            )
            frames["near"] = union(near)
        return self._once(" UNION ALL ".join(parts), **frames)

    def _joined(self, left: str, right: str, **frames: DataFrame) -> DataFrame:
        columns = self.edges.columns(self.layout)
        text = f"SELECT {columns}, BIGINT(1) AS {FAR} {self.edges.compose(left, right)}"
        return self._once(text, **frames)

    def _once(self, text: str, **frames: DataFrame) -> DataFrame:
        columns = ", ".join(self.layout.columns)
        grouped = f"SELECT {columns}, min({FAR}) AS {FAR} FROM ({text}) made GROUP BY {columns}"
        return self.engine.sql(grouped, **frames)

    def _one_step_is_better(
        self, far: DataFrame, near: list[DataFrame], steps: DataFrame, rows: int
    ) -> bool:
        if rows < _LOOK_AT:
            return False
        start, end = self.edges.start, self.edges.end
        text = f"""
            SELECT coalesce(sum(far.n * every.n), 0) AS doubled,
                   coalesce(sum(far.n * steps.n), 0) AS stepped
            FROM (SELECT {end} AS node, count(*) AS n FROM {{far}} GROUP BY {end}) far
            LEFT JOIN (SELECT {start} AS node, count(*) AS n FROM {{every}} GROUP BY {start}) every
              ON far.node = every.node
            LEFT JOIN (SELECT {start} AS node, count(*) AS n FROM {{steps}} GROUP BY {start}) steps
              ON far.node = steps.node"""
        row = self.engine.sql(text, far=far, every=union([far, *near]), steps=steps).collect()[0]
        return row.doubled > _COSTLY and row.doubled > _TIMES * row.stepped

    def _all(self, *blocks: FileBlock) -> DataFrame:
        paths = [path for block in blocks for path in block.addresses]
        return read(self.engine, paths, self.layout.columns)

    def _some(self, block: FileBlock, far: str) -> DataFrame:
        frame = read(self.engine, block.addresses, (*self.layout.columns, FAR))
        return frame.where(f"{FAR} = {far}").select(*self.layout.columns)
