"""An interrupt ends what Python does, and not the Sail beside it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_INTERRUPT = """
import os, signal, threading, time
from inferlake.engines.sail import _listens
from inferlake.session import Sessions

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


@pytest.mark.parametrize("loaded", ["", "import inferlake.engines.channel"])
def test_sail_goes_on_after_an_interrupt(loaded: str) -> None:
    # With all modules loaded before, Sail is still starting when its session is there.
    script = "s = sail(); print(interrupted(), one(s), interrupted(), one(s), sail() is s)"
    assert _run(f"{loaded}\n{script}") == "True 1 True 1 True\n"


def test_a_server_that_was_told_to_stop_is_replaced() -> None:
    script = "s = sail(); s._inferlake_server.stop(); print(sail() is s, one(sail()))"
    assert _run(script) == "False 1\n"


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_sail_answers_after_interrupts_at_any_moment(seed: int) -> None:
    # One in ten would leave a lock of gRPC taken, and the next call, or the exit, waiting for ever.
    script = f"""
import random
moment = random.Random({seed})
held = sail().sql("SELECT 1 AS n")
for n in range(60):
    # In a notebook, every cell comes with handlers of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(
        moment.uniform(0.0, 0.03), lambda: os.kill(os.getpid(), signal.SIGINT)
    )
    try:
        timer.start()
        while True:
            one(sail())
    except KeyboardInterrupt:
        assert one(sail()) == held.collect()[0].n == 1
print("answered")
"""
    assert _run(script) == "answered\n"


@pytest.mark.slow
def test_an_interrupt_stops_the_query_before_it_is_heard_of() -> None:
    # PySpark sends word of most by another thread, some time: here, not at all.
    script = """
import concurrent.futures, pathlib, tempfile
from inferlake.paths import place
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Responses
class Never:
    def submit(self, _):
        return concurrent.futures.Future()
session = sail()
Responses._release_thread_pool = Never()
class Stop(BaseException):
    pass
def stop(*_):
    raise Stop
signal.signal(signal.SIGINT, stop)
out = pathlib.Path(tempfile.mkdtemp()) / "rows"
def written():
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
def interrupt():
    while not written():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
rows = session.range(10**9).selectExpr("id", "sha2(CAST(id AS STRING), 256) AS hash")
threading.Thread(target=interrupt).start()
try:
    rows.write.parquet(str(out))
except Stop:
    place(out).remove()
time.sleep(2)
print(out.exists(), one(sail()))
"""
    assert _run(script) == "False 1\n"


@pytest.mark.slow
def test_an_interrupt_stops_a_query_that_the_server_has_not_heard_of() -> None:
    # A server forgets an interrupt of what it does not know: it must be told again.
    script = """
import pathlib, tempfile
from inferlake.engines import channel
from inferlake.paths import place
session = sail()
sent = channel._Responses._next
def late(self):
    threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    time.sleep(0.3)
    return sent(self)
out = pathlib.Path(tempfile.mkdtemp()) / "rows"
rows = session.range(10**9).selectExpr("id", "sha2(CAST(id AS STRING), 256) AS hash")
channel._Responses._next = late
try:
    rows.write.parquet(str(out))
except KeyboardInterrupt:
    channel._Responses._next = sent
    place(out).remove()
time.sleep(2)
print(out.exists(), one(sail()))
"""
    assert _run(script) == "False 1\n"


@pytest.mark.parametrize("stop", ["pass", "s._inferlake_server.stop()"])
def test_a_process_ends_whether_or_not_its_sail_is_there(stop: str) -> None:
    assert _run(f"s = sail(); print(one(s)); {stop}") == "1\n"
