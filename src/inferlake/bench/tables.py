"""Rows to tables, and tables to text."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from inferlake.bench.folding import Column, folded
from inferlake.bench.record import Row


@dataclass(frozen=True)
class Table:
    """A title, the names of columns, rows of cells, and what a reader must know.

    The first columns, so many as there are `keys`, say what a row is about. A column that is empty
    in all rows is left out.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    keys: int = 1

    def __str__(self) -> str:
        """Return the table as Markdown that also reads well on a terminal, if that is wide."""
        return self._text(self._markdown())

    def fitted(self, width: int) -> str:
        """Return the table for a terminal: as Markdown if it is wide enough, else folded."""
        lines = self._markdown()
        if max(map(len, lines)) <= width:
            return self._text(lines)
        return self._text(folded(self._columns, width).splitlines())

    def _text(self, lines: Sequence[str]) -> str:
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([f"### {self.title}\n", *lines, *notes])

    @property
    def _columns(self) -> list[Column]:
        """The columns that have something in some row; all of them, if there are no rows."""
        columns = []
        for at, name in enumerate(self.columns):
            cells = [row[at] for row in self.rows]
            # A column of words stands left, one of numbers right.
            left = all(isinstance(cell, str) for cell in cells)
            columns.append(Column(name, [shown(cell) for cell in cells], left, at < self.keys))
        return [one for one in columns if one.key or any(one.cells) or not self.rows]

    def _markdown(self) -> list[str]:
        columns = self._columns
        widths = [max(3, *map(len, (one.name, *one.cells))) for one in columns]  # less is none
        left = [one.left for one in columns]
        lines = [self._line([one.name for one in columns], widths, left)]
        lines.append(
            "| " + " | ".join(_rule(w, one) for w, one in zip(widths, left, strict=True)) + " |"
        )
        cells = zip(*(one.cells for one in columns), strict=True)
        return [*lines, *(self._line(row, widths, left) for row in cells)]

    @staticmethod
    def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
        padded = (
            cell.ljust(width) if one else cell.rjust(width)
            for cell, width, one in zip(cells, widths, left, strict=True)
        )
        return "| " + " | ".join(padded) + " |"


def _rule(width: int, left: bool) -> str:
    return "-" * width if left else "-" * (width - 1) + ":"


def shown(cell: Any) -> str:
    """Return a cell as text: three figures for what was measured, every digit of what was counted.

    >>> shown(1234567), shown(0.01234), shown(12.34), shown(1234.5), shown(None), shown(True)
    ('1,234,567', '0.0123', '12.3', '1,234', '', 'yes')
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "NO"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


@dataclass(frozen=True)
class Spread:
    """The median of what several turns measured, with the least and the most."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        if len(self.values) == 1:
            return shown(self.median)
        return f"{shown(self.median)} ({shown(min(self.values))}-{shown(max(self.values))})"


def spread(rows: Iterable[Row], value: str | Callable[[Row], Any]) -> Spread | None:
    """Return how a number came out in several rows, or None if it is in none of them."""
    get = value if callable(value) else lambda row: row.get(value)
    found = tuple(
        float(one) for row in rows if "error" not in row and (one := get(row)) is not None
    )
    return Spread(found) if found else None


def ratio(one: Spread | None, other: Spread | None) -> float | None:
    """Return how many times the other the one is, by their medians."""
    return one.median / other.median if one and other and other.median else None


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of some columns, in the order in which they came."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(_hashable(row.get(name)) for name in names), []).append(row)
    return found


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def error_of(rows: Sequence[Row]) -> str:
    """Return why there is no number, in short."""
    errors = [row["error"].strip().splitlines()[-1] for row in rows if "error" in row]
    return errors[0] if errors else ""
