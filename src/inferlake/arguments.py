"""What callers hand to a knowledge base: checked, and as those below take it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from inferlake.errors import InputError
from inferlake.input import FRAME, discover
from inferlake.maintain import Source, Window
from inferlake.store import LAYERS, Layer
from inferlake.store.store import RESERVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Path = str | os.PathLike[str]
    # Paths, one or several, or a DataFrame of triples.
    Inputs = Path | Sequence[Path] | DataFrame | None

LayerChoice = Literal["all", "asserted", "derived"]

# The last millisecond that a datetime can name. Beyond it, a window more could be no number.
_LATEST = 253_402_300_799_999

# A time: a datetime with its time zone, or milliseconds since 1970.
Moment = datetime | int


def layers_of(layer: LayerChoice) -> tuple[Layer, ...]:
    """Return the layers that a choice stands for."""
    if layer not in ("all", *LAYERS):
        raise InputError(f"no layer {layer!r}: choose all, {' or '.join(LAYERS)}")
    return LAYERS if layer == "all" else (layer,)


def listed(inputs: Any) -> list[Any]:
    """Return inputs as a list, whether none, one or several were given."""
    if inputs is None:
        return []
    return list(inputs) if isinstance(inputs, list | tuple) else [inputs]


def source_of(inputs: list[Any], format: str | None, role: str = "add") -> Source:
    """Return the one DataFrame, or the files, that inputs name."""
    frames = [item for item in inputs if hasattr(item, "sparkSession")]
    if frames and len(inputs) > 1:
        raise InputError("give a DataFrame alone: it becomes a version of its own")
    for item in inputs:
        if not isinstance(item, str | os.PathLike) and item not in frames:
            raise InputError(
                f"a {type(item).__name__} is no input: give paths, or a PySpark DataFrame"
                " (session.createDataFrame makes one of a pandas frame)"
            )
    if frames and role == "patch":
        raise InputError("a patch is a file; give DataFrames as add and remove")
    if frames:
        return Source((FRAME,), frames[0])
    return Source(discover(inputs, format, changes=role == "patch") if inputs else ())


def milliseconds(moment: Moment) -> int:
    """Return a time in milliseconds since 1970.

    >>> milliseconds(datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)), milliseconds(7)
    (1500, 7)
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        if abs(moment) > _LATEST:
            raise InputError(f"{moment} is behind the year 9999: give milliseconds since 1970")
        return moment
    if not isinstance(moment, datetime):
        raise InputError(f"{moment!r} is no time: give a datetime, or milliseconds since 1970")
    if moment.tzinfo is None:
        raise InputError(
            f"{moment} has no time zone: write for example datetime.now(UTC), or milliseconds"
        )
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def window_of(
    window: timedelta | None,
    at: Moment | None,
    time_column: str | None,
    add: Inputs,
    patch: Inputs,
) -> Window | None:
    """Return how long additions stand, or None if for ever."""
    if window is None:
        if at is not None or time_column is not None:
            raise InputError(
                "a time of events is of use with a window only: give one too, window=… or"
                " --window 10m"
            )
        return None
    lasting = Window.of(window)
    if not (listed(add) or listed(patch)):
        raise InputError("a window is for what is added: say what to add, or a patch")
    if time_column is not None and (at is not None or not hasattr(add, "sparkSession")):
        raise InputError(
            "a time_column is that of the DataFrame to add, which then has the times of all its"
            " rows; for files, give at=…"
        )
    when = milliseconds(datetime.now(UTC) if at is None else at)
    return replace(lasting, at=when)


def skips_bad(on_error: str) -> bool:
    """Tell whether bad statements are to be left out."""
    if on_error not in ("fail", "skip"):
        raise InputError(f"on_error is fail or skip, not {on_error!r}")
    return on_error == "skip"


def transaction_of(transaction: Any) -> tuple[str, int] | None:
    """Return the name and the number of a transaction, if one was given."""
    match transaction:
        case None:
            return None
        case (str(name), int()) if name.startswith(RESERVED):
            raise InputError(f"a transaction's name must not begin with {RESERVED}: take another")
        case (str(name), int(number)) if _is_number(number):
            return name, number
        case _:
            raise InputError("a transaction is a name and a number, for example ('nightly', 17)")


def _is_number(number: int) -> bool:
    """Tell whether the log can keep a number."""
    return not isinstance(number, bool) and -(2**63) <= number < 2**63
