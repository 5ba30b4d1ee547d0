"""Facts to N-Triples files, and changes to RDF Patch.

The engine writes lines in parallel next to the store, and the driver copies them where they are
wanted, a block at a time: to one file, a folder, or standard output.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow.fs as pafs

from inferlake.errors import InputError
from inferlake.paths import Place, absolute, is_remote, place
from inferlake.progress import Stopwatch
from inferlake.session import Engine
from inferlake.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BLOCK = 1 << 20


def export(
    store: Store,
    engine: Engine,
    facts: DataFrame,
    output: str | None,
    watch: Stopwatch,
    check: Callable[[], None],
) -> int:
    """Write `facts` (subject, predicate, object) to `output` and return how many there are.

    `output` is a `.nt` or `.nt.gz` file, a folder, or None for standard output. A file appears when
    it is complete, and the folder it goes into with it. What `check` raises once the facts are read
    keeps everything from appearing.
    """
    suffix = None if output is None else _suffix(output, (".nt.gz", ".nt"))
    if suffix not in (None, "", ".nt", ".nt.gz"):
        raise InputError(f"{output}: export writes .nt, .nt.gz, or a folder; choose one of them")
    if output is not None and suffix == "":
        _require_new_folder(place(output))
    elif output is not None:
        _require_file(place(output))
    lines = facts.selectExpr("concat(subject, ' ', predicate, ' ', object, ' .') AS value")
    with store.scratch(engine) as folder:
        with watch.phase("decode"):
            parts = _lines(lines, folder, zipped=suffix == ".nt.gz")
            check()
        with watch.phase("write"):
            if output is None:
                return _copy(parts, sys.stdout.buffer)
            if suffix == "":
                return _to_folder(parts, place(output))
            return _to_file(parts, absolute(output), zipped=suffix == ".nt.gz")


def export_patch(
    store: Store,
    engine: Engine,
    changes: Iterable[DataFrame],
    output: str | None,
    watch: Stopwatch,
    check: Callable[[], None],
    *,
    header: str | None = None,
) -> int:
    """Write the lines of changes as one transaction of an RDF Patch, and return how many they are.

    `output` is a `.rdfp` or `.rdfp.gz` file, or None for standard output, where a reader sees the
    whole transaction at once. A `header` is a line before it. What `check` raises once the changes
    are read keeps everything from appearing.
    """
    suffix = None if output is None else _suffix(output, (".rdfp.gz", ".rdfp"))
    if suffix not in (None, ".rdfp", ".rdfp.gz"):
        raise InputError(f"{output}: changes are written to .rdfp or .rdfp.gz; choose one of them")
    if output is not None:
        _require_file(place(output))
    zipped = suffix == ".rdfp.gz"
    with store.scratch(engine) as folder:
        with watch.phase("decode"):
            begin = ([header] if header else []) + ["TX ."]
            parts = [_line(folder.child("begin"), "\n".join(begin), zipped=zipped)]
            for number, lines in enumerate(changes):
                parts += _lines(lines, folder.child(str(number)), zipped=zipped)
            parts.append(_line(folder.child("end"), "TC .", zipped=zipped))
            check()
        with watch.phase("write"):
            others = len(begin) + 1
            if output is None:
                count = _copy(parts, sys.stdout.buffer) - others
                sys.stdout.buffer.flush()
                return count
            return _to_file(parts, absolute(output), zipped=zipped) - others


def _require_new_folder(output: Place) -> None:
    if output.info().type == pafs.FileType.File or output.files():
        raise InputError(f"{output.address}: not empty; export to a new folder")
    output.require_writable()


def _require_file(output: Place) -> None:
    output.require_writable(beside=True)
    if output.info().type == pafs.FileType.Directory:
        raise InputError(f"{output.address}: cannot be written: a folder is there; name a file")


def _lines(lines: DataFrame, folder: Place, *, zipped: bool) -> list[Place]:
    """Let the engine write lines, and return the files they are in."""
    lines.write.option("compression", "gzip" if zipped else "none").text(folder.address)
    found = (info for info in folder.files() if info.base_name != "_SUCCESS")
    return [Place(info.path, folder.filesystem, info.path) for info in found]


def _line(at: Place, line: str, *, zipped: bool) -> Place:
    at.filesystem.create_dir(at.path.rsplit("/", 1)[0], recursive=True)
    with at.filesystem.open_output_stream(at.path, compression="gzip" if zipped else None) as sink:
        sink.write(f"{line}\n".encode())
    return at


def _suffix(output: str, suffixes: tuple[str, ...]) -> str:
    name = output.rstrip("/").rsplit("/", 1)[-1].lower()
    for known in suffixes:
        if name.endswith(known):
            return known
    return "" if output.endswith("/") or "." not in name else name[name.index(".") :]


def _to_file(parts: list[Place], output: str, *, zipped: bool) -> int:
    """Join the parts; members of a gzip file may simply follow each other."""
    if is_remote(output):
        target = place(output)
        with target.filesystem.open_output_stream(target.path, compression=None) as sink:
            return _copy(parts, sink, zipped=zipped)
    unfinished = Path(f"{output}.{uuid.uuid4().hex}.tmp")
    try:
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as sink:
            count = _copy(parts, sink, zipped=zipped)
        unfinished.replace(output)
    except OSError as exc:
        raise InputError(f"{output}: cannot be written: {exc}") from exc
    finally:
        with suppress(OSError):  # it was renamed, or could not even be created
            unfinished.unlink()
    return count


def _to_folder(parts: list[Place], target: Place) -> int:
    target.filesystem.create_dir(target.path, recursive=True)
    count = 0
    for number, part in enumerate(parts):
        name = target.child(f"part-{number:05}.nt").path
        with target.filesystem.open_output_stream(name, compression=None) as sink:
            count += _copy([part], sink)
    return count


def _copy(parts: list[Place], sink: IO[bytes], *, zipped: bool = False) -> int:
    """Append the bytes of `parts` to `sink` and return how many lines they are."""
    lines = 0
    for part in parts:
        with part.filesystem.open_input_stream(part.path, compression=None) as source:
            while block := source.read(_BLOCK):
                lines += 0 if zipped else block.count(b"\n")
                sink.write(block)
        if zipped:
            with part.filesystem.open_input_stream(part.path, compression="gzip") as source:
                while block := source.read(_BLOCK):
                    lines += block.count(b"\n")
    return lines
