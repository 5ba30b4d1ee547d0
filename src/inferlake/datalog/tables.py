"""Tables as engines read them: a frame of the terms in their cells."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake.datalog.cells import double_sql, term_of_cell_sql, text_sql, typed_sql
from inferlake.datalog.files import PARQUET, TABLES, UNQUOTED, FactFile
from inferlake.errors import InputError
from inferlake.evaluate.blocks import Scratch
from inferlake.session import Engine, union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Tables:
    """Reads CSV, TSV, `.facts` and Parquet files."""

    engine: Engine
    scratch: Scratch
    # Whether CSV and TSV files begin with a line of names.
    header: bool = False

    def terms(self, files: tuple[FactFile, ...], arity: int) -> DataFrame:
        """Return the terms t0, t1 and so on; they are null where a row is not of that arity.

        In CSV and TSV such a row makes the engine fail, when it comes to it.
        """
        frames = [self._terms_of(*group, arity) for group in self._groups(files)]
        return union(frames)

    def _groups(self, files: tuple[FactFile, ...]) -> Iterator[tuple[FactFile, list[str]]]:
        """Yield files that one reader can read together: one of them, and all their addresses."""
        groups: dict[tuple, list[FactFile]] = defaultdict(list)
        for file in files:
            like = file.schema.types if file.kind == PARQUET else (_crlf(file),)
            groups[file.kind, file.compression, *map(str, like)].append(file)
        for some in groups.values():
            yield some[0], [self._readable(file) for file in some]

    def _readable(self, file: FactFile) -> str:
        """Return an address that engines read: a copy where a name means something to them."""
        if file.read_by_engines:
            return file.at.address
        suffix = {"gzip": ".gz", "bz2": ".bz2"}.get(file.compression or "", "")
        folder = self.scratch.next()
        folder.filesystem.create_dir(folder.path, recursive=True)
        copy = folder.child(f"copy{file.kind}{suffix}")
        source = file.at.filesystem.open_input_stream(file.at.path, compression=None)
        target = copy.filesystem.open_output_stream(copy.path, compression=None)
        with source, target:
            shutil.copyfileobj(source, target)
        return copy.address

    def _terms_of(self, like: FactFile, addresses: list[str], arity: int) -> DataFrame:
        """Return the terms t0, t1 and so on of files that are `like` one of them."""
        cells = [f"c{n}" for n in range(arity)]
        session = self.engine.session
        if like.kind == PARQUET:
            frame = session.read.parquet(*addresses).toDF(*cells)
            terms = [_typed_term(like, n, cell) for n, cell in enumerate(cells)]
        elif like.kind == UNQUOTED:
            lines = session.read.text(addresses)
            whole = f"size(split(value, '\\t', -1)) = {arity}"
            split = [f"IF({whole}, get(split(value, '\\t', -1), {n}), NULL)" for n in range(arity)]
            frame = lines.selectExpr(
                *(f"{one} AS {cell}" for one, cell in zip(split, cells, strict=True))
            )
            terms = [f"IF({c} IS NULL, NULL, {term_of_cell_sql(c)})" for c in cells]
        else:
            frame = self._csv(like, addresses, cells)
            terms = [term_of_cell_sql(cell) for cell in cells]
        return frame.selectExpr(*(f"{term} AS t{n}" for n, term in enumerate(terms)))

    def _csv(self, like: FactFile, addresses: list[str], cells: list[str]) -> DataFrame:
        options = {
            "sep": TABLES[like.kind],
            "quote": '"',
            "escape": '"',  # a quote in a cell is doubled (RFC 4180), not marked by a backslash
            "multiLine": "true",
            "header": str(self.header).lower(),
            "mode": "FAILFAST",  # Spark would fill up short rows, and cut long ones
        }
        if self.engine.name == "spark" and _crlf(like):
            options["lineSep"] = "\r\n"  # else Spark would take the \r out of cells too
        schema = ", ".join(f"{cell} STRING" for cell in cells)
        frame = self.engine.session.read.schema(schema).options(**options).csv(addresses)
        # A cell that is empty comes as null.
        return frame.selectExpr(*(f"coalesce({cell}, '') AS {cell}" for cell in cells))


def _crlf(file: FactFile) -> bool:
    return file.kind in TABLES and file.kind != UNQUOTED and file.ends_rows_with_crlf


def _typed_term(file: FactFile, number: int, cell: str) -> str:
    """Return SQL for the term of a cell of Parquet, whose column says what it is."""
    column = file.schema.field(number)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        return typed_sql(f"CAST({cell} AS STRING)", "integer")
    if pa.types.is_floating(kind):
        return double_sql(f"DOUBLE({cell})")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text_sql(cell)
    raise InputError(
        f"{file.at.address}: column {column.name} is of type {column.type}; columns of facts are"
        " integers, doubles or strings: convert it to one of them"
    )
