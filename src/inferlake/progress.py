"""How long work tells what it is doing, without knowing who listens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """A listener to long work: the command line draws a bar, a library caller may draw its own."""

    def phase(self, name: str, total: int | None = None) -> None:
        """A new phase begins; `total` is its size in bytes of input, where that is known."""
        ...

    def advance(self, *, size: int = 0, triples: int = 0) -> None:
        """`size` more bytes of the phase are done, and `triples` more triples were seen."""
        ...


class Silent:
    """Listens to nothing; the default of the library."""

    def phase(self, name: str, total: int | None = None) -> None: ...

    def advance(self, *, size: int = 0, triples: int = 0) -> None: ...


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
