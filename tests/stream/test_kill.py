"""Streams that are killed, and streams that are asked to end: nothing is lost, nothing twice."""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from inferlake.engines.machine import has_java
from inferlake.kb import KnowledgeBase

from .conftest import SUB_CLASS, TYPE, Triple, assert_right, line, name, put

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(not has_java(), reason="Structured Streaming needs Java"),
]

# INFERLAKE_KILLS=20 for the long run.
_KILLS = int(os.environ.get("INFERLAKE_KILLS", "3"))
_PATIENCE_SECONDS = 120


class Process:
    """`inferlake stream`, in a group of its own, with its reports read as they come."""

    def __init__(self, kb: Path, folder: Path, *options: str) -> None:
        command = [sys.executable, "-c", "from inferlake.cli import main; main()", "--json"]
        self._process = subprocess.Popen(
            [*command, "stream", str(kb), str(folder), "--rules", "rdfs", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.told: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            self.told.put(json.loads(text))
        self.told.put(None)

    def next(self) -> dict[str, Any] | None:
        """Return the next report, or None at the end."""
        return self.told.get(timeout=_PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill the driver and the JVM, as a machine that loses power does."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def ended(self) -> list[dict[str, Any]]:
        """Wait for the end, and return what it had to say, the summary last."""
        try:
            said = list(iter(self.next, None))
            error = self._process.stderr.read() if self._process.stderr else ""
            assert self._process.wait(_PATIENCE_SECONDS) == 0, error
        finally:
            if self._process.poll() is None:
                self.kill()
        return said


def _files(folder: Path, count: int) -> set[Triple]:
    """Write files of which each takes back some of the one before, and return what is left."""
    folder.mkdir()
    asserted: set[Triple] = set()
    schema = [(name(f"C{n}"), SUB_CLASS, name(f"C{n + 1}")) for n in range(count)]
    for n in range(count):
        new = {(name(f"i{n}-{k}"), TYPE, name(f"C{n}")) for k in range(6)} | {schema[n]}
        gone = {(name(f"i{n - 1}-{k}"), TYPE, name(f"C{n - 1}")) for k in range(3)} if n else set()
        lines = [f"A {line(t)}" for t in sorted(new)] + [f"D {line(t)}" for t in sorted(gone)]
        put(folder / f"{n:03}.rdfp", [*lines, f"bad line {n}"], at=n)
        asserted = (asserted | new) - gone
    return asserted


def _assert_once(kb: Path, asserted: set[Triple], files: int) -> None:
    """Check the facts, the sum of what batches did, and that each bad line is there once.

    Spark may put several files into one batch after a crash, so their numbers are not told apart;
    a batch that was committed twice would have counted its bad lines twice.
    """
    opened = KnowledgeBase(kb, engine="sail")
    assert_right(opened, asserted)
    done = [one.info for one in opened.history() if one.operation == "stream"]
    assert sum(one["added"] - one["removed"] for one in done) == len(asserted)
    assert sum(one["bad"] for one in done) == files
    letters = kb.glob("streams/*/dead-letters/*.jsonl")
    texts = [json.loads(one)["text"] for file in letters for one in file.read_text().splitlines()]
    assert sorted(texts) == sorted(f"bad line {n}" for n in range(files))


def test_killed_again_and_again(tmp_path: Path):
    """At any moment: while it starts, between batches, in the middle of one."""
    dice = random.Random(os.environ.get("INFERLAKE_SEED", "5"))
    files = 8 + 2 * _KILLS
    asserted = _files(tmp_path / "in", files)
    kb = tmp_path / "kb"
    for _ in range(_KILLS):
        process = Process(kb, tmp_path / "in", "--trigger", "100ms", "--max-files", "1")
        for _ in range(dice.choice((1, 1, 2, 3))):
            if process.next() is None:
                break
        threading.Event().wait(dice.random() * 0.8)
        process.kill()
    *batches, summary = Process(
        kb, tmp_path / "in", "--trigger", "available-now", "--max-files", "1"
    ).ended()
    assert summary["batches"] == len(batches)
    _assert_once(kb, asserted, files)


def test_killed_while_it_starts(tmp_path: Path):
    """Spark writes its checkpoint for the first time about when the folder appears."""
    dice = random.Random(6)
    asserted = _files(tmp_path / "in", 2)
    kb = tmp_path / "kb"
    for _ in range(1 + _KILLS // 4):
        process = Process(kb, tmp_path / "in", "--trigger", "100ms")
        checkpoint = threading.Event()
        while not list(kb.glob("streams/*/checkpoint")):
            checkpoint.wait(0.005)
        checkpoint.wait(dice.random() * 0.3)
        process.kill()
    Process(kb, tmp_path / "in", "--trigger", "available-now").ended()
    _assert_once(kb, asserted, 2)


def test_an_interrupt_ends_it_after_the_batch_in_hand(tmp_path: Path):
    asserted = _files(tmp_path / "in", 6)
    kb = tmp_path / "kb"
    process = Process(kb, tmp_path / "in", "--trigger", "100ms", "--max-files", "1")
    assert process.next()
    process.interrupt()
    *batches, summary = process.ended()
    assert summary["batches"] == 1 + len(batches) < 6 and summary["median"] > 0
    assert KnowledgeBase(kb, engine="sail").verify().ok
    Process(kb, tmp_path / "in", "--trigger", "available-now").ended()
    _assert_once(kb, asserted, 6)
