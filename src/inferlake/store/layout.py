"""Which rows go into which file: by predicate, then by class for `rdf:type`, then by subject.

Files hold about the same number of rows, and the log knows the smallest and largest id of each
column in each file: that is the index. Ids are uniform hashes, so a predicate with ten files' rows
is cut into ten equal ranges of ids, and nothing needs to be sampled or sorted to find where to cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake.parquet import DataFile
from inferlake.session import Engine, is_connected
from inferlake.terms import FULL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from inferlake.store.table import Table

RDF_TYPE = FULL.of("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>")

# Small enough that a look-up reads little; a billion rows are still a few hundred files.
_ROWS_LOW = 250_000
_ROWS_HIGH = 4_000_000
_FILES = 32

# A predicate or class gets files of its own from this share of a file's rows on.
_HEAVY = 2

# The classes that fill no file of their own are one group together, without a class.
_GROUPS_SQL = f"""
    WITH groups AS (
        SELECT p, IF(p = {RDF_TYPE}, o, 0) AS class, count(*) AS n FROM {{facts}}
        GROUP BY p, IF(p = {RDF_TYPE}, o, 0)
    ), named AS (
        SELECT p, IF(n >= {{least}}, class, NULL) AS class, n FROM groups
    )
    SELECT p, class, sum(n) AS size FROM named GROUP BY p, class HAVING sum(n) >= {{least}}"""

# Ids are a sign and 63 bits, the upper 62 of them a hash; 31 are enough to cut a range into slices.
_SLICE = "INT(((({id}) & 9223372036854775807) >> 32) * {slices} / 2147483648)"

_PLACED_SQL = f"""
    SELECT facts.*, INT(CASE
        WHEN heavy.p IS NOT NULL
            THEN heavy.first + {_SLICE.format(id="facts.s", slices="heavy.slices")}
        WHEN facts.p = {RDF_TYPE} AND {{small}} > 0
            THEN {{first}} + {_SLICE.format(id="facts.o", slices="{small}")}
        ELSE {_SLICE.format(id="facts.p", slices="{light}")} END) AS part
    FROM {{facts}} facts LEFT JOIN {{heavy}} heavy
      ON facts.p = heavy.p AND IF(facts.p = {RDF_TYPE}, facts.o, 0) = heavy.class"""


# Facts of a file lie by predicate and subject: 16 bits of the one, 48 of the other. One number,
# because engines sort numbers several times faster than rows of them.
_FACT_ORDER = "(p & -281474976710656) | shiftright(s, 16)"


@dataclass(frozen=True)
class Placed:
    """Rows with the number of the file they go into, as `part`, and the order they have there."""

    engine: Engine
    rows: DataFrame
    parts: int
    order: str

    def gathered(self) -> Placed:
        """Bring the rows of each part together; Spark gives each a task of its own."""
        if self._by_task:
            return replace(self, rows=self.rows.repartitionById(self.parts, "part"))
        return replace(self, rows=self.rows.repartition(self.parts, "part"))

    def write(self, table: Table) -> tuple[DataFile, ...]:
        """Write gathered rows into a table, a file for each part.

        To write several, a task of Spark's would first sort by them, and by nothing else unless
        both are asked for. Sail sorts nothing of its own accord.
        """
        if self._by_task:
            return table.write(ordered(self.engine, self.rows, self.order).drop("part"))
        by = self.order if self.engine.name == "sail" else f"part, {self.order}"
        return table.write(ordered(self.engine, self.rows, by), by="part")

    @property
    def _by_task(self) -> bool:
        # Behind a connection may be Sail, which cannot place rows in tasks, or an older Spark.
        return not is_connected(self.engine.session)


def ordered(engine: Engine, rows: DataFrame, by: str = _FACT_ORDER) -> DataFrame:
    """Return rows sorted within each partition, facts by the number that files want."""
    return engine.sql(f"SELECT * FROM {{rows}} SORT BY {by}", rows=rows)


def rows_per_file(total: int) -> int:
    """Return how many rows a file should have in a table of `total`."""
    return min(max(total // _FILES, _ROWS_LOW), _ROWS_HIGH)


def place_facts(engine: Engine, facts: DataFrame, total: int) -> Placed:
    """Return which file each of `facts`, of which there are about `total`, goes into.

    The driver learns only the groups that fill half a file or more, at most twice as many as files.
    """
    size = rows_per_file(total)
    if total <= size:
        return Placed(engine, facts.selectExpr("*", "0 AS part"), 1, _FACT_ORDER)
    text = _GROUPS_SQL.replace("{least}", str(size // _HEAVY))
    groups = engine.sql(text, facts=facts).collect()
    light = max(1, -(-(total - sum(row["size"] for row in groups)) // size))
    parts = light
    small = first = 0
    heavy: list[tuple[int, ...]] = []
    for row in sorted(groups, key=lambda row: (row.p, row["class"] or 0)):
        slices = -(-row["size"] // size)
        if row["class"] is None:
            small, first = slices, parts
        else:
            heavy.append((row.p, row["class"], parts, slices))
        parts += slices
    text = _PLACED_SQL
    for name, number in {"small": small, "first": first, "light": light}.items():
        text = text.replace(f"{{{name}}}", str(number))
    placed = engine.sql(text, facts=facts, heavy=_table(engine, heavy))
    return Placed(engine, placed, parts, _FACT_ORDER)


def _table(engine: Engine, heavy: list[tuple[int, ...]]) -> DataFrame:
    names = ("p", "class", "first", "slices")
    if not heavy:
        return engine.empty(", ".join(f"{name} BIGINT" for name in names))
    columns = {
        name: pa.array(column, pa.int64())
        for name, column in zip(names, zip(*heavy, strict=True), strict=True)
    }
    return engine.session.createDataFrame(pa.table(columns))


def place_terms(engine: Engine, terms: DataFrame, total: int) -> Placed:
    """Return which file each of `terms`, of which there are about `total`, goes into, by its id."""
    size = rows_per_file(total)
    bits = max(0, (-(-total // size) - 1).bit_length())
    # An arithmetic shift keeps the order of signed ids; a shift by 64 would be one by 0. Files are
    # numbered from 0 on, the smallest id's first.
    part = f"INT(shiftright(id, {64 - bits})) + {1 << bits - 1}" if bits else "0"
    return Placed(engine, terms.selectExpr("id", "term", f"{part} AS part"), 1 << bits, "id")
