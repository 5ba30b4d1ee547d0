"""Which files `relation=path` names, what kind they are, and what is wrong with them.

Engines read the tables. The driver looks at the first row, for the number of columns, and reads a
file to its end only after an engine failed on it, to say where.
"""

from __future__ import annotations

import csv
import glob
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from inferlake.errors import InputError
from inferlake.input import InputFile, discover
from inferlake.input.files import COMPRESSIONS, FORMATS
from inferlake.paths import Place, absolute, place

# By suffix: the separator, and whether cells may be quoted. Soufflé's `.facts` are never quoted.
TABLES = {".csv": ",", ".tsv": "\t", ".facts": "\t"}
UNQUOTED = ".facts"
PARQUET = ".parquet"
# Spark has no codec for others without Hadoop's native library.
_COMPRESSIONS = ("gzip", "bz2")

# Both engines take these for a pattern, or for no data.
_UNREADABLE = re.compile(r"[*?\[\]{}\\]|/[._][^/]*$")

_RDF_COLUMNS = 3
_SHOWN = 80


@dataclass(frozen=True)
class FactFile:
    """A file with facts of one relation."""

    at: Place
    # A key of TABLES, PARQUET, or a suffix of RDF.
    kind: str
    size: int
    compression: str | None = None

    @property
    def is_rdf(self) -> bool:
        return self.kind in FORMATS

    @property
    def read_by_engines(self) -> bool:
        """Whether an engine can be given its address."""
        return not _UNREADABLE.search(self.at.address)

    @property
    def ends_rows_with_crlf(self) -> bool:
        """Whether its first row, and so each, ends as on Windows."""
        quotes = 0
        for line in self._lines():
            quotes += line.count('"')
            if quotes % 2 == 0:
                return line.endswith("\r\n")
        return False

    @cached_property
    def columns(self) -> int | None:
        """The number of columns; None of a table without rows."""
        if self.is_rdf:
            return _RDF_COLUMNS
        if self.kind == PARQUET:
            return len(self.schema)
        return next((len(row) for _, row in self.rows()), None)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of a Parquet file."""
        try:
            with self.at.filesystem.open_input_file(self.at.path) as source:
                return pq.read_schema(source)
        except (pa.ArrowInvalid, OSError) as exc:
            raise InputError(f"{self.at.address}: not a Parquet file: {exc}") from exc

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows of a text file, each with the line it ends in; empty lines are none."""
        line = 0
        try:
            if self.kind == UNQUOTED:
                for line, text in enumerate(self._lines(), 1):
                    # A carriage return by itself ends a line for the engines too.
                    yield from ((line, row.split("\t")) for row in text.rstrip("\r\n").split("\r"))
                return
            csv.field_size_limit(2**31 - 1)  # a long cell is no mistake
            found = csv.reader(self._lines(), delimiter=TABLES[self.kind])
            for row in found:
                line = found.line_num
                if row:
                    yield line, row
        except (OSError, EOFError, pa.ArrowException, csv.Error) as exc:
            raise InputError(
                f"{self.at.address}: cannot be read past line {line} ({exc});"
                " the file is cut short, damaged, or not readable for this user"
            ) from exc

    def _lines(self) -> Iterator[str]:
        at = self.at
        stream: Any = at.filesystem.open_input_stream(at.path, compression=self.compression)
        with io.BufferedReader(stream) as source:
            for number, raw in enumerate(source, 1):
                try:
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as exc:
                    raise InputError(
                        f"{at.address}:{number}: not UTF-8; save the file as UTF-8"
                    ) from exc

    def head(self, rows: int) -> list[list[str]]:
        """Return the first rows of a text file."""
        return [row for _, row in itertools.islice(self.rows(), rows)]


def find(path: str) -> tuple[FactFile, ...]:
    """Return the files that a path, a folder or a glob names, in order of their names."""
    address = absolute(path)
    at = place(address)
    kind = at.info().type
    if kind == pafs.FileType.File:
        return (_described(at),)
    if kind == pafs.FileType.Directory:
        found = [at.child(info.path[len(at.path) + 1 :]) for info in at.files()]
        return _known(address, [one for one in found if one.path.rsplit("/")[-1][0] != "_"])
    matches = sorted(glob.glob(address, recursive=True))  # noqa: PTH207  (absolute patterns)
    if not matches:
        raise InputError(f"no such file or folder: {address}; check the path")
    return _known(address, [place(match) for match in matches])


def _known(address: str, found: list[Place]) -> tuple[FactFile, ...]:
    files = tuple(_described(at) for at in found if _kind(at.path)[0] is not None)
    if not files:
        raise InputError(f"{address}: no file of facts there; known are {_suffixes()}")
    return files


def _kind(path: str) -> tuple[str | None, str | None]:
    """Return the suffix that says what a file is, and its compression."""
    name = PurePosixPath(path.lower())
    compression = COMPRESSIONS.get(name.suffix)
    suffix = PurePosixPath(name.stem).suffix if compression else name.suffix
    return (suffix if suffix in (*TABLES, PARQUET, *FORMATS) else None), compression


def _described(at: Place) -> FactFile:
    kind, compression = _kind(at.path)
    if kind is None:
        raise InputError(f"{at.address}: unknown suffix; known are {_suffixes()}")
    if kind == PARQUET and compression:
        raise InputError(f"{at.address}: Parquet compresses by itself; unpack the file")
    if kind in TABLES and compression not in (None, *_COMPRESSIONS):
        raise InputError(f"{at.address}: tables may be .gz or .bz2; unpack the file")
    return FactFile(at, kind, at.info().size or 0, compression)


def _suffixes() -> str:
    tables = f"{' '.join(TABLES)} (each also with .gz or .bz2)"
    return f"{tables}, {PARQUET}, and RDF: {' '.join(FORMATS)}"


def as_rdf(files: tuple[FactFile, ...]) -> tuple[InputFile, ...]:
    """Return RDF files as the stage takes them."""
    return discover([file.at.address for file in files])


def check_columns(file: FactFile, relation: str, arity: int) -> None:
    """Raise `InputError` unless the file, by its beginning, has as many columns as the relation."""
    if file.columns not in (None, arity):
        raise InputError(_refusal(file.at.address, relation, arity, file.columns or 0))


def examine(file: FactFile, relation: str, arity: int) -> None:
    """Raise `InputError` with the place where a text file goes wrong, if it does."""
    for line, row in file.rows() if file.kind in TABLES else ():
        if len(row) != arity:
            shown = TABLES[file.kind].join(row)[:_SHOWN]
            where = f"{file.at.address}:{line}"
            raise InputError(f"{_refusal(where, relation, arity, len(row))}\n    {shown}")


def _refusal(where: str, relation: str, arity: int, found: int) -> str:
    columns = f"{found} column{'' if found == 1 else 's'}"
    return (
        f"{where}: {columns} here, and {relation} has {arity} arguments in the program;"
        " mend the file, or name another relation"
    )


def looks_headed(file: FactFile) -> bool:
    """Guess whether a text file begins with names of columns: words over numbers."""
    if file.kind not in TABLES or file.kind == UNQUOTED:
        return False
    match file.head(2):
        case [names, row]:
            pairs = zip(names, row, strict=False)
            return not any(map(_is_number, names)) and any(_is_number(one) for _, one in pairs)
    return False


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", cell) is not None
