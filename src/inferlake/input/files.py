"""Which files an input names, and what their suffixes say of them."""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import xxhash

from inferlake.errors import InputError
from inferlake.paths import Place, absolute, is_remote, place

# Format by suffix; the names are pyoxigraph's file extensions, which it maps to its parsers.
FORMATS = {
    ".nt": "nt",
    ".ntriples": "nt",
    ".nq": "nq",
    ".nquads": "nq",
    ".ttl": "ttl",
    ".turtle": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".xml": "rdf",
    ".jsonld": "jsonld",
    ".n3": "n3",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

# Formats of one statement a line, which the engine splits and parses in parallel.
LINE_FORMATS = ("nt", "nq")

# Spark has no zstd text codec without Hadoop's native library; both engines read these characters
# in a path as a glob, and take files whose names begin like these for no data at all: such files go
# the way of the formats that are not split.
_READ_BY_ENGINE = (None, "gzip", "bz2")
_GLOB_CHARACTERS = set("*?[]{}\\")
_HIDDEN = ("_", ".")

# How bzip2 data begins: a header, then a block or, where there is nothing in it, the end.
_BZIP2 = re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")

# Text compresses about this well; a guess that only decides between engines.
_INFLATION = 12


@dataclass(frozen=True)
class InputFile:
    """One file to load."""

    address: str
    format: str
    compression: str | None
    size: int
    modified: int
    # False where blank node labels mean the same node wherever they come from.
    scoped: bool = True
    # True where the engine has stumbled over it, and the parser is to tell over what.
    for_parser: bool = False

    @property
    def text_size(self) -> int:
        """Bytes of text in it, estimated where it is compressed."""
        return self.size * _INFLATION if self.compression else self.size

    @property
    def split_by_engine(self) -> bool:
        """Whether the engine itself reads its lines."""
        return (
            self.format in LINE_FORMATS
            and self.compression in _READ_BY_ENGINE
            and not self.for_parser
            and not _GLOB_CHARACTERS & set(self.address)
            and not PurePosixPath(self.address).name.startswith(_HIDDEN)
        )

    @property
    def scope(self) -> str:
        """The prefix that keeps this file's blank nodes apart from every other file's.

        The same unchanged file gives the same nodes again, so loading it twice adds nothing; a
        file that changed gives new ones, because an equal label need not mean the same thing.
        """
        if not self.scoped:
            return ""
        identity = f"{self.address}|{self.size}|{self.modified}"
        return f"f{xxhash.xxh64_hexdigest(identity.encode())}_"

    def open(self) -> io.BufferedReader:
        """Open the decompressed bytes, wherever the file is."""
        at = place(self.address)
        stream: Any = at.filesystem.open_input_stream(at.path, compression=self.compression)
        return io.BufferedReader(stream, 1 << 20)


def discover(
    inputs: Iterable[str | os.PathLike[str]], format: str | None = None
) -> tuple[InputFile, ...]:
    """Return the files that paths, folders and globs name, in a stable order, each once.

    Folders are searched to any depth for files with a known suffix and other files in them are
    passed over; a file that is named must have a known suffix, unless `format` says what it is.
    Raises `InputError` for anything that matches no file.
    """
    if format is not None and format not in FORMATS.values():
        known = ", ".join(sorted(set(FORMATS.values())))
        raise InputError(f"no format '{format}': choose one of {known}")
    found: dict[str, InputFile] = {}
    for item in inputs:
        for file in _matching(absolute(item), format):
            found.setdefault(file.address, file)
    return tuple(found[address] for address in sorted(found))


def _matching(address: str, format: str | None) -> list[InputFile]:
    at = place(address)
    info = at.info()
    if info.type == pafs.FileType.File:
        return [_described(at.address, info, format)]
    if info.type == pafs.FileType.Directory:
        return _in_folder(at, format)
    matches = _glob(address)
    if not matches:
        what = "no file matches" if _GLOB_CHARACTERS & set(address) else "no such file or folder:"
        raise InputError(f"{what} {address}; check the path")
    return [file for match in matches for file in _matching(match, format)]


def _in_folder(at: Place, format: str | None) -> list[InputFile]:
    files = []
    for info in at.files():
        relative = info.path[len(at.path.rstrip("/")) + 1 :]
        hidden = any(part.startswith(_HIDDEN) for part in PurePosixPath(relative).parts)
        if not hidden and (format or _format(info.path)[0]):
            files.append(_described(f"{at.address.rstrip('/')}/{relative}", info, format))
    if not files:
        raise InputError(
            f"no RDF file in {at.address}: known suffixes are {' '.join(FORMATS)},"
            f" each also with {' '.join(COMPRESSIONS)}; or say --format"
        )
    return files


def _glob(address: str) -> list[str]:
    if not _GLOB_CHARACTERS & set(address):
        return []
    if not is_remote(address):
        return sorted(glob.glob(address, recursive=True))  # noqa: PTH207  (absolute patterns)
    fixed = address[: min(address.index(c) for c in _GLOB_CHARACTERS if c in address)]
    folder = place(fixed[: fixed.rindex("/")])
    inner = folder.path + address[len(folder.address) :]
    prefix = len(folder.path)
    return [
        folder.address + info.path[prefix:]
        for info in folder.files()
        if fnmatch.fnmatchcase(info.path, inner)
    ]


def _format(path: str) -> tuple[str | None, str | None]:
    """Return format and compression by suffix, each None where the suffix says nothing."""
    name = PurePosixPath(path.lower())
    compression = COMPRESSIONS.get(name.suffix)
    if compression:
        name = name.with_suffix("")
    return FORMATS.get(name.suffix), compression


def _described(address: str, info: pafs.FileInfo, format: str | None) -> InputFile:
    by_suffix, compression = _format(info.path)
    chosen = format or by_suffix
    if chosen is None:
        raise InputError(
            f"{address}: unknown suffix; known are {' '.join(FORMATS)}, each also with"
            f" {' '.join(COMPRESSIONS)}; or say --format"
        )
    file = InputFile(address, chosen, compression, info.size or 0, info.mtime_ns or 0)
    if compression == "bz2" and file.size and not _is_bzip2(file):
        raise InputError(f"{address}: not bzip2 data; the file is damaged or its suffix is wrong")
    return file


def _is_bzip2(file: InputFile) -> bool:
    """Tell by the first bytes: Spark reads a file of other bytes as one without lines."""
    at = place(file.address)
    try:
        with at.filesystem.open_input_stream(at.path, compression=None) as stream:
            return _BZIP2.match(stream.read(10)) is not None
    except OSError as exc:
        raise InputError(f"{file.address}: cannot be read: {exc}") from exc


def examined(files: Iterable[InputFile]) -> tuple[InputFile, ...]:
    """Return `files`, marked for the parser where they are not UTF-8 text.

    Raises `InputError` for one that cannot be read to its end. Engines report a broken file in
    terms of their own; this reads the files again, one by one, only after an engine failed.
    """
    return tuple(replace(file, for_parser=not _is_text(file)) for file in files)


def _is_text(file: InputFile) -> bool:
    line = 0
    try:
        with file.open() as stream:
            for raw in stream:
                line += 1
                if file.format in LINE_FORMATS:
                    raw.decode()
    except UnicodeDecodeError:
        return False
    except (OSError, EOFError, pa.ArrowException) as exc:
        raise InputError(
            f"{file.address}: cannot be read past line {line} ({exc});"
            " the file is cut short, damaged, or not readable for this user"
        ) from exc
    return True
