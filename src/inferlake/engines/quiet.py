"""What engines say of themselves, kept off the user's screen or told in one line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Keep PySpark's warnings about versions of pandas and numpy off the user's screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def first_line(exc: Exception) -> str:
    """Return what an exception says, without the stack of the JVM.

    With py4j that comes second, after the name of what it called.
    """
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    told = next((line[1:].strip() for line in lines[1:2] if line.startswith(":")), "")
    return told or next(iter(lines), type(exc).__name__)
