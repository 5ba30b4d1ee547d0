"""Connections to Spark Connect servers that an interrupt does not break. Imported with PySpark.

Python raises KeyboardInterrupt, and whatever else a handler of a signal raises, between any two
steps of the main thread. Where that is inside gRPC, a lock of the channel may stay taken, and every
later call waits for it for ever. So other threads call gRPC for the main one, which only waits.
"""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import grpc
from grpc.experimental import ChannelOptions
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
from pyspark.sql.connect.proto import InterruptRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

# So many seconds a server has for stopping a query, before whoever interrupted it goes on, and so
# many pass before it is told again: it may hear of that before it hears of the query.
_PATIENCE = 5.0
_AGAIN = 0.1


class Builder(DefaultChannelBuilder):
    """Makes the channel of a PySpark client: one that interrupts do not reach.

    Raises PySpark's exceptions where a URL is none of a Spark Connect server.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        # Responses then need no second thread of gRPC's own: that makes up for ours.
        self.setChannelOption(ChannelOptions.SingleThreadedUnaryStream, 1)

    def toChannel(self) -> grpc.Channel:  # noqa: N802  (PySpark's name)
        """Open the channel."""
        channel: Any = _Channel(super().toChannel())
        return channel


def answers(session: Any, seconds: float) -> bool:
    """Tell whether the server of a session takes calls, or comes to it within so many seconds.

    Asked of gRPC, which knows of proxies and certificates. PySpark itself would go on calling for
    ten minutes.
    """
    ready = grpc.channel_ready_future(session.client._channel)
    try:
        ready.result(timeout=seconds)
    except grpc.FutureTimeoutError:
        return False
    finally:
        ready.cancel()
    return True


class _Channel:
    """What PySpark uses of a gRPC channel."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._stub: Any = SparkConnectServiceStub(channel)

    def unary_unary(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        return _apart(self._channel.unary_unary(*args, **kwargs))

    def stream_unary(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        return _apart(self._channel.stream_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        begin = self._channel.unary_stream(*args, **kwargs)
        return lambda request, **how: _Responses(begin, self._stub, request, how)

    def subscribe(self, *args: Any, **kwargs: Any) -> None:
        _apart(self._channel.subscribe)(*args, **kwargs)

    def unsubscribe(self, callback: Any) -> None:
        _apart(self._channel.unsubscribe)(callback)

    def close(self) -> None:
        _apart(self._channel.close)()


class _Responses:
    """The responses to a query or command, which is stopped if the wait for one is broken off."""

    def __init__(self, begin: Any, stub: Any, request: Any, how: dict[str, Any]) -> None:
        self._begin, self._stub, self._request, self._how = begin, stub, request, how
        self._responses: Any = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return _apart(self._next, self._stop)()

    def _next(self) -> Any:
        # Sent not before the first response is waited for: one wait, which one stop puts an end to.
        if self._responses is None:
            self._responses = self._begin(self._request, **self._how)
        return next(self._responses)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._responses, name)

    def __del__(self) -> None:
        # gRPC takes locks when it forgets a query, too.
        _forget(self.__dict__.pop("_responses", None))

    def _stop(self, ended: Callable[[float], bool]) -> None:
        """Have the server stop the query, and wait until it has.

        What is half written is deleted next, and must not be written on. PySpark would only send
        word of it, and not wait; so it does where an interrupt comes between two responses.
        """
        request = self._request
        interrupt = InterruptRequest(
            session_id=request.session_id,
            user_context=request.user_context,
            client_type=request.client_type,
            interrupt_type=InterruptRequest.INTERRUPT_TYPE_OPERATION_ID,
            operation_id=request.operation_id,
        )
        tell = _apart(self._stub.Interrupt)
        until = time.monotonic() + _PATIENCE
        over = False
        # A server that has gone writes no more; one that does not answer cannot be helped.
        with suppress(grpc.RpcError):
            while not over and time.monotonic() < until:
                tell(interrupt, timeout=_PATIENCE, **self._how)
                over = ended(_AGAIN)
            # What ended the wait may have been a response, and the first the server heard of it.
            tell(interrupt, timeout=_PATIENCE, **self._how)


def _apart(
    call: Callable[..., Any], stop: Callable[[Callable[[float], bool]], None] | None = None
) -> Callable[..., Any]:
    """Return a function that does `call` outside the main thread, for some 50 microseconds more.

    If the main thread is interrupted meanwhile, `stop` is called, with a function that waits up to
    so many seconds for the call to end, and tells whether it has.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        # No handler of a signal runs in other threads; and none of those runs when Python ends.
        if threading.current_thread() is not threading.main_thread() or sys.is_finalizing():
            return call(*args, **kwargs)
        answer: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        over: SimpleQueue[None] = SimpleQueue()

        def answered() -> None:
            try:
                answer.put((call(*args, **kwargs), None))
            except BaseException as exc:  # whoever waits for it raises it
                answer.put((None, exc))
            over.put(None)

        def ended(seconds: float) -> bool:
            with suppress(Empty):
                over.get(timeout=seconds)
                return True
            return False

        try:
            _beside(answered)
            result, failure = answer.get()
        except BaseException:
            if stop is not None:
                stop(ended)
            raise
        if failure is None:
            return result
        try:
            raise failure
        finally:
            del failure  # which refers to this frame

    return called


def _forget(responses: Any) -> None:
    """Drop what may be the last reference to responses outside the main thread."""
    here = threading.current_thread() is threading.main_thread()
    if responses is not None and here and not sys.is_finalizing():
        _beside(responses.cancel)


class _Releases:
    """Tells servers which responses were read, beside the main thread.

    In place of PySpark's pool, which starts a thread for every query, and whose locks an interrupt
    may break: then `RuntimeError` is raised in place of the interrupt, or the next query waits.
    """

    def submit(self, release: Callable[[], None]) -> Future[None]:
        told: Future[None] = Future()

        def tell() -> None:
            try:
                release()
            finally:
                told.set_result(None)

        _beside(tell)
        return told


# A property of PySpark's, of every client in this process.
ExecutePlanResponseReattachableIterator._release_thread_pool = _Releases()  # type: ignore[assignment]


# What threads that wait for work take it from. Appending and popping are single steps, so that any
# thread, and a handler of a signal, may make calls.
_IDLE: list[SimpleQueue[Callable[[], object]]] = []


def _beside(work: Callable[[], object]) -> None:
    """Have a thread that has nothing to do, or a new one, do some work."""
    try:
        waiting = _IDLE.pop()
    except IndexError:
        waiting = SimpleQueue()
        # Not by `threading`, which waits until it runs, by locks that an interrupt may break. Nor
        # does what a server leaves unanswered keep the process from ending.
        _thread.start_new_thread(_help, (waiting,))
    waiting.put(work)


def _help(waiting: SimpleQueue[Callable[[], object]]) -> None:
    """Do work that comes, one after another. What fails ends the thread, which tells of it."""
    while True:
        work = waiting.get()
        work()
        del work  # nothing is kept alive until the next call
        _IDLE.append(waiting)
