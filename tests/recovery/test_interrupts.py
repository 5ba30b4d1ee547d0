"""An interrupt ends what Python does, and not the Sail beside it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_INTERRUPT = """
import os, signal, threading, time
from inferlake.session import Sessions, _listens

def sail():
    return Sessions("sail").for_reading().session

def one(session):
    return session.sql("SELECT 1 AS n").collect()[0].n

def interrupted():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        return True
    return False
"""


def _run(script: str) -> str:
    """Run lines in a process of their own; what waits for a dead server waits for minutes."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPT + script],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sail_goes_on_after_an_interrupt() -> None:
    script = "s = sail(); print(one(s), interrupted(), one(s), sail() is s)"
    assert _run(script) == "1 True 1 True\n"


def test_a_sail_that_an_interrupt_stopped_is_replaced() -> None:
    # A server started outside the main thread cannot be kept from seeing interrupts.
    script = """
started = []
thread = threading.Thread(target=lambda: started.append(sail()))
thread.start()
thread.join()
print(one(started[0]), interrupted())
while _listens(started[0]._inferlake_server):
    time.sleep(0.1)
print(sail() is started[0], one(sail()))
"""
    assert _run(script) == "1 True\nFalse 1\n"


@pytest.mark.parametrize("stop", ["pass", "s._inferlake_server.stop()"])
def test_a_process_ends_whether_or_not_its_sail_is_there(stop: str) -> None:
    assert _run(f"s = sail(); print(one(s)); {stop}") == "1\n"
