"""Where a bad statement stands: engines hand back its text, people want file, line and column."""

from __future__ import annotations

from dataclasses import dataclass

from inferlake.input.files import InputFile
from inferlake.input.rows import SHOWN_TEXT


@dataclass(frozen=True)
class Bad:
    """A statement that is not valid, with its place as far as it is known."""

    address: str
    line: int | None
    column: int | None
    text: str | None
    message: str

    def __str__(self) -> str:
        place = self.address if self.line is None else f"{self.address}:{self.line}"
        if self.line is not None and self.column is not None:
            place += f":{self.column}"
        shown = f"{place}: {printable(self.message)}"
        return f"{shown}\n    {printable(self.text)}" if self.text else shown


def printable(text: str) -> str:
    r"""Return `text` without what a terminal would obey rather than show.

    >>> printable("tab\there, bell\x07, é, 蓝")
    'tab\there, bell\\x07, é, 蓝'
    """
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text)


def locate(bad: Bad, file: InputFile) -> Bad:
    """Fill in the line number of a line known by its text, or the text of one known by number.

    Streams through the file on the driver, up to that line.
    """
    if (bad.line is None) == (bad.text is None):
        return bad
    with file.open() as stream:
        for number, raw in enumerate(stream, 1):
            # Engines end a line at a lone carriage return too.
            for piece in raw.decode(errors="replace").rstrip("\n").split("\r"):
                shown = piece.removeprefix("\ufeff")[:SHOWN_TEXT]  # a byte order mark
                if number == bad.line or shown == bad.text:
                    return Bad(bad.address, number, bad.column, shown, bad.message)
    return bad
