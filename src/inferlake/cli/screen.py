"""What a person sees: a progress bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Bar:
    """A bar with the phase, the triples seen and the rate."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:8}"),
            BarColumn(),
            TextColumn("{task.fields[seen]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, seen="")
        self._triples = 0
        self._began = time.perf_counter()
        self._progress.start()

    def phase(self, name: str, total: int | None = None) -> None:
        self._progress.reset(self._task, description=name, total=total)

    def advance(self, *, size: int = 0, triples: int = 0) -> None:
        self._triples += triples
        rate = self._triples / max(time.perf_counter() - self._began, 1e-3)
        seen = f"{self._triples:,} triples, {rate:,.0f}/s"
        self._progress.update(self._task, advance=size, seen=seen)

    def note(self, line: str) -> None:
        self._progress.console.print(line, highlight=False, markup=False)

    def close(self) -> None:
        self._progress.stop()


class Lines:
    """A line for each phase and, in long ones, every few seconds: for logs."""

    _EVERY_SECONDS = 5.0

    def __init__(self) -> None:
        self._phase = ""
        self._triples = 0
        self._began = self._last = time.perf_counter()

    def phase(self, name: str, total: int | None = None) -> None:
        self._phase = name
        print(f"{name} ...", file=sys.stderr, flush=True)

    def advance(self, *, size: int = 0, triples: int = 0) -> None:
        self._triples += triples
        now = time.perf_counter()
        if now - self._last >= self._EVERY_SECONDS:
            self._last = now
            rate = self._triples / (now - self._began)
            line = f"{self._phase}: {self._triples:,} triples, {rate:,.0f}/s"
            print(line, file=sys.stderr, flush=True)

    def note(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None: ...


class Quiet:
    """Nothing at all."""

    def phase(self, name: str, total: int | None = None) -> None: ...

    def advance(self, *, size: int = 0, triples: int = 0) -> None: ...

    def note(self, line: str) -> None: ...

    def close(self) -> None: ...


def watcher(*, quiet: bool) -> Bar | Lines | Quiet:
    """Return the listener that fits where standard error goes."""
    if quiet:
        return Quiet()
    console = Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines()
