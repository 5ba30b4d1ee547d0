"""LUBM data of any size, as N-Triples files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow.fs as pafs

from inferlake.errors import EngineError, InputError
from inferlake.generate.lubm_plan import FILE_COLUMN, LINE_COLUMN, Extent, lubm_lines
from inferlake.paths import Place, place
from inferlake.session import cores, is_engine_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Suffix by compression. Both engines write these, and Inferlake loads them.
SUFFIXES = {None: ".nt", "gzip": ".nt.gz"}

# About 200 MB of text: large enough to read in one go, small enough to share among cores.
UNIVERSITIES_A_FILE = 10

# Where a folder is renamed in one step. In an object store folders are only a way of speaking.
_WITH_FOLDERS = ("local", "hdfs")


@dataclass(frozen=True)
class LubmReport:
    """What was written. A triple that two departments state is counted twice."""

    universities: int
    triples: int
    files: int
    bytes: int


def generate_lubm(
    session: SparkSession,
    universities: int,
    *,
    out: str,
    seed: int = 0,
    compression: str | None = None,
    first: int = 0,
) -> LubmReport:
    """Write LUBM(universities, seed) as N-Triples files into the new or empty folder `out`.

    The universities are those from number `first` on. What is said of one depends on the seed and
    its number alone, so LUBM(50) contains LUBM(10), and both engines write the same lines. With
    `compression="gzip"` the files end with `.nt.gz`.

    Raises `InputError` before anything is written if `out` is not empty or an argument makes no
    sense, and `EngineError` if the engine fails. The files appear in `out` when all are complete; a
    killed process leaves its part in a folder `*.partial-*` beside it, which may be deleted.
    """
    target = place(out)
    _check(target, universities, first, compression)
    extent = Extent(first, universities, files=file_count(universities, cores()))
    partial = place(f"{target.address}.partial-{uuid4().hex}")
    try:
        lines = partial.child("lines")
        triples = _write(session, lubm_lines(seed, extent), lines, compression)
        finished = partial.child("finished")
        _rename(lines, finished, extent, SUFFIXES[compression])
        _publish(finished, target)
    except Exception as exc:
        if not is_engine_failure(exc):
            raise
        raise EngineError(f"the engine failed; nothing was written to {out}: {exc}") from exc
    finally:
        partial.remove()
    written = target.files()
    return LubmReport(universities, triples, len(written), sum(file.size for file in written))


def file_count(universities: int, cores: int) -> int:
    """Return a number of files that can be loaded in parallel and is not larger than need be."""
    return min(universities, max(cores, -(-universities // UNIVERSITIES_A_FILE)))


def file_name(extent: Extent, file: int) -> str:
    """Return a name, without suffix, that tells which universities the file has.

    >>> file_name(Extent(first=0, universities=50, files=5), 4)
    'university-00040-00049'
    """
    return "university-{:05}-{:05}".format(*extent.universities_of(file))


def _check(target: Place, universities: int, first: int, compression: str | None) -> None:
    if universities < 1:
        raise InputError(f"cannot write {universities} universities; ask for 1 or more")
    if first < 0:
        raise InputError(f"there is no university {first}; they are numbered from 0")
    if compression not in SUFFIXES:
        raise InputError(f"cannot compress with '{compression}'; choose gzip, or none")
    if target.info().type == pafs.FileType.File or target.files():
        raise InputError(f"{target.address} is not empty; name a new folder, or empty this one")


def _write(session: SparkSession, query: str, folder: Place, compression: str | None) -> int:
    """Write a folder for each file and return the number of lines."""
    writer = session.sql(query).write.partitionBy(FILE_COLUMN)
    if compression:
        writer = writer.option("compression", compression)
    writer.text(folder.address)
    return session.read.text(folder.address).count()


def _rename(lines: Place, finished: Place, extent: Extent, suffix: str) -> None:
    """Move each file of lines, whatever the engine called it, to the name that we give it."""
    lines.filesystem.create_dir(finished.path)
    ...


def _publish(finished: Place, target: Place) -> None:
    filesystem = target.filesystem
    if filesystem.type_name in _WITH_FOLDERS:
        target.remove()
        filesystem.move(finished.path, target.path)
        return
    for file in finished.files():
        filesystem.move(file.path, target.child(file.base_name).path)
