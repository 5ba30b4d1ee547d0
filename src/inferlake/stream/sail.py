"""A Sail that does not grow for ever.

Sail keeps some memory of every statement that it has parsed, and gives it back to nobody while its
process lives. A stream has a dozen statements a batch. So it begins on the Sail of this process;
when that has grown by a gigabyte, it goes on with one in a process of its own, and when that one
has grown as much, with the next.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from inferlake.engines.connect import connect
from inferlake.engines.machine import resident_memory
from inferlake.engines.sail import start_sail
from inferlake.errors import EngineError
from inferlake.session import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROWTH = 2**30

_SERVE = "from inferlake.stream.sail import serve; serve()"


def serve() -> None:
    """Run a Sail server, tell its address, and end when standard input does."""
    server, address = start_sail()
    print(address, flush=True)
    # The pipe ends with the process that holds its other end, however that one ends.
    sys.stdin.read()
    server.stop()
    os._exit(0)


class RenewedSail:
    """Gives sessions on Sail for a stream, from time to time on a fresh one."""

    def __init__(self, growth: int = GROWTH) -> None:
        self.growth = growth
        self.renewals = 0
        self._child: subprocess.Popen[str] | None = None
        self._session: SparkSession | None = None
        self._at_first: int | None = None

    def session(self) -> SparkSession:
        """Return the session to use now."""
        if self._session is not None:
            return self._session
        return Sessions("sail").for_reading().session

    def renew_if_large(self) -> None:
        """Take a fresh Sail if this one has grown; nobody may be using it."""
        host = os.getpid() if self._child is None else self._child.pid
        now = resident_memory(host)
        if self._at_first is None:
            self._at_first = now
        elif now > self._at_first + self.growth:
            self._renew()

    def close(self) -> None:
        """End the process of its own, if there is one."""
        self._session = None
        if self._child is not None:
            self._child.communicate("")
            self._child = None

    def _renew(self) -> None:
        self.close()
        command = [sys.executable, "-c", _SERVE]
        pipe: Any = subprocess.PIPE
        # In a group of its own: Ctrl-C is for the stream, which then ends it.
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        assert self._child.stdout is not None
        address = self._child.stdout.readline().strip()
        if not address:
            raise EngineError("Sail could not start in a process of its own")
        self._session = connect(address)
        self._at_first = None
        self.renewals += 1
