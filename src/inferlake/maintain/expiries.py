"""The facts of a version that expire, read from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, FileBlock, Without, laid_out
from inferlake.evaluate.lasting import FOREVER_SQL, Chosen
from inferlake.evaluate.queries import Queries
from inferlake.maintain.derive import StoreBlock
from inferlake.plan.clauses import Layout
from inferlake.plan.sql import id_sql
from inferlake.session import Engine, union
from inferlake.store import LAYERS, Layer, Store
from inferlake.store.facts import TRIPLE, TRIPLE_ARITY, argument_columns
from inferlake.store.table import Snapshot
from inferlake.store.until import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMES_SQL = """
    SELECT COLUMNS, max(a) AS a, max(e) AS e FROM {rows} rows GROUP BY COLUMNS"""


def after(clock: int | None, time: str) -> str:
    """Return SQL that tells whether a time is after that of a clock, or there is no clock."""
    return "TRUE" if clock is None else f"{time} > {id_sql(clock)}"


@dataclass(frozen=True)
class Expiries:
    """The facts of a version that expire, with their times.

    The files have, behind the columns of the layout, until when a fact is asserted (`a`, null if
    it is not), and until when it stands (`e`), which is never earlier. An asserted fact with the
    time `FOREVER` as `e` follows from facts that never expire.
    """

    layout: Layout
    block: FileBlock | None

    def chosen(self, where: str, *shown: str) -> Chosen | None:
        """Return some of the facts, with columns as SQL behind those of the layout."""
        if self.block is None:
            return None
        return Chosen(self.block, where, ("a", "e"), shown)

    def alive(self, clock: int | None) -> Chosen | None:
        """Return the facts that stand after a time but not forever, with `e`."""
        return self.chosen(f"e < {FOREVER_SQL} AND {after(clock, 'e')}", "e")

    def without(self, blocks: list[StoreBlock], layers: tuple[Layer, ...]) -> list[Block]:
        """Return blocks of the store without what expires, closed under the rules as before."""
        if self.block is None:
            return [*blocks]
        gone = {"asserted": "a IS NOT NULL", "derived": "a IS NULL"}
        left = {layer: tuple(filter(None, [self.chosen(gone[layer])])) for layer in gone}
        found: list[Block] = [Without(self.layout, block, left[block.layer]) for block in blocks]
        forever = self.chosen(f"a IS NOT NULL AND e = {FOREVER_SQL}")
        if "derived" in layers and forever is not None:
            found.append(forever)
        return found


def expiries(
    store: Store, engine: Engine, snapshot: Snapshot, layout: Layout, arities: Mapping[str, int]
) -> DataFrame | None:
    """Return what expires in a version, in the columns of `Expiries`, or None if nothing does."""
    frames = [
        _times(store, engine, snapshot, layout, layer, relation)
        for relation, arity in arities.items()
        if layout.arities.get(relation) == arity
        for layer in LAYERS
        if store.facts.files(snapshot, layer, 1, relation=until(relation))
    ]
    if not frames:
        return None
    text = _TIMES_SQL.replace("COLUMNS", ", ".join(layout.columns))
    return engine.sql(text, rows=union(frames))


def read_expiries(
    store: Store, queries: Queries, snapshot: Snapshot, arities: Mapping[str, int]
) -> Expiries:
    """Read what expires in a version, of the relations whose `arities` it has; one job."""
    layout = queries.layout
    found = expiries(store, queries.engine, snapshot, layout, arities)
    return Expiries(layout, None if found is None else queries.block(found))


def next_due(store: Store, engine: Engine, snapshot: Snapshot) -> int | None:
    """Return when the next fact of a version goes, or None if none expires; one small job.

    That is when an assertion ends: what is derived follows from some, and goes with one of them.
    """
    relation, arity = until(TRIPLE), TRIPLE_ARITY + 1
    if not store.facts.files(snapshot, "asserted", 1, relation=relation):
        return None
    live = store.facts.live(engine, snapshot, "asserted", relation=relation, arity=arity)
    return live.selectExpr(f"min({argument_columns(arity)[-1]}) AS due").collect()[0].due


def _times(
    store: Store, engine: Engine, snapshot: Snapshot, layout: Layout, layer: Layer, relation: str
) -> DataFrame:
    """Return the rows of a layer that say until when facts of a relation stand."""
    arity = layout.arities[relation] + 1
    live = store.facts.live(engine, snapshot, layer, relation=until(relation), arity=arity)
    time = argument_columns(arity)[-1]
    asserted = time if layer == "asserted" else "CAST(NULL AS BIGINT)"
    # Named first: in a narrow relation the time stands where the layout has filling.
    named = live.selectExpr("*", f"{asserted} AS a", f"{time} AS e")
    return named.selectExpr(*laid_out(layout, relation), "a", "e")
