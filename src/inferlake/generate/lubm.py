"""LUBM data of any size, as N-Triples files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow.fs as pafs

from inferlake.engines.machine import cores
from inferlake.errors import EngineError, InputError
from inferlake.generate.lubm_plan import FILE, Extent, lubm_lines
from inferlake.generate.lubm_schema import lubm_ontology
from inferlake.paths import Place, is_remote, place
from inferlake.session import is_engine_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Suffix by compression: what both engines can write, and read again.
SUFFIXES = {None: ".nt", "gzip": ".nt.gz"}

ONTOLOGY_NAME = "univ-bench"

# About 240 MB of text: a fair share of work for one core.
UNIVERSITIES_A_FILE = 10

# In a path that an engine reads, these are a pattern.
_PATTERN_CHARACTERS = set("*?[]{}\\")


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
    ontology: bool = False,
) -> LubmReport:
    """Write LUBM(universities, seed) as N-Triples files into the new or empty folder `out`.

    The universities are those from number `first` on. What is said of one depends on the seed and
    its number alone, so LUBM(50) contains LUBM(10), and both engines write the same lines. With
    `compression="gzip"` the files end with `.nt.gz`. With `ontology`, the benchmark's schema is
    written too, as `univ-bench.nt`.

    Raises `InputError` before anything is written if `out` is not empty or an argument makes no
    sense, and `EngineError` if the engine fails. Files come to `out` when all are complete; a
    process that is killed leaves its part in a folder `*.partial-*` beside it, free to delete.
    """
    target = place(out)
    _check(target, universities, first, compression)
    extent = Extent(first, universities, files=file_count(universities, cores()))
    partial = place(f"{target.address}.partial-{uuid4().hex}")
    lines, finished = partial.child("lines"), partial.child("finished")
    try:
        triples = _write(session, lubm_lines(seed, extent), lines, compression)
        _rename(lines, finished, extent, SUFFIXES[compression])
        if ontology:
            triples += _write_ontology(finished.child(f"{ONTOLOGY_NAME}{SUFFIXES[compression]}"))
        _check_empty(target)
        _publish(finished, target)
    except Exception as exc:
        if not is_engine_failure(exc):
            raise
        raise EngineError(f"the engine failed; nothing was written to {out}: {exc}") from exc
    finally:
        partial.remove()
    files = target.files()
    return LubmReport(universities, triples, len(files), sum(file.size for file in files))


def file_count(universities: int, cores: int) -> int:
    """Return how many files to write: as many as can be loaded at once, or as large as is good."""
    return min(universities, max(cores, -(-universities // UNIVERSITIES_A_FILE)))


def file_name(extent: Extent, file: int) -> str:
    """Return a name, without suffix, that tells which universities the file has.

    >>> file_name(Extent(first=0, universities=50, files=5), 4)
    'university-00040-00049'
    """
    universities = extent.universities_of(file)
    return f"university-{universities.start:05}-{universities.stop - 1:05}"


def _check(target: Place, universities: int, first: int, compression: str | None) -> None:
    if universities < 1:
        raise InputError(f"cannot write {universities} universities; ask for 1 or more")
    if first < 0:
        raise InputError(f"there is no university {first}; they are numbered from 0")
    if compression not in SUFFIXES:
        raise InputError(f"cannot compress with '{compression}'; choose gzip or nothing")
    if _PATTERN_CHARACTERS & set(target.address):
        raise InputError(f"{target.address}: choose a path without any of *?[]{{}}\\")
    _check_empty(target)
    target.require_writable(beside=True)  # where all is written first
    target.require_writable()


def _check_empty(target: Place) -> None:
    if target.info().type == pafs.FileType.File or target.files():
        raise InputError(f"{target.address} is not empty; name a new folder, or empty this one")


def _write(session: SparkSession, query: str, lines: Place, compression: str | None) -> int:
    """Write the lines, one folder for each file to be, and return how many there are."""
    writer = session.sql(query).write.partitionBy(FILE)
    if compression:
        writer = writer.option("compression", compression)
    writer.text(lines.address)
    return session.read.text(lines.address).count()


def _rename(lines: Place, finished: Place, extent: Extent, suffix: str) -> None:
    """Move the files of lines out of their folders to names that tell what they have."""
    finished.filesystem.create_dir(finished.path)
    parts: Counter[str] = Counter()
    for file in lines.files():
        if file.base_name.startswith((".", "_")):  # checksums and success markers
            continue
        folder = file.path.split("/")[-2]
        name = file_name(extent, int(folder.removeprefix(f"{FILE}=")))
        # A session may limit the records of a file, and then there are several.
        part = f"-{parts[name]}" if parts[name] else ""
        parts[name] += 1
        finished.filesystem.move(file.path, finished.child(f"{name}{part}{suffix}").path)


def _write_ontology(target: Place) -> int:
    """Write the schema, compressed if its name says so, and return how many triples it has."""
    text = lubm_ontology()
    with target.filesystem.open_output_stream(target.path) as file:
        file.write(text.encode())
    return text.count("\n")


def _publish(finished: Place, target: Place) -> None:
    """Move the finished files to the target; in one step if it is a new folder of a local disk."""
    if not is_remote(target.address) and not target.exists():
        target.filesystem.move(finished.path, target.path)
        return
    target.filesystem.create_dir(target.path)
    for file in finished.files():
        target.filesystem.move(file.path, target.child(file.base_name).path)
