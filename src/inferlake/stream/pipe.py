"""Lines from standard input: what comes within a slice of time is a batch.

A pipe cannot be read again, so nothing can be replayed: a line is safe once it is in a committed
version, which the reports tell. At the end of the input, or on an interrupt, what has been read
becomes the last batch.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator
from typing import IO

from inferlake.errors import EngineError, InferlakeError, InputError
from inferlake.stream.batch import Batch
from inferlake.stream.report import StreamReport
from inferlake.stream.running import RunningStream
from inferlake.stream.spool import Message, spooled
from inferlake.stream.writer import Writer

# Lines wait here for their batch; more than that wait in the pipe.
_WAITING = 200_000
_LOOK_SECONDS = 0.1
_BLOCK = 1 << 16


class PipeStream(RunningStream):
    """A thread that cuts lines into batches, and one that reads them."""

    def __init__(self, writer: Writer, source: IO[bytes]) -> None:
        self._writer = writer
        self._source = source
        self._lines: queue.Queue[Message | None] = queue.Queue(_WAITING)
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._number = 0
        self._ended = False
        # Daemons: a read from a pipe to which nobody writes cannot be interrupted.
        threading.Thread(target=self._read, name="inferlake-pipe", daemon=True).start()
        self._worker = threading.Thread(target=self._work, name="inferlake-batches", daemon=True)
        self._worker.start()

    def _read(self) -> None:
        try:
            for number, line in enumerate(_lines(self._source), 1):
                now = time.time()
                self._lines.put(Message(line, number, time=now, event=int(now * 1000)))
        except (OSError, ValueError) as exc:  # closed under us, or not readable
            self._failure = InputError(f"standard input cannot be read: {exc}")
        self._lines.put(None)

    def _work(self) -> None:
        try:
            while not self._ended:
                batch = self._batch()
                if batch.files:
                    self._writer.write(batch.number, lambda batch=batch: batch)
                    self._number += 1
                self._writer.state.spool.remove()
        except Exception as exc:
            self._failure = exc
        finally:
            self._writer.close()

    def _batch(self) -> Batch:
        """Wait for lines, and return those of one slice of time."""
        state = self._writer.state
        at = state.spool.child(str(self._number))
        source = "standard input"
        timed = self._writer.options.window is not None
        return spooled(at, self._number, self._slice(), source=source, owner=state.id, timed=timed)

    def _slice(self) -> Iterator[Message]:
        """Yield the lines of one slice of time, which begins with its first line."""
        options = self._writer.options
        until: float | None = None
        left: int | None = None  # of what was there when the stream was told to end
        count = 0
        while options.trigger.kind == "once" or count < options.max_lines:
            if until is not None and time.monotonic() >= until:
                break
            if self._stopping.is_set():
                left = self._lines.qsize() if left is None else left - 1
                if left <= 0:
                    break
            try:
                message = self._lines.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if message is None:
                self._ended = True
                return
            yield message
            count += 1
            if until is None and options.trigger.kind == "every":
                until = time.monotonic() + options.trigger.seconds
        self._ended = self._stopping.is_set()

    @property
    def is_active(self) -> bool:
        return self._worker.is_alive()

    def stop(self) -> StreamReport:
        self._stopping.set()
        self.await_termination()
        return self.summary

    def await_termination(self, timeout: float | None = None) -> bool:
        self._worker.join(timeout)
        if self._worker.is_alive():
            return False
        if isinstance(self._failure, InferlakeError):
            raise self._failure
        if self._failure is not None:
            raise EngineError(f"the stream ended with {self._failure!r}") from self._failure
        return True

    def process_all_available(self) -> None:
        """Wait until the input has ended and all of it is committed."""
        self.await_termination()


def _lines(source: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a pipe as they come.

    Not through its buffer: a thread that waits in there would keep Python from ending.
    """
    try:
        number = source.fileno()
    except OSError:  # it is in memory
        yield from source
        return
    left = b""
    while some := os.read(number, _BLOCK):
        *whole, left = (left + some).split(b"\n")
        yield from whole
    if left:
        yield left
