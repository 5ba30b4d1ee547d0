"""What engines say of themselves, kept off the user's screen or told in one line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# deltalake tells each cause of an error on a line of its own.
_CAUSE = re.compile(r"\s*\n\s*↳\s*")
# What a stack begins with: a frame of Rust or of the JVM, or Spark's title of one.
_STACK = re.compile(r"\n\s*(\d+: |at |JVM stacktrace:).*", re.DOTALL)


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Keep PySpark's warnings about versions of pandas and numpy off the user's screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def without_stack(exc: BaseException) -> str:
    """Return what an exception of deltalake or an engine says, without colours and stack frames."""
    return _STACK.sub("", _CAUSE.sub(": ", _COLOURS.sub("", str(exc)))).strip()


def first_line(exc: Exception) -> str:
    """Return what an exception says, without the stack of the JVM.

    With py4j that comes second, after the name of what it called.
    """
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    told = next((line[1:].strip() for line in lines[1:2] if line.startswith(":")), "")
    return told or next(iter(lines), type(exc).__name__)
