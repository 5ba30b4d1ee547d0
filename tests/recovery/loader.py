"""Processes that load files on command, so that tests can kill them or set them on each other.

Importing the engine takes seconds, so this process does it once and then forks: every connection to
the port that it prints gets a process of its own, until standard input ends. There one JSON command
a line comes in and one JSON event a line goes out. A command names a store, a file and, if wanted:

    gates         steps such as "commit facts": before the first of each it says so, and waits
    die           a step and a side, such as "before commit facts": there it kills itself
    transaction   an application's name and the number of its batch
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import IO, Any

import pysail.spark  # noqa: F401  (imported before the fork, used by the session after it)
import pyspark.sql.connect.session  # noqa: F401

from inferlake.kb import KnowledgeBase
from inferlake.session import Sessions
from inferlake.store.table import CommitRace, Table


class Interruptions:
    """Stands between a load and its tables, and does there what the command says."""

    def __init__(self, channel: IO[str]) -> None:
        self.channel = channel
        self.command: dict[str, Any] = {}
        self.gates: set[str] = set()
        self.races: list[str] = []
        for method in ("create", "commit"):
            setattr(Table, method, self._around(method, getattr(Table, method)))

    def obey(self, command: dict[str, Any]) -> None:
        """Take the interruptions of the next load from `command`."""
        self.command = command
        self.gates = set(command.get("gates", ()))
        self.races = []

    def tell(self, event: str, **details: Any) -> None:
        """Write an event for the parent to read at once."""
        print(json.dumps({"event": event, **details}), file=self.channel, flush=True)

    def _around(self, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted(table: Table, *args: Any) -> Any:
            step = f"{method} {table.place.path.rsplit('/', 1)[-1]}"
            if step in self.gates:
                self.gates.discard(step)
                self.tell("gate", step=step)
                self.channel.readline()
            self._die(f"before {step}")
            try:
                result = original(table, *args)
            except CommitRace:
                self.races.append(step)
                raise
            self._die(f"after {step}")
            return result

        return interrupted

    def _die(self, here: str) -> None:
        if self.command.get("die") == here:
            os.kill(os.getpid(), signal.SIGKILL)


def serve(channel: IO[str]) -> None:
    """Start the engine, then load what is asked for until the parent hangs up."""
    interruptions = Interruptions(channel)
    Sessions("sail").for_reading()
    interruptions.tell("ready", pid=os.getpid())
    while line := channel.readline():
        command = json.loads(line)
        interruptions.obey(command)
        transaction = command.get("transaction")
        interruptions.tell("begin")
        try:
            report = KnowledgeBase(command["kb"], engine="sail").load(
                command["file"], transaction=tuple(transaction) if transaction else None
            )
        except Exception as exc:
            interruptions.tell("failed", error=repr(exc))
        else:
            interruptions.tell("done", races=interruptions.races, **report.as_dict())


def main() -> None:
    """Fork for each connection until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children here
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            with connection:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    server.close()
                    serve(connection.makefile("rw"))
                    os._exit(0)


if __name__ == "__main__":
    main()
