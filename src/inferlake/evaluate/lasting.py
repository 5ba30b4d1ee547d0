"""Blocks of facts that come with times, of which `e` is the one until which a fact stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Around, Block, FileBlock, Near, narrowed, read
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import id_sql
from inferlake.session import Engine
from inferlake.store.until import FOREVER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOREVER_SQL = id_sql(FOREVER)


@dataclass(frozen=True)
class Chosen(Around[FileBlock]):
    """Those facts of a block that a condition on the other columns of its files chooses.

    Of these columns it gives those that are `shown`, as SQL, behind the layout's.
    """

    block: FileBlock
    where: str
    # The other columns of the files.
    others: tuple[str, ...]
    shown: tuple[str, ...] = ()

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        paths, layout = self.block.paths(wanted), self.block.layout
        if not paths:
            return None
        found = read(engine, paths, (*layout.columns, *self.others)).where(self.where)
        return narrowed(found.selectExpr(*layout.columns, *self.shown), layout, wanted)


def lasting(block: FileBlock) -> Chosen:
    """Return a block whose files have the columns of the layout and `e`, with both."""
    return Chosen(block, "TRUE", ("e",), ("e",))


@dataclass(frozen=True)
class Forever(Around[Block]):
    """Facts that never expire."""

    block: Block

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        found = self.block.frame(engine, wanted, near)
        return None if found is None else found.selectExpr("*", f"{FOREVER_SQL} AS e")
