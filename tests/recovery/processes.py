"""The parent's end of `loader.py`, and what a store holds as deltalake alone reads it."""

from __future__ import annotations

import itertools
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

_SCRIPT = Path(__file__).with_name("loader.py")
_PATIENCE_SECONDS = 60

Event = dict[str, Any]


class Nursery:
    """The process that loaders are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def loader(self) -> Loader:
        """Return a new process, which says `ready` when it is."""
        return Loader(socket.create_connection(("127.0.0.1", self._port)))

    def close(self) -> None:
        """End the nursery; loaders end when their connections do."""
        self._process.communicate(timeout=_PATIENCE_SECONDS)


class Loader:
    """A process at work. Events are read as they come, so that none is lost when it is killed."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._channel = connection.makefile("rw")
        self._events: queue.Queue[Event] = queue.Queue()
        self._asked = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._pid: int = self.wait("ready")["pid"]

    def _read(self) -> None:
        # A process that is killed may reset the connection instead of closing it.
        with suppress(ConnectionResetError):
            for line in self._channel:
                self._events.put(json.loads(line))

    def wait(self, event: str) -> Event:
        """Return the next event, which must be of the kind `event`."""
        found = self._events.get(timeout=_PATIENCE_SECONDS)
        assert found["event"] == event, found
        self._asked -= event in ("done", "failed")
        return found

    @property
    def idle(self) -> bool:
        """Whether all that was asked for has been waited for."""
        return not self._asked

    def send(
        self,
        kb: Path,
        act: str,
        *inputs: Path | str,
        gates: Iterable[str] = (),
        die: str | None = None,
        **options: Any,
    ) -> None:
        """Ask for a method of a knowledge base, to be interrupted at `gates` or to `die`."""
        self._asked += 1
        command = {"kb": kb, "act": act, "inputs": inputs, "options": options}
        self._write(json.dumps({**command, "gates": list(gates), "die": die}, default=str))

    def go(self) -> None:
        """Open the gate that the process waits at."""
        self._write("")

    def _write(self, line: str) -> None:
        self._connection.sendall(f"{line}\n".encode())

    def kill(self) -> list[str]:
        """Kill the process as `kill -9` does, and return the events not waited for."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        return self.died()

    def died(self) -> list[str]:
        """Wait for the process to end by itself, and return the events not waited for."""
        self._reader.join(_PATIENCE_SECONDS)
        assert not self._reader.is_alive()
        self._channel.close()
        self._connection.close()
        return [self._events.get()["event"] for _ in range(self._events.qsize())]


Pair = tuple[Loader, Loader]


def write_numbered(file: Path, numbers: Iterable[int]) -> set[str]:
    """Write a triple for each number, in a format by the suffix, and return them as lines.

    Neighbouring numbers share a term, every seventh has a literal, and all share four predicates.
    """
    lines = {_line(number) for number in numbers}
    # Turtle without abbreviations is N-Triples, and goes another way through a load.
    file.write_text("".join(f"{line}\n" for line in sorted(lines)))
    return lines


def _line(n: int) -> str:
    def name(local: object) -> str:
        return f"<http://example.org/{local}>"

    target = name(n + 1) if n % 7 else f'"{n}"'
    return f"{name(n)} {name(f'p{n % 4}')} {target} ."


def assert_sound(kb: Path) -> None:
    """Check with deltalake and pyarrow that facts come and go in turn, and each id has its term."""
    terms = _table(kb / "terms")
    ids = Counter(terms.column("id").to_pylist())
    assert not [id for id, count in ids.items() if count > 1]
    facts = _table(kb / "facts")
    # What goes and comes in one version goes first.
    names = ("relation", "layer", "s", "p", "o", "version", "sign")
    rows = sorted(
        zip(*(facts.column(name).to_pylist() for name in names), strict=True),
        key=lambda row: tuple(value or 0 for value in row),
    )
    for fact, told in itertools.groupby(rows, lambda row: row[:5]):
        signs = [row[-1] for row in told]
        assert signs == [1, -1] * (len(signs) // 2) + [1] * (len(signs) % 2), fact
    assert {id for row in rows for id in row[2:5] if id is not None} <= ids.keys()


def _table(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_table()


def make_old(kb: Path) -> None:
    """Make all data of the store, and the leftovers of the dead, look three days old."""
    past = time.time() - timedelta(days=3).total_seconds()
    for path in kb.rglob("*"):
        if "_delta_log" not in path.parts:
            os.utime(path, (past, past))


def leftovers(kb: Path) -> list[Path]:
    """Return the data files that no version names, and all that is staged."""
    named: set[str] = set()
    for name in ("facts", "terms"):
        newest = DeltaTable(str(kb / name)).version()
        for version in range(newest + 1):
            named |= set(DeltaTable(str(kb / name), version=version).file_uris())
    data = [path for name in ("facts", "terms") for path in (kb / name).rglob("*.parquet")]
    unnamed = [path for path in data if str(path) not in named]
    return unnamed + [path for path in (kb / "_staging").rglob("*") if path.is_file()]
