"""Processes that change stores on command, so that tests can kill them or set them on each other.

Importing the engine takes seconds, so this process does it once and then forks: every connection to
the port that it prints gets a process of its own, until standard input ends. There one JSON command
a line comes in and one JSON event a line goes out. A command has

    kb        a store
    act       what to do with it: the name of a method of `KnowledgeBase`, such as "update"
    inputs    what the method takes by position
    options   what it takes by name; of `older_than`, the hours
    gates     steps such as "commit facts": before each it says so, and waits; twice if named twice
    die       a step and a side, such as "before commit facts": there it kills itself
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import IO, Any

import pysail.spark  # noqa: F401  (imported before the fork, used by the session after it)
import pyspark.sql.connect.session  # noqa: F401

from inferlake.kb import KnowledgeBase
from inferlake.session import Sessions
from inferlake.store.table import CommitRace, Table


class Interruptions:
    """Stands between a change and its tables, and does there what the command says."""

    def __init__(self, channel: IO[str]) -> None:
        self.channel = channel
        self.command: dict[str, Any] = {}
        self.gates: list[str] = []
        self.races: list[str] = []
        for method in ("create", "commit"):
            setattr(Table, method, self._around(method, getattr(Table, method)))

    def obey(self, command: dict[str, Any]) -> None:
        """Take the interruptions of the next change from `command`."""
        self.command = command
        self.gates = list(command["gates"])
        self.races = []

    def tell(self, event: str, **details: Any) -> None:
        """Write an event for the parent to read at once."""
        print(json.dumps({"event": event, **details}), file=self.channel, flush=True)

    def _around(self, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted(table: Table, *args: Any) -> Any:
            step = f"{method} {table.place.path.rsplit('/', 1)[-1]}"
            if step in self.gates:
                self.gates.remove(step)
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
        if self.command["die"] == here:
            os.kill(os.getpid(), signal.SIGKILL)


def serve(channel: IO[str]) -> None:
    """Start the engine, then do what is asked for until the parent hangs up."""
    interruptions = Interruptions(channel)
    Sessions("sail").for_reading()
    interruptions.tell("ready", pid=os.getpid())
    while line := channel.readline():
        command = json.loads(line)
        interruptions.obey(command)
        interruptions.tell("begin")
        try:
            report = perform(command)
        except Exception as exc:
            interruptions.tell("failed", error=repr(exc))
        else:
            interruptions.tell("done", races=interruptions.races, **report)


def perform(command: dict[str, Any]) -> dict[str, Any]:
    """Do what a command says and return the report."""
    options = dict(command["options"])
    if "older_than" in options:
        options["older_than"] = timedelta(hours=options["older_than"])
    kb = KnowledgeBase(command["kb"], engine="sail")
    report = getattr(kb, command["act"])(*command["inputs"], **options)
    return report.as_dict() if hasattr(report, "as_dict") else asdict(report)


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
