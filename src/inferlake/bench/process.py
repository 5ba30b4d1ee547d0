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
# Characters of a line that its row keeps, if it should have been a row.
_MOST_OF_A_LINE = 200


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

    A process that fails, says what is no row, ends without a row, or takes more than `limit`
    seconds, yields a last row with `error`.
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
                with contextlib.suppress(BrokenPipeError):  # how it ended is told below
                    child.stdin.write(json.dumps(spec) + "\n")
                    child.stdin.flush()
            rows = 0
            for line in child.stdout:
                row = _row(line)
                if "error" in row and not line.endswith("\n"):
                    break  # killed in the middle of a line: what killed it is told below
                yield row
                rows += 1
                if "error" in row:
                    return
            code = child.wait()
        finally:
            clock.cancel()
            _end(child)
        if late.is_set():
            yield {"error": f"took more than {limit:g} s; --limit allows more", "limit": limit}
        elif code or not rows:
            words.seek(0)
            said = words.read().strip().splitlines()[-_LAST_WORDS:]
            if not code or not said:
                said.append(f"ended with {code}" if code else "ended without a row")
            yield {"error": "\n".join(said)}


def _row(line: str) -> Row:
    """Return a row as a process printed it; what is none is an error, in its own words."""
    with contextlib.suppress(ValueError):
        row = json.loads(line)
        if isinstance(row, dict):
            return row
    return {"error": f"printed what is no row: {line.strip()[:_MOST_OF_A_LINE]!r}"}


def _end(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended, with all of its group
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does: the process of a case ends, its folder goes."""
    if threading.current_thread() is not threading.main_thread():  # no other may set a signal
        yield
        return

    def end(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would leave the folder
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
