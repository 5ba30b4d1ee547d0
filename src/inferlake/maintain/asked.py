"""What is asked of a store: triples to add and to remove, from where, for how long, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from inferlake.errors import InputError
from inferlake.input import Bad, InputFile
from inferlake.maintain.derive import Derivation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Source:
    """Where triples come from: files, or a frame, of which `FRAME` is then the only file."""

    files: tuple[InputFile, ...] = ()
    frame: DataFrame | None = None
    # The column of the frame that has the times of events: a timestamp, or milliseconds.
    time_column: str | None = None

    @property
    def timed(self) -> bool:
        """Whether triples come with the times of their events."""
        return self.time_column is not None or any(file.timed for file in self.files)


@dataclass(frozen=True)
class Window:
    """How long what a change adds is to stand, from the time of its event on, in milliseconds.

    Triples that bring no time of their own are events of the time `at`.
    """

    length: int
    at: int = 0

    @classmethod
    def of(cls, length: timedelta, at: int = 0) -> Window:
        """Return the window of a length; raise `InputError` if it is none."""
        if not isinstance(length, timedelta) or length < timedelta(milliseconds=1):
            raise InputError(
                f"a window is a length of time of a millisecond or more, not {length!r}; write"
                " timedelta(minutes=10), or --window 10m"
            )
        return cls(length // timedelta(milliseconds=1), at)


@dataclass(frozen=True)
class Change:
    """What is to change. Removals come first, then additions, then patches in their order."""

    add: Source = Source()
    remove: Source = Source()
    patch: Source = Source()
    operation: Literal["load", "update", "rules", "forget", "expire", "stream"] = "load"
    skip_bad: bool = False
    # Gets every bad statement, before anything is committed; again if the change is tried again.
    rejected: Callable[[Iterator[Bad]], None] | None = None
    # An application's name and the number of its batch.
    transaction: tuple[str, int] | None = None
    how: Derivation = field(default_factory=Derivation)
    # What is added expires, if there is a window; without one it never does.
    window: Window | None = None
    # First, what is due at this time goes, in milliseconds since 1970. The clock of a store never
    # goes back: what comes too late for it is counted, and not stored.
    clock: int | None = None

    @property
    def undone(self) -> str:
        """What a failure says of the store."""
        return f"nothing was {'loaded' if self.operation == 'load' else 'changed'}"

    @property
    def files(self) -> tuple[InputFile, ...]:
        return self.add.files + self.remove.files + self.patch.files
