"""A batch of a stream: what came, and the change that it becomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from inferlake.input import Bad, InputFile
from inferlake.maintain import Change, Source, Window
from inferlake.stream.options import StreamOptions

# Where a bad line came from, in words of its source: a file and a line, a partition and an offset.
Origin = Callable[[Bad], dict[str, Any]]


def _by_file(bad: Bad) -> dict[str, Any]:
    return {"source": bad.address, "line": bad.line}


@dataclass(frozen=True)
class Batch:
    """Files in the order in which they count, of triples and of changes.

    Lines that came without files have been written to some (`stream.spool`), and `origin` says
    where they were before.
    """

    number: int
    files: tuple[InputFile, ...]
    # Files that could not be read at all, and why.
    lost: tuple[Bad, ...] = ()
    # When the oldest of it came into being, in seconds since 1970.
    oldest: float | None = None
    origin: Origin = _by_file
    # The latest time of an event in it, in milliseconds since 1970, where lines have their own.
    newest: int | None = None

    def told(self, bad: Bad) -> str:
        """Return what is wrong with a line, with its place in words of its source."""
        if self.origin is _by_file:
            return str(bad)
        place = self.origin(bad)
        words = [f"{name} {value}" for name, value in place.items() if name != "source"]
        at = ", ".join([str(place["source"]), *words])
        return f"{at}: {bad.message}" + (f"\n    {bad.text}" if bad.text else "")

    @property
    def lag(self) -> float | None:
        """Seconds since the oldest of it came into being."""
        return None if self.oldest is None else max(0.0, time.time() - self.oldest)


def as_change(
    batch: Batch,
    options: StreamOptions,
    transaction: tuple[str, int] | None,
    rejected: Callable[[Iterator[Bad]], None],
    now: int,
) -> Change:
    """Return the change that a batch is: the one place where that is decided.

    Triples alone are additions, which engines split in parallel. Among changes each file takes its
    turn, because the last word on a triple counts.

    With a window, what is added expires, and what is due goes first. Lines have the times of their
    events; those of a file are of the time when it was last written. The clock is `now` with times
    of arrival, which cannot be later: a wrong one must not put the clock forward for good. With a
    column of times it is the latest of them: only events move it.
    """
    files, window, clock = batch.files, None, None
    if options.window is not None:
        files = tuple(_dated(file, now) for file in files)
        clock = now if options.time_column is None else batch.newest
        window = Window.of(options.window, now)
    add = patch = Source()
    if any(file.has_changes for file in files):
        patch = Source(tuple(replace(f, in_turn=not f.has_changes) for f in files))
    else:
        add = Source(files)
    return Change(
        add=add,
        patch=patch,
        operation="stream",
        skip_bad=True,  # or refused: by whoever hears of what is rejected
        rejected=rejected,
        transaction=transaction,
        how=options.how,
        window=window,
        clock=clock,
    )


def _dated(file: InputFile, now: int) -> InputFile:
    """Return a file with the time of what it says, unless its lines have times of their own."""
    if file.stamped:
        return file
    written = file.modified // 1_000_000 or now  # a store in a cloud may know none
    return replace(file, at=min(written, now))
