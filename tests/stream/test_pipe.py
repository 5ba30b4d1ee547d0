"""Lines from a pipe: slices of time, bad lines, and the end of the input."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from inferlake.errors import InputError
from inferlake.kb import KnowledgeBase
from inferlake.stream.state import State

from .conftest import facts, line, name, put


def _triple(n: int):
    return (name(f"i{n}"), name("p"), name("o"))


@pytest.fixture
def sail_kb(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase(tmp_path / "kb", engine="sail", rules="none")


def test_all_lines_up_to_the_end(sail_kb: KnowledgeBase, tmp_path: Path):
    text = "".join(f"{line(_triple(n))}\n" for n in range(10)) + f"bad\nD {line(_triple(3))}"
    stream = sail_kb.stream("-", trigger="available-now", max_lines=5)
    running = stream.start(pipe=io.BytesIO(text.encode()))
    running.process_all_available()
    assert [one.lines for one in running.reports] == [5, 5, 2]
    assert facts(sail_kb) == {_triple(n) for n in range(10)} - {_triple(3)}
    (letter,) = (tmp_path / "kb" / "streams").glob("*/dead-letters/*/*.jsonl")
    assert '"offset": 11' in letter.read_text()


def test_a_slice_of_time_and_an_end_that_is_asked_for(sail_kb: KnowledgeBase, tmp_path: Path):
    """What was read when the stream is stopped is committed, though the pipe is still open."""
    read, write = os.pipe()
    committed = threading.Event()
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb", buffering=0) as sink:
        stream = sail_kb.stream("-", trigger="50ms")
        running = stream.start(pipe=source, listener=lambda report: committed.set())
        sink.write(f"{line(_triple(0))}\n".encode())
        assert committed.wait(60)
        assert facts(sail_kb) == {_triple(0)}
        sink.write(f"{line(_triple(1))}\n{line(_triple(2))}\n".encode())
        while not running.reports or running.summary.lines < 3:
            if committed.wait(0.01) and running.summary.lines >= 3:
                break
        assert running.stop().added == 3
        sink.close()
    assert facts(sail_kb) == {_triple(n) for n in range(3)}
    assert not list((tmp_path / "kb" / "streams").iterdir()), "nothing is left of it"


@pytest.mark.parametrize("trigger", ["50ms", "once"])
def test_an_end_that_is_asked_for_while_lines_keep_coming(sail_kb: KnowledgeBase, trigger: str):
    read, write = os.pipe()
    ended = threading.Event()

    def feed(sink: IO[bytes]) -> None:
        numbers = itertools.count()
        with suppress(BrokenPipeError), sink:
            while not ended.is_set():
                sink.write(f"{line(_triple(next(numbers) % 1000))}\n".encode() * 100)

    feeder = threading.Thread(target=feed, args=(os.fdopen(write, "wb"),), daemon=True)
    running = sail_kb.stream("-", trigger=trigger).start(pipe=os.fdopen(read, "rb"))
    feeder.start()
    time.sleep(0.5)
    stopping = threading.Thread(target=running.stop, daemon=True)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive() and feeder.is_alive()
    assert running.summary.added == len(facts(sail_kb)) > 0
    ended.set()


def test_a_bad_line_may_end_it(sail_kb: KnowledgeBase):
    stream = sail_kb.stream("-", on_error="fail", trigger="once")
    running = stream.start(pipe=io.BytesIO(b"bad\n"))
    with pytest.raises(InputError, match="no statement"):
        running.await_termination()


def test_only_what_a_pipe_made_is_removed(sail_kb: KnowledgeBase, tmp_path: Path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / ".keep").write_text("")
    with pytest.raises(InputError, match=r"holds \.keep and is no checkpoint"):
        sail_kb.stream("-", checkpoint=str(mine)).start(pipe=io.BytesIO(b""))
    assert (mine / ".keep").exists()
    sail_kb.load(put(tmp_path / "some.nt", [line(_triple(1))]))
    State.open(sail_kb._store, "sensors", None, None).close()  # that of a DataFrame
    with pytest.raises(InputError, match="a stream from a DataFrame, not -"):
        sail_kb.stream("-", name="sensors").start(pipe=io.BytesIO(b""))
    assert (tmp_path / "kb" / "streams" / "sensors" / "stream.json").exists()


def test_a_line_means_the_same_whatever_stands_beside_it(tmp_path: Path):
    """Plain statements are N-Quads, also in a batch that has lines of RDF Patch."""
    good = ['<e:s><e:p>"x".', '<e:s> <e:p> "a"@en<e:g> .', "<e:s> <e:p> <e:o> ."]
    bad = ["<e:s> <e:p> <e:q>", "<e:s> <e:p> 42 .", "<e:s> a <e:C> .", "<_:x> <e:p> <e:o> ."]
    found = []
    for beside in ("", "A <e:a> <e:b> <e:c> .\n"):
        kb = KnowledgeBase(tmp_path / f"kb{len(beside)}", engine="sail", rules="none")
        text = "".join(f"{one}\n" for one in (*good, *bad)) + beside
        running = kb.stream("-", trigger="once").start(pipe=io.BytesIO(text.encode()))
        running.process_all_available()
        assert running.summary.bad == len(bad)
        found.append(facts(kb) - {("<e:a>", "<e:b>", "<e:c>")})
    assert found[0] == found[1] and len(found[0]) == len(good)


@pytest.mark.slow
def test_an_interrupt_commits_what_was_read(tmp_path: Path):
    """Sail must not take the interrupt for itself: the batch in hand is its work."""
    command = [sys.executable, "-c", "from inferlake.cli import main; main()", "--json"]
    process = subprocess.Popen(
        [*command, "--engine", "sail", "stream", str(tmp_path / "kb"), "-", "--trigger", "300ms"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin and process.stdout and process.stderr
    try:
        process.stdin.write(f"{line(_triple(0))}\n".encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["added"] == 1
        process.stdin.write("".join(f"{line(_triple(n))}\n" for n in (1, 2)).encode())
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        *_, summary = process.stdout.read().splitlines()
        assert process.wait(60) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    # Lines that were still in the pipe when the interrupt came may be left there.
    assert json.loads(summary)["added"] in (1, 3)
    assert len(facts(KnowledgeBase(tmp_path / "kb", engine="sail"))) == json.loads(summary)["added"]
