"""All bad statements of some files, in full and with their lines: for whoever keeps them.

Engines hand back a few words of a bad line, not where it stood. So each file that has one is read
once more, by the driver, which holds the errors of one file at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from inferlake.input.files import LINE_FORMATS, InputFile
from inferlake.input.locate import Bad
from inferlake.input.parse import Parser
from inferlake.input.rows import BYTE_ORDER_MARK, SHOWN_TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERRORS = ("file", "line", "column", "text", "message")


def rejects(files: tuple[InputFile, ...], errors: DataFrame) -> Iterator[Bad]:
    """Yield the bad statements that rows of `errors` tell of, file by file and line by line."""
    rows = errors.select(*ERRORS).orderBy("file", "line", "column", "message").toLocalIterator()
    for number, some in itertools.groupby(rows, key=lambda row: row.file):
        found = [Bad(files[number].address, r.line, r.column, r.text, r.message) for r in some]
        yield from _in_full(files, number, found)


def _in_full(files: tuple[InputFile, ...], number: int, found: list[Bad]) -> Iterator[Bad]:
    file = files[number]
    by_line: dict[int, list[Bad]] = {}
    unplaced: dict[str, list[Bad]] = {}
    for bad in found:
        if bad.line is not None:
            by_line.setdefault(bad.line, []).append(bad)
        elif bad.text is not None and file.format in LINE_FORMATS:
            unplaced.setdefault(bad.text, []).append(bad)
        else:
            yield bad  # of the file as a whole
    if not by_line and not unplaced:
        return
    placed: set[str] = set()
    for line, raw in _lines(file):
        text = raw.decode(errors="replace")
        for bad in by_line.pop(line, ()):
            yield Bad(bad.address, line, bad.column, text, bad.message)
        for piece in raw.splitlines():
            shown = piece.decode(errors="replace")[:SHOWN_TEXT]
            if shown in unplaced:
                # Another line may begin alike and be right, so the parser tells.
                for bad in _judged(files, number, line, piece):
                    placed.add(shown)
                    yield bad
    # A parser may count one line more than there are.
    yield from itertools.chain.from_iterable(by_line.values())
    # What is not found again is told as it is, rather than not at all.
    for shown, some in unplaced.items():
        yield from () if shown in placed else some


def _lines(file: InputFile) -> Iterator[tuple[int, bytes]]:
    with file.open() as stream:
        for line, raw in enumerate(stream, 1):
            yield line, raw.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")


def _judged(files: tuple[InputFile, ...], number: int, line: int, raw: bytes) -> Iterable[Bad]:
    for row in Parser(files).some_lines(number, [(line, raw)]):
        if row.message is not None:
            text = raw.decode(errors="replace")
            yield Bad(files[number].address, line, row.column, text, row.message)
