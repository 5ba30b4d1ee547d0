"""How long work tells what it is doing, without knowing who listens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol


class Progress(Protocol):
    """A listener to long work: the command line draws a bar, a library caller may draw its own."""

    def phase(self, name: str, total: int | None = None) -> None:
        """A new phase begins; `total` is its size in bytes of input, where that is known."""
        ...

    def advance(self, *, size: int = 0, triples: int = 0) -> None:
        """`size` more bytes of the phase are done, and `triples` more triples were seen."""
        ...

    def note(self, line: str) -> None:
        """Something is done that is worth a line of its own."""
        ...


class Silent:
    """Listens to nothing; the default of the library."""

    def phase(self, name: str, total: int | None = None) -> None: ...

    def advance(self, *, size: int = 0, triples: int = 0) -> None: ...

    def note(self, line: str) -> None: ...


class Stopwatch:
    """Seconds by phase, announced to a `Progress` as the phases begin."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time the body under `name`; a name used twice adds up."""
        self.progress.phase(name, total)
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + spent


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "file"), counted(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shown_time(clock: int) -> str:
    """Return a time in milliseconds since 1970 as people write it.

    >>> shown_time(1_700_000_000_123)
    '2023-11-14 22:13:20.123 UTC'
    """
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=clock)
    except OverflowError:
        return f"{clock} ms"
    return f"{moment.isoformat(' ', 'milliseconds')} UTC"


def one_line(what: str, seconds: Mapping[str, float], engine: str, *, triples: int = 0) -> str:
    """Return the line that ends a command: what, how long by phase, where.

    >>> one_line("loaded 2 triples", {"parse": 0.5, "commit": 0.01}, "sail", triples=2)
    'loaded 2 triples (parse 0.50 s, commit 0.01 s; 4 triples/s on sail)'
    """
    phases = ", ".join(f"{name} {spent:.2f} s" for name, spent in seconds.items())
    total = sum(seconds.values())
    rate = f"{triples / total:,.0f} triples/s " if triples and total else ""
    return f"{what} ({phases}; {rate}on {engine})"
