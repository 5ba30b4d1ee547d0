"""Lines that come without files: written to some, so that either engine can read them.

A spool has a text file for each partition of the source, in which the lines are in order. If all of
them are plain statements, an engine splits them in parallel; else they are lines of RDF Patch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any

from inferlake.input import LINES, Bad, InputFile, stamped
from inferlake.paths import Place
from inferlake.stream.batch import Batch

_PLAIN = (b"<", b"_:", b"#")


@dataclass(frozen=True)
class Message:
    """What came at one place of a source: one line, or several."""

    text: bytes
    offset: int
    # Of the source, where it has any.
    partition: int | None = None
    # When it came, in seconds since 1970.
    time: float | None = None
    # When what it says happened, in milliseconds since 1970, where that matters.
    event: int | None = None


@dataclass
class _Part:
    """The lines of one partition, and the offset of each."""

    sink: IO[bytes]
    at: Place
    partition: int | None
    offsets: array[int] = field(default_factory=lambda: array("q"))

    def put(self, line: bytes, offset: int) -> None:
        self.sink.write(line + b"\n")
        self.offsets.append(offset)


def spooled(
    at: Place,
    number: int,
    messages: Iterable[Message],
    *,
    source: str,
    owner: str,
    timed: bool = False,
) -> Batch:
    """Write messages below `at`, in their order, and return the batch that they are.

    The driver holds one message at a time, and eight bytes for each line. Blank nodes belong to
    the `owner`: all lines of one stream share their labels. If they are `timed`, each line gets
    the time of its message's event, and statements of messages without one are bad lines.
    """
    at.filesystem.create_dir(at.path, recursive=True)
    parts: dict[int | None, _Part] = {}
    plain, oldest, newest = True, None, None
    with ExitStack() as stack:
        for message in messages:
            part = parts.get(message.partition)
            if part is None:
                place = at.child(f"part-{len(parts)}")
                sink: Any = place.filesystem.open_output_stream(place.path, compression=None)
                part = _Part(stack.enter_context(sink), place, message.partition)
                parts[message.partition] = part
            for line in _lines(message.text):
                plain = plain and line.startswith(_PLAIN)
                part.put(stamped(line, message.event) if timed else line, message.offset)
            if message.time is not None:
                oldest = message.time if oldest is None else min(oldest, message.time)
            if message.event is not None:
                newest = message.event if newest is None else max(newest, message.event)
    files = tuple(_file(part, plain=plain, owner=owner, timed=timed) for part in parts.values())
    origins = _Origins(source, {part.at.address: part for part in parts.values()})
    return Batch(number, files, oldest=oldest, origin=origins, newest=newest)


def _lines(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a message that say anything."""
    for line in text.splitlines():
        if line.strip():
            yield line.lstrip()


def _file(part: _Part, *, plain: bool, owner: str, timed: bool) -> InputFile:
    return InputFile(
        part.at.address,
        "nq" if plain else LINES,
        None,
        part.at.info().size or 0,
        0,
        stored_labels=True,
        owner=owner,
        stamped=timed,
    )


@dataclass(frozen=True)
class _Origins:
    """Tells where spooled lines were before."""

    source: str
    parts: dict[str, _Part]

    def __call__(self, bad: Bad) -> dict[str, Any]:
        part = self.parts[bad.address]
        place: dict[str, Any] = {"source": self.source}
        if part.partition is not None:
            place["partition"] = part.partition
        known = bad.line is not None and bad.line <= len(part.offsets)
        return {**place, "offset": part.offsets[bad.line - 1] if known and bad.line else None}
