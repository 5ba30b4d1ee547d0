"""A stream at work: what it has done, and how to wait for it and end it."""

from __future__ import annotations

import logging
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

from inferlake.errors import EngineError, InferlakeError
from inferlake.session import is_engine_failure
from inferlake.stream.report import BatchReport, StreamReport
from inferlake.stream.sources import SparkSource
from inferlake.stream.writer import Stopped, Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_SECONDS = 0.2

# Where py4j writes what a batch raises, before Spark ends the query for it.
_CALLBACKS = logging.getLogger("py4j.clientserver")


def _not_ours(record: logging.LogRecord) -> bool:
    """Keep off the screen what whoever waits for the stream is told anyway."""
    raised = record.exc_info[1] if record.exc_info else None
    return not isinstance(raised, InferlakeError | Stopped)


class RunningStream(ABC):
    """A stream at work, whatever its source."""

    _writer: Writer

    @property
    def reports(self) -> deque[BatchReport]:
        """The reports of the last thousand batches, oldest first."""
        return self._writer.reports

    @property
    def last(self) -> BatchReport | None:
        """The report of the last batch."""
        return self.reports[-1] if self.reports else None

    @property
    def summary(self) -> StreamReport:
        """What it has done since it started."""
        return self._writer.summary

    @property
    @abstractmethod
    def is_active(self) -> bool:
        """Whether it may still take a batch."""

    @abstractmethod
    def stop(self) -> StreamReport:
        """End it after the batch in hand, and return what it did; raise what ended it before."""

    @abstractmethod
    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most so many seconds, and tell whether it came; raise a failure."""

    @abstractmethod
    def process_all_available(self) -> None:
        """Wait until all that is there now is committed."""


class SparkStream(RunningStream):
    """A query of Structured Streaming whose batches become versions."""

    def __init__(self, writer: Writer, source: SparkSource, frame: DataFrame) -> None:
        self._writer = writer
        self._source = source
        self._failure: Exception | None = None
        self._closed = False
        _CALLBACKS.addFilter(_not_ours)
        options = writer.options
        try:
            self._query: StreamingQuery = (
                frame.writeStream.foreachBatch(self._take)
                .option("checkpointLocation", writer.state.checkpoint.address)
                .trigger(**options.trigger.for_spark)
                .start()
            )
        except BaseException as exc:
            writer.close()
            if isinstance(exc, Exception) and is_engine_failure(exc):
                place = writer.state.at.address
                raise EngineError(f"{place}: spark could not start the stream: {exc}") from exc
            raise

    def _take(self, frame: DataFrame, number: int) -> None:
        """Do one batch. Spark calls this in a thread of its own, again after a crash."""
        spool = self._writer.state.spool.child(str(number))
        try:
            self._writer.write(
                number, lambda: self._source.batch(number, frame, self._writer.state)
            )
        except Exception as exc:
            self._failure = exc  # Spark would pass on no more than its text
            self._writer.stop()  # Spark takes no other batch, and nothing else is to go on
            raise
        finally:
            spool.remove()

    @property
    def is_active(self) -> bool:
        return self._query.isActive

    def stop(self) -> StreamReport:
        self._writer.stop()
        # Spark may not have noted the batch that we have just committed: it comes again at the
        # next start, and is recognised.
        self._query.stop()
        self._close()
        return self.summary

    def await_termination(self, timeout: float | None = None) -> bool:
        waited = 0.0
        while self._query.isActive:
            if timeout is not None and waited >= timeout:
                return False
            time.sleep(_LOOK_SECONDS)  # rather than wait in the JVM, which keeps signals waiting
            waited += _LOOK_SECONDS
        self._close()
        return True

    def process_all_available(self) -> None:
        try:
            self._query.processAllAvailable()
        except Exception:
            self._raise_failure()
            raise

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._writer.close()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure = self._failure
        if failure is None:
            ended: Any = self._query.exception()
            if ended is not None:
                cause = (str(ended).splitlines() or [""])[0]
                raise EngineError(
                    f"{self._writer.state.at.address}: spark ended the stream: {cause}; if it reads"
                    " from elsewhere than before, give it another name or checkpoint"
                ) from ended
        elif isinstance(failure, InferlakeError):
            raise failure
        elif not isinstance(failure, Stopped):
            raise EngineError(f"the stream ended with {failure!r}") from failure


class Interrupts:
    """Inside the block, the first interrupt or request to end is only noted; a second one counts.

    Ask often whether it came: a Sail server that starts in this process takes interrupts for its
    own, and would end in the middle of a batch. Whoever asks takes them back.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.signal(number, self._note) for number in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def came(self) -> bool:
        """Tell whether somebody asked for the end."""
        for number in self._SIGNALS:
            signal.signal(number, self._note)
        return self._asked.is_set()

    def _note(self, number: int, _: object) -> None:
        if self._asked.is_set():
            raise KeyboardInterrupt
        self._asked.set()


def attended(running: RunningStream) -> StreamReport:
    """Wait for a stream's end or for an interrupt, and return what it did.

    An interrupt ends it after the batch in hand.
    """
    with Interrupts() as interrupts:
        while not running.await_termination(_LOOK_SECONDS):
            if interrupts.came():
                return running.stop()
    return running.summary
