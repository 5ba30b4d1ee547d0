"""Which rows go into which file: by predicate, then by class for `rdf:type`, then by subject.

Files hold about the same number of rows, and the log knows the smallest and largest id of each
column in each file: that is the index. Ids are uniform hashes, so a predicate with ten files' rows
is cut into ten equal ranges of ids, and nothing needs to be sampled or sorted to find where to cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake.session import Engine
from inferlake.terms import FULL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def rows_per_file(total: int) -> int:
    """Return how many rows a file should have in a table of `total`."""
    return min(max(total // _FILES, _ROWS_LOW), _ROWS_HIGH)


def place_facts(engine: Engine, facts: DataFrame, total: int) -> tuple[DataFrame, int]:
    """Return `facts` with the number of its file as `part`, and how many files there are.

    The driver learns only the groups that fill half a file or more, at most twice as many as files.
    """
    size = rows_per_file(total)
    if total <= size:
        return facts.selectExpr("*", "0 AS part"), 1
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
    return engine.sql(text, facts=facts, heavy=_table(engine, heavy)), parts


def _table(engine: Engine, heavy: list[tuple[int, ...]]) -> DataFrame:
    names = ("p", "class", "first", "slices")
    if not heavy:
        return engine.empty(", ".join(f"{name} BIGINT" for name in names))
    columns = {
        name: pa.array(column, pa.int64())
        for name, column in zip(names, zip(*heavy, strict=True), strict=True)
    }
    return engine.session.createDataFrame(pa.table(columns))


def place_terms(terms: DataFrame, total: int) -> tuple[DataFrame, int]:
    """Return `terms` cut into ranges of ids, as `part`, and how many there are."""
    size = rows_per_file(total)
    bits = max(0, (-(-total // size) - 1).bit_length())
    # An arithmetic shift keeps the order of signed ids; a shift by 64 would be one by 0.
    part = f"INT(shiftright(id, {64 - bits}))" if bits else "0"
    return terms.selectExpr("id", "term", f"{part} AS part"), 1 << bits
