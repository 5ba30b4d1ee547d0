"""What a stream is told: how often, how much at once, and what becomes of lines it cannot read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

from inferlake.errors import InputError
from inferlake.maintain import Window
from inferlake.maintain.derive import Derivation
from inferlake.store.fold import DUE

OnError = Literal["dead-letter", "fail"]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Trigger:
    """When a batch begins: every so many seconds, or until what is there now is done.

    `once` takes all of it as one batch, `available-now` as batches of the usual size.
    """

    kind: Literal["every", "once", "available-now"] = "every"
    seconds: float = 1.0

    @classmethod
    def of(cls, text: str | Trigger) -> Trigger:
        """Return the trigger that a text such as 5s, once or available-now names."""
        if isinstance(text, Trigger):
            return text
        if text == "once" or text == "available-now":
            return cls(text)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", str(text))
        if not found:
            raise InputError(f"no trigger {text!r}: write 5s, 500ms, once or available-now")
        return cls(seconds=float(found[1]) * _UNITS[found[2]])

    @property
    def for_spark(self) -> dict[str, Any]:
        """The arguments of PySpark's `trigger`."""
        if self.kind == "every":
            return {"processingTime": f"{round(self.seconds * 1000)} milliseconds"}
        return {"once": True} if self.kind == "once" else {"availableNow": True}


@dataclass(frozen=True)
class StreamOptions:
    """How a stream runs."""

    trigger: Trigger = Trigger()
    # Files in a batch from a folder; None for no limit.
    max_files: int | None = 100
    # Lines in a batch from Kafka or standard input.
    max_lines: int = 500_000
    on_error: OnError = "dead-letter"
    # Where the stream's state is; by default below the knowledge base.
    checkpoint: str | None = None
    name: str | None = None
    how: Derivation = field(default_factory=Derivation)
    # A fold is due after so many versions with small files.
    fold_due: int = DUE
    # What is added expires so long after its event; without a window it never does.
    window: timedelta | None = None
    # The column of a frame that has the times of events; by default they are those of arrival.
    time_column: str | None = None

    def __post_init__(self) -> None:
        if self.window is not None:
            Window.of(self.window)  # refuses what is none
        elif self.time_column is not None:
            raise InputError(
                "a time_column is of use with a window only: give one too,"
                " window=timedelta(minutes=10)"
            )
        if self.on_error not in get_args(OnError):
            choices = " or ".join(get_args(OnError))
            raise InputError(f"on_error is {choices}, not {self.on_error!r}")
        for name in ("max_files", "max_lines", "fold_due"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is at least 1, not {value}")
        if self.name is not None and not _NAME.fullmatch(self.name):
            raise InputError(
                f"{self.name!r} is no name for a stream: take letters, digits, dots, dashes and"
                " underscores, and begin with a letter or a digit"
            )
