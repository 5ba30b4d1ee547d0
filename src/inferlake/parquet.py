"""What the footers of freshly written Parquet files say: rows, nulls, smallest and largest values.

Reading a footer takes well under a millisecond, an engine's job for the same numbers takes twenty
or three hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from inferlake.paths import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Footers are small and far away in a cloud: fetch some at once.
_FETCHES = 16

# Spark leaves out all statistics of a column with a value over 4096 bytes, unless it may cut them.
_SHORT_STATISTICS = ("parquet.statistics.truncate.length", 64)

# The smallest and largest text is of no use here, and need not even be text where it was cut.
_ORDERED = ("INT32", "INT64")


class Ranged:
    """A file whose smallest and largest values are known, where there are any."""

    mins: Mapping[str, Any]
    maxs: Mapping[str, Any]

    def may_hold(self, column: str, value: int) -> bool:
        """Tell whether `value` lies within the file's range of `column`."""
        return column not in self.mins or self.mins[column] <= value <= self.maxs[column]


@dataclass(frozen=True)
class DataFile(Ranged):
    """One Parquet file below a folder, by its footer."""

    path: str
    size: int
    modified_ms: int
    rows: int
    nulls: dict[str, int] = field(default_factory=dict)
    mins: Mapping[str, Any] = field(default_factory=dict)
    maxs: Mapping[str, Any] = field(default_factory=dict)


# Files that stay are small and searched: small row groups let statistics skip most of a file. Files
# of a stage are read once, whole: what counts is the time to write them. (Sail ignores Spark's
# name for the size of a row group, and has one setting for all.)
KEPT = {"compression": "zstd", "parquet.block.size": str(4 * 2**20)}
PASSING = {"compression": "snappy", "parquet.block.size": str(128 * 2**20)}


def write(
    frame: DataFrame, at: Place, *, by: str | None = None, how: Mapping[str, str] = KEPT
) -> tuple[DataFile, ...]:
    """Write `frame` as Parquet below `at`, a file for each value of `by`, and describe it."""
    writer = frame.write.options(**how).option(*_SHORT_STATISTICS)
    if by is not None:
        writer = writer.partitionBy(by)
    writer.parquet(at.address)
    return described(at)


def write_table(
    table: pa.Table, at: Place, *, how: Mapping[str, str] = KEPT
) -> tuple[DataFile, ...]:
    """Write a small table of the driver's as one Parquet file below `at`, and describe it."""
    at.filesystem.create_dir(at.path, recursive=True)
    with at.filesystem.open_output_stream(at.child("part.parquet").path) as sink:
        pq.write_table(table, sink, compression=how["compression"])
    return described(at)


def described(at: Place) -> tuple[DataFile, ...]:
    """Describe every Parquet file below `at` that has rows."""
    infos = [info for info in at.files() if info.path.endswith(".parquet")]
    if len(infos) < 2:
        files = [_describe(at, info) for info in infos]
    else:
        with ThreadPoolExecutor(_FETCHES) as pool:
            files = list(pool.map(lambda info: _describe(at, info), infos))
    return tuple(file for file in files if file.rows)


def rows(files: Iterable[DataFile]) -> int:
    """Return the number of rows in all `files`."""
    return sum(file.rows for file in files)


def filled(files: Iterable[DataFile], column: str) -> int:
    """Return in how many rows of `files` the `column` is not null."""
    return sum(file.rows - file.nulls[column] for file in files)


def total(at: Place, files: Iterable[DataFile], column: str) -> int:
    """Return the sum of a column of numbers, without an engine."""
    some = tuple(files)
    if not some:
        return 0
    summed = read_table(at, some, [column]).group_by([]).aggregate([(column, "sum")])
    return summed.to_pylist()[0][f"{column}_sum"] or 0


def read_table(at: Place, files: Iterable[DataFile], columns: Iterable[str]) -> pa.Table:
    """Return some columns of files below `at`, on the driver, without an engine."""
    names, tables = list(columns), []
    for file in files:
        with at.filesystem.open_input_file(at.child(file.path).path) as source:
            tables.append(pq.read_table(source, columns=names))
    return pa.concat_tables(tables)


def read_rows(at: Place, files: Iterable[DataFile], columns: Iterable[str]) -> list[tuple]:
    """Return some columns of small files below `at`, as rows on the driver, without an engine."""
    some, names = tuple(files), list(columns)
    if not some:
        return []
    table = read_table(at, some, names)
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def _describe(at: Place, info: Any) -> DataFile:
    nulls: dict[str, int] = {}
    mins: dict[str, Any] = {}
    maxs: dict[str, Any] = {}
    unknown: set[str] = set()
    with at.filesystem.open_input_file(info.path) as source:
        footer = pq.read_metadata(source)
        for group in range(footer.num_row_groups):
            row_group = footer.row_group(group)
            for index in range(row_group.num_columns):
                column = row_group.column(index)
                name, known = column.path_in_schema, column.statistics
                if known is None or not known.has_null_count:
                    # Some writer has its own reasons: count, so that no caller need guess.
                    part = pq.ParquetFile(source).read_row_group(group, columns=[name])
                    nulls[name] = nulls.get(name, 0) + part.column(name).null_count
                    unknown.add(name)
                    continue
                nulls[name] = nulls.get(name, 0) + known.null_count
                if known.has_min_max and column.physical_type in _ORDERED:
                    mins[name] = min(mins.get(name, known.min), known.min)
                    maxs[name] = max(maxs.get(name, known.max), known.max)
                elif known.null_count < row_group.num_rows:
                    unknown.add(name)
    # A range that one row group does not vouch for would hide that group's rows.
    for name in unknown:
        mins.pop(name, None)
        maxs.pop(name, None)
    relative = info.path[len(at.path.rstrip("/")) + 1 :]
    stamp = (info.mtime_ns or 0) // 1_000_000
    return DataFile(relative, info.size, stamp, footer.num_rows, nulls, mins, maxs)
