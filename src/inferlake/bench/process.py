"""One case in a process of its own: its memory is its own, and it can be ended at a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from inferlake.bench.record import Row

# Lines of a failed process's standard error that its row keeps.
_LAST_WORDS = 5


@dataclass(frozen=True)
class Case:
    """What to measure: a function of this package, what makes the case, and what it also needs.

    `named` is part of every row; `given`, such as lists of files, is not.
    """

    measure: str
    named: Mapping[str, Any]
    given: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.named.items())


def measured(case: Case, *, limit: float) -> Iterator[Row]:
    """Run a case in a process of its own, and yield its rows as they come.

    A process that fails, or takes more than `limit` seconds, yields a last row with `error`.
    """
    yield from _lines([sys.executable, "-m", "inferlake.bench.case"], asdict(case), limit=limit)


def told(command: list[str], *, limit: float) -> Iterator[Row]:
    """Run a command that prints rows as lines of JSON, as `measured` does."""
    yield from _lines(command, None, limit=limit)


def _lines(command: list[str], spec: Mapping[str, Any] | None, *, limit: float) -> Iterator[Row]:
    # What it leaves when it is killed goes with its folder.
    scratch = tempfile.TemporaryDirectory(prefix="inferlake-bench-", ignore_cleanup_errors=True)
    with scratch as folder, tempfile.TemporaryFile("w+") as words:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            env={"SPARK_LOCAL_DIRS": folder, **os.environ, "TMPDIR": folder},
            # A group of its own, so that a JVM below it ends with it.
            start_new_session=True,
        )
        assert child.stdin is not None and child.stdout is not None
        late = threading.Event()
        clock = threading.Timer(limit, lambda: (late.set(), _end(child)))
        clock.start()
        try:
            if spec is not None:
                # Left open: the child ends itself when this end is gone, however we end.
                child.stdin.write(json.dumps(spec) + "\n")
                child.stdin.flush()
            for line in child.stdout:
                yield json.loads(line)
            code = child.wait()
        finally:
            clock.cancel()
            _end(child)
        if late.is_set():
            yield {"error": f"took more than {limit:g} s", "limit": limit}
        elif code:
            words.seek(0)
            said = words.read().strip().splitlines()[-_LAST_WORDS:]
            yield {"error": "\n".join(said) or f"ended with {code}"}


def _end(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended, with all of its group
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
