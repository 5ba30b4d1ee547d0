"""What becomes of a command when nobody reads on: `inferlake export kb | head -1`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from inferlake.errors import InferlakeError

_UNREAD = 128 + signal.SIGPIPE


@contextmanager
def _while_read() -> Iterator[None]:
    """End as SIGPIPE would, and as quietly, once nobody reads what is printed.

    The signal itself would leave work in progress behind, and end us for any other pipe too.
    """
    try:
        try:
            yield
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except BrokenPipeError:
        _end_unread()
    except InferlakeError as exc:
        if not isinstance(exc.__cause__, BrokenPipeError):  # met by a stream's thread
            raise
        _end_unread()


def _end_unread() -> NoReturn:
    """Exit as a process does that SIGPIPE ends."""
    # What is still to be printed would fail once more as Python exits, and be told of.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_UNREAD)


class Commands(click.Group):
    """Commands that may lose their reader: click would end them with the code of a difference."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _while_read():  # help is printed here
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _while_read():
            return super().invoke(ctx)
