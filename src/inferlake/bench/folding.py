"""Tables on a terminal that is too narrow for them: cells in several lines, and several tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Between two columns; at both ends of a line.
_BETWEEN, _ENDS = 2, 2


@dataclass(frozen=True)
class Column:
    """A header and cells, as text. What a row is about is in columns that are keys."""

    name: str
    cells: Sequence[str]
    left: bool
    key: bool

    @property
    def widest(self) -> int:
        return max(map(len, (self.name, *self.cells)))

    @property
    def narrowest(self) -> int:
        """The longest word: a number that is broken cannot be read."""
        words = [word for cell in (self.name, *self.cells) for word in cell.split()]
        return max(map(len, words), default=1)


def folded(columns: Sequence[Column], width: int) -> str:
    """Return columns as lines of at most `width`: one table, or several with the keys in each.

    A terminal that has no room for the keys and one more column gets longer lines.
    """
    return "\n\n".join(_drawn(some, width) for some in _parts(columns, width))


def _parts(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    keys = [one for one in columns if one.key]
    part: list[Column] = []
    for column in (one for one in columns if not one.key):
        if part and _needed([*keys, *part, column]) > width:
            yield [*keys, *part]
            part = []
        part.append(column)
    yield [*keys, *part]


def _needed(columns: Sequence[Column]) -> int:
    return sum(one.narrowest + _BETWEEN for one in columns) + _ENDS


def _drawn(columns: Sequence[Column], width: int) -> str:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column, room in zip(columns, _widths(columns, width), strict=True):
        justify = "left" if column.left else "right"
        table.add_column(Text(column.name), justify=justify, width=room, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))  # what looks like markup is none
    to = StringIO()
    Console(file=to, width=max(width, _needed(columns))).print(table)
    lines = [line.rstrip() for line in to.getvalue().splitlines()]
    return "\n".join(line for line in lines if line)


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Give each column its longest word, and what is left to those whose cells are the longest."""
    widths = [one.narrowest for one in columns]
    for _ in range(width - _needed(columns)):
        wanting = [one.widest - now for one, now in zip(columns, widths, strict=True)]
        if not any(more > 0 for more in wanting):
            break
        widths[wanting.index(max(wanting))] += 1
    return widths
