"""A stream as it goes: a table on a terminal, a line a batch elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from inferlake.stream import BatchReport
    from inferlake.stream.writer import Listener

_SHOWN = 12

_ALWAYS = ("batch", "version", "lines", "asserted", "derived", "seconds")
_COLUMNS = (
    *("batch", "version", "lines", "bad", "late", "expired", "asserted", "derived", "seconds"),
    *("lag", "rows read", "files", "folded", "engine"),
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
    """Return a table of batches; columns in which nothing stands are left out."""
    table = Table(
        caption="Ctrl-C ends after the batch in hand",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    rows = [_cells(one) for one in reports]
    shown = [name for name in _COLUMNS if name in _ALWAYS or any(row[name] for row in rows)]
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[name] for name in shown))
    return table


def _cells(one: BatchReport) -> dict[str, str]:
    counts = {"bad": one.bad, "late": one.late, "expired": one.expired, "folded": one.files_folded}
    return {
        "batch": "" if one.batch is None else str(one.batch),
        "version": str(one.version),
        "lines": "again" if one.repeated else f"{one.lines:,}",
        **{name: f"{number:,}" if number else "" for name, number in counts.items()},
        "asserted": f"+{one.added:,} -{one.removed:,}",
        "derived": f"{one.gained:+,} rebuilt" if one.rebuilt else _change(one),
        "seconds": f"{one.seconds:.2f}",
        "lag": "" if one.lag is None else _age(one.lag),
        "rows read": f"{one.rows_read:,}",
        "files": f"{one.files_read:,}/{one.files_stored:,}",
        "engine": one.engine,
    }


def _change(one: BatchReport) -> str:
    return f"+{one.derived:,} -{one.withdrawn:,}"


def _age(seconds: float) -> str:
    """Return a length of time in the unit that reads best.

    >>> _age(1.25), _age(600), _age(90_000), _age(864_000)
    ('1.2 s', '10.0 min', '25.0 h', '10.0 d')
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
