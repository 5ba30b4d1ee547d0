"""A process that loads files on command, so that tests can kill it or set it against another.

Reads one JSON command a line from standard input and writes one JSON event a line to standard
output. A command names a store, a file and, if wanted:

    gate    tables before whose first commit (or creation) it says so and waits for a line
    die     [when, method, table], such as ["before", "commit", "facts"]: where it kills itself
    transaction     [application, batch]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from inferlake.kb import KnowledgeBase
from inferlake.session import Sessions
from inferlake.store.table import CommitRace, Table


class Interruptions:
    """Stands between a load and its tables, and does there what the command says."""

    def __init__(self) -> None:
        self.command: dict[str, Any] = {}
        self.gates: set[tuple[str, str]] = set()
        self.races: list[str] = []
        for method in ("create", "commit"):
            setattr(Table, method, self._around(method, getattr(Table, method)))

    def obey(self, command: dict[str, Any]) -> None:
        """Take the interruptions of the next load from `command`."""
        self.command = command
        self.gates = {(method, t) for t in command.get("gate", ()) for method in ("create", "commit")}
        self.races = []

    def _around(self, method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted(table: Table, *args: Any) -> Any:
            name = table.place.path.rsplit("/", 1)[-1]
            if (method, name) in self.gates:
                self.gates.discard((method, name))
                tell(event="gate", method=method, table=name)
                sys.stdin.readline()
            self._die("before", method, name)
            try:
                result = original(table, *args)
            except CommitRace:
                self.races.append(name)
                raise
            self._die("after", method, name)
            return result

        return interrupted

    def _die(self, *point: str) -> None:
        if self.command.get("die") == list(point):
            os.kill(os.getpid(), signal.SIGKILL)


def tell(**event: Any) -> None:
    """Write an event for the parent to read at once."""
    print(json.dumps(event), flush=True)


def main() -> None:
    """Start the engine, then load what is asked for until standard input ends."""
    interruptions = Interruptions()
    Sessions("sail").for_reading()
    tell(event="ready")
    for line in sys.stdin:
        command = json.loads(line)
        interruptions.obey(command)
        transaction = command.get("transaction")
        tell(event="begin")
        try:
            report = KnowledgeBase(command["kb"], engine="sail").load(
                command["file"], transaction=tuple(transaction) if transaction else None
            )
        except Exception as exc:
            tell(event="failed", error=repr(exc))
        else:
            tell(event="done", races=interruptions.races, **report.as_dict())


if __name__ == "__main__":
    main()
