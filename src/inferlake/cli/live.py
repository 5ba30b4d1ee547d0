"""A stream as it goes: a table on a terminal, a line a batch elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from inferlake.stream import BatchReport
    from inferlake.stream.writer import Listener

_SHOWN = 12

_COLUMNS = (
    *("batch", "version", "lines", "bad", "late", "expired", "asserted", "derived", "seconds"),
    "lag",
    *("rows read", "files read", "engine"),
)


@contextmanager
def view(*, as_json: bool, quiet: bool) -> Iterator[Listener]:
    """Yield what shows each batch where standard output or standard error goes."""
    console = Console(stderr=True)
    if as_json:
        yield _print_json
    elif quiet:
        yield _nothing
    elif not console.is_terminal:
        yield _print_line
    else:
        shown: deque[BatchReport] = deque(maxlen=_SHOWN)
        with Live(_table(shown), console=console, auto_refresh=False) as live:

            def show(report: BatchReport) -> None:
                shown.append(report)
                live.update(_table(shown), refresh=True)

            yield show


def _print_json(report: BatchReport) -> None:
    print(json.dumps(report.as_dict(), default=str), flush=True)


def _print_line(report: BatchReport) -> None:
    print(report, file=sys.stderr, flush=True)


def _nothing(report: BatchReport) -> None: ...


def _table(reports: deque[BatchReport]) -> Table:
    table = Table(caption="Ctrl-C ends after the batch in hand")
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for one in reports:
        table.add_row(*_cells(one))
    return table


def _cells(one: BatchReport) -> list[str]:
    files = f"{one.files_read:,} of {one.files_stored:,}"
    if one.files_folded:
        files += f" ({one.files_folded:,} folded)"
    return [
        "" if one.batch is None else str(one.batch),
        str(one.version),
        "again" if one.repeated else f"{one.lines:,}",
        *(f"{number:,}" if number else "" for number in (one.bad, one.late, one.expired)),
        f"+{one.added:,} -{one.removed:,}",
        f"+{one.derived:,} -{one.withdrawn:,}",
        f"{one.seconds:.2f}",
        "" if one.lag is None else _age(one.lag),
        f"{one.rows_read:,}",
        files,
        one.engine,
    ]


def _age(seconds: float) -> str:
    """Return a length of time in the unit that reads best.

    >>> _age(1.25), _age(600), _age(90_000), _age(864_000)
    ('1.2 s', '10.0 min', '25.0 h', '10.0 d')
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
