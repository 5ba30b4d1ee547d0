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
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
import xxhash

from inferlake.errors import InputError
from inferlake.paths import Place, absolute, is_remote, place
from inferlake.terms.shape import SHARED_SCOPE

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
# Files of changes, which only an update reads.
CHANGE_FORMATS = {".rdfp": "rdfp", ".ru": "ru"}
_BY_SUFFIX = FORMATS | CHANGE_FORMATS
# Lines of a stream: RDF Patch, in which a statement without a letter before it is added.
LINES = "lines"
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}

# What rule files are called by habit: among inputs they are a slip.
_RULE_SUFFIXES = (".dl", ".dlog")

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
    # True where a label that has a scope names a node of the store.
    stored_labels: bool = False
    # True where the engine has stumbled over it, and the parser is to tell over what.
    for_parser: bool = False
    # True for triples that take their turn among files of changes, each of them an addition.
    in_turn: bool = False
    # Whose blank nodes these are, where that is not the file itself.
    owner: str | None = None
    # When what it says happened, in milliseconds since 1970, where that is asked for: the same for
    # all of it, or stamped on each statement (`input.times`).
    at: int | None = None
    stamped: bool = False

    @property
    def timed(self) -> bool:
        """Whether its statements come with the times of their events, in place of graphs."""
        return self.stamped or self.at is not None

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
            and not self.in_turn
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
            return SHARED_SCOPE
        identity = self.owner or f"{self.address}|{self.size}|{self.modified}"
        return f"f{xxhash.xxh64_hexdigest(identity.encode())}_"

    @property
    def has_changes(self) -> bool:
        """Whether its statements come with a sign, and in an order that matters."""
        return self.in_turn or self.format in (LINES, *CHANGE_FORMATS.values())

    @property
    def base(self) -> str:
        """The IRI that relative references in it are resolved against."""
        return self.address if is_remote(self.address) else f"file://{quote(self.address)}"

    def open(self) -> io.BufferedReader:
        """Open the decompressed bytes, wherever the file is."""
        at = place(self.address)
        stream: Any = at.filesystem.open_input_stream(at.path, compression=self.compression)
        return io.BufferedReader(stream, 1 << 20)


def discover(
    inputs: Iterable[str | os.PathLike[str]], format: str | None = None, *, changes: bool = False
) -> tuple[InputFile, ...]:
    """Return the files that paths, folders and globs name, each once.

    Folders are searched to any depth for files with a known suffix and other files in them are
    passed over; a file that is named must have a known suffix, unless `format` says what it is.

    Files of triples come in the order of their addresses. With `changes`, only files of changes
    are taken, in the order they are given and sorted inside folders and globs, and a suffix that
    is known goes before `format`, which may be meant for files of triples.

    Raises `InputError` for anything that matches no file.
    """
    if format is not None and format not in _BY_SUFFIX.values():
        known = ", ".join(sorted(set(_BY_SUFFIX.values())))
        raise InputError(f"no format '{format}': choose one of {known}")
    wanted = _Wanted(changes, format)
    found: dict[str, InputFile] = {}
    for item in inputs:
        for file in _matching(absolute(item), wanted):
            found.pop(file.address, None)  # the last word on a triple counts, so the last place too
            found[file.address] = file
    return tuple(found[address] for address in (found if changes else sorted(found)))


def arrived(address: str) -> InputFile:
    """Return a file of triples or of changes, whichever its suffix says, that a stream was told of.

    Raises `InputError` if it is gone, or is not what its suffix says.
    """
    at = place(address)
    info = at.info()
    if info.type != pafs.FileType.File:
        raise InputError(f"{address}: gone before it was read")
    changes = _format(address)[0] in CHANGE_FORMATS.values()
    return _described(at.address, info, _Wanted(changes, None))


def require_readable(file: InputFile) -> None:
    """Raise `InputError` if a file cannot be read to its end; reads all of it."""
    _is_text(file)


@dataclass(frozen=True)
class _Wanted:
    """What a search takes: files of changes or of triples, and the format that was told."""

    changes: bool
    told: str | None

    @property
    def formats(self) -> dict[str, str]:
        return CHANGE_FORMATS if self.changes else FORMATS

    @property
    def known(self) -> str:
        return f"{' '.join(self.formats)}, each also with {' '.join(COMPRESSIONS)}; or say --format"

    def format(self, by_suffix: str | None) -> str | None:
        """Return the format of a file, or None if it is not wanted."""
        by_suffix, told = (
            format if format in self.formats.values() else None for format in (by_suffix, self.told)
        )
        return by_suffix or told if self.changes else told or by_suffix

    def refusal(self, address: str, by_suffix: str | None) -> str:
        """Return why a file that was named is not taken."""
        if self.changes and by_suffix:
            return "holds triples rather than changes; give it with --add or --remove"
        if not self.changes and (by_suffix or self.told):
            return "holds changes rather than triples; give it to update, with --patch"
        if PurePosixPath(address).suffix in _RULE_SUFFIXES:
            return "looks like rules rather than triples; give it with --rules, or say --format"
        return f"unknown suffix; known are {self.known}"


def _matching(address: str, wanted: _Wanted) -> list[InputFile]:
    at = place(address)
    info = at.info()
    if info.type == pafs.FileType.File:
        return [_described(at.address, info, wanted)]
    if info.type == pafs.FileType.Directory:
        return _in_folder(at, wanted)
    matches = _glob(address)
    if not matches:
        what = "no file matches" if _GLOB_CHARACTERS & set(address) else "no such file or folder:"
        raise InputError(f"{what} {address}; check the path")
    return [file for match in matches for file in _matching(match, wanted)]


def _in_folder(at: Place, wanted: _Wanted) -> list[InputFile]:
    files = []
    for info in at.files():
        relative = info.path[len(at.path.rstrip("/")) + 1 :]
        hidden = any(part.startswith(_HIDDEN) for part in PurePosixPath(relative).parts)
        if not hidden and wanted.format(_format(info.path)[0]):
            files.append(_described(f"{at.address.rstrip('/')}/{relative}", info, wanted))
    if not files:
        what = "patch" if wanted.changes else "RDF file"
        raise InputError(f"no {what} in {at.address}: known suffixes are {wanted.known}")
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
    return _BY_SUFFIX.get(name.suffix), compression


def _described(address: str, info: pafs.FileInfo, wanted: _Wanted) -> InputFile:
    by_suffix, compression = _format(info.path)
    chosen = wanted.format(by_suffix)
    if chosen is None:
        raise InputError(f"{address}: {wanted.refusal(address, by_suffix)}")
    file = InputFile(
        address,
        chosen,
        compression,
        info.size or 0,
        info.mtime_ns or 0,
        # A later RDF Patch may delete the blank nodes that an earlier one added.
        scoped=chosen != "rdfp",
    )
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
        past = f" past line {line}" if line else ""
        raise InputError(
            f"{file.address}: cannot be read{past} ({exc}); the file is cut short, damaged, or not"
            " readable for this user: mend it, or leave it out"
        ) from exc
    return True
