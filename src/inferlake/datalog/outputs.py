"""Relations of a closure to files: one CSV or TSV file, or one folder of Parquet, for each.

Text is made by one query for all relations, because programs may have thousands of them; the driver
puts the parts together, a block at a time.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from inferlake import parquet
from inferlake.datalog.cells import cell_of_term_sql, field_sql
from inferlake.errors import InputError
from inferlake.evaluate.blocks import Scratch, facts
from inferlake.evaluate.closure import Closure
from inferlake.paths import Place, is_remote
from inferlake.plan.clauses import Layout
from inferlake.plan.patterns import Patterns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Format = Literal["csv", "tsv", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SEPARATORS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Outputs:
    """Writes relations of a finished evaluation, whose dictionary is `terms` (id, term)."""

    closure: Closure
    terms: DataFrame
    scratch: Scratch

    @property
    def layout(self) -> Layout:
        return self.closure.fixpoint.queries.layout

    def write(self, relations: Iterable[str], to: Place, format: Format) -> None:
        """Write a file for each relation, also for one without facts, into the new folder `to`."""
        names = list(relations)
        to.filesystem.create_dir(to.path, recursive=True)
        if format == "parquet":
            for name in names:
                self._write_parquet(name, to.child(f"{name}.parquet"))
        elif names:
            self._write_text(names, to, format)

    def _cells(self, separator: str | None) -> DataFrame:
        """Return `id, cell`, the cell as it stands in a line if there is a separator."""
        cells = self.terms.selectExpr("id", f"{cell_of_term_sql('term')} AS cell")
        if separator is not None:
            cells = cells.selectExpr("id", f"{field_sql('cell', separator)} AS cell")
        return cells

    def _write_text(self, names: list[str], to: Place, format: Format) -> None:
        engine, separator = self.closure.fixpoint.queries.engine, _SEPARATORS[format]
        # Written once, rather than computed for every column that is joined with it.
        at, files = self.scratch.write(self._cells(separator))
        found = self._facts(names)
        parts = self.scratch.next()
        if found is not None and files:
            cells = engine.session.read.schema("id BIGINT, cell STRING").parquet(at.address)
            lines = engine.sql(_lines_sql(self.layout, separator), facts=found, cells=cells)
            lines.write.partitionBy("r").option("compression", "none").text(parts.address)
        for name in names:
            number = 0 if self.layout.only_triples else self.layout.number(name)
            _join(parts.child(f"r={number}"), to.child(f"{name}.{format}"))

    def _facts(self, names: list[str]) -> DataFrame | None:
        """Return the facts of some relations, in the columns of the layout with r."""
        layout, fixpoint = self.layout, self.closure.fixpoint
        rows = [layout.row(name, ["x"] * layout.arities[name]) for name in names]
        found = facts(fixpoint.blocks, fixpoint.queries.engine, Patterns(rows), layout)
        if found is None:
            return None
        if layout.only_triples:
            return found.selectExpr("BIGINT(0) AS r", "*")
        wanted = ", ".join(str(layout.number(name)) for name in names)
        return found.where(f"r IN ({wanted})")

    def _write_parquet(self, name: str, to: Place) -> None:
        engine, arity = self.closure.fixpoint.queries.engine, self.layout.arities[name]
        found = self.closure.relation(name)
        text = _columns_sql(found.columns)
        files = parquet.write(engine.sql(text, facts=found, cells=self._cells(None)), to)
        if not files:  # an engine may have written nothing at all
            to.filesystem.create_dir(to.path, recursive=True)
            empty = pa.table({f"c{n}": pa.array([], pa.string()) for n in range(arity)})
            file = to.child("empty.parquet")
            with file.filesystem.open_output_stream(file.path) as sink:
                pq.write_table(empty, sink)


def _lines_sql(layout: Layout, separator: str) -> str:
    """Return SQL for lines: narrow relations have no cells in the last columns, and no commas."""
    columns = layout.arguments
    cells = ", ".join(f"t{n}.cell" for n in range(len(columns)))
    shown = "\\t" if separator == "\t" else separator
    text = f"SELECT f.r, concat_ws('{shown}', {cells}) AS value FROM {{facts}} f"
    for n, name in enumerate(columns):
        text += f" LEFT JOIN {{cells}} t{n} ON f.{name} = t{n}.id"
    return text


def _columns_sql(columns: list[str]) -> str:
    made = ", ".join(f"t{n}.cell AS c{n}" for n in range(len(columns)))
    text = f"SELECT {made} FROM {{facts}} f"
    for n, name in enumerate(columns):
        text += f" JOIN {{cells}} t{n} ON f.{name} = t{n}.id"
    return text


def _join(parts: Place, to: Place) -> None:
    """Put the files of a folder, if there is one, into one file."""
    with to.filesystem.open_output_stream(to.path, compression=None) as sink:
        for info in parts.files():
            with parts.filesystem.open_input_stream(info.path, compression=None) as source:
                shutil.copyfileobj(source, sink)


def check_output(output: Place) -> None:
    """Raise `InputError` unless `output` is a new or empty folder that engines can write to.

    What is written there is first written beside it.
    """
    if output.info().type == pafs.FileType.File or output.files():
        raise InputError(f"{output.address}: already there; name a new or empty folder")
    if any(mark in output.address for mark in "*?[]{}\\"):
        raise InputError(f"{output.address}: engines read * ? [ ] {{ }} as patterns; rename it")
    output.require_writable(beside=True)


def publish(finished: Place, output: Place) -> None:
    """Let a finished folder appear as `output`: at once on a disk, file by file in a cloud."""
    if is_remote(output.address):
        pafs.copy_files(
            finished.path,
            output.path,
            source_filesystem=finished.filesystem,
            destination_filesystem=output.filesystem,
        )
        return
    with suppress(FileNotFoundError):
        output.remove_if_empty()
    finished.filesystem.move(finished.path, output.path)
