"""Connections to Spark Connect servers that an interrupt does not break. Imported with PySpark.

Python raises KeyboardInterrupt, and whatever else a handler of a signal raises, between any two
steps of the main thread. Where that is inside gRPC, a lock of the channel may stay taken, and every
later call waits for it for ever. So other threads call gRPC for the main one, which only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import grpc
from grpc.experimental import ChannelOptions
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto import InterruptRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

# So many seconds a server has for stopping a query, before whoever interrupted it goes on.
_PATIENCE = 5


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
        self._stub, self._request, self._how = stub, request, how
        self._responses: Any = _apart(begin, self._stop)(request, **how)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return _apart(self._responses.__next__, self._stop)()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._responses, name)

    def __del__(self) -> None:
        # gRPC takes locks when it forgets a query, too.
        _forget(self.__dict__.pop("_responses", None))

    def _stop(self, ended: Callable[[float], object]) -> None:
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
        # A server that has gone writes no more; one that does not answer cannot be helped.
        with suppress(grpc.RpcError, Empty):
            _apart(self._stub.Interrupt)(interrupt, timeout=_PATIENCE, **self._how)
            ended(_PATIENCE)


def _apart(
    call: Callable[..., Any], stop: Callable[[Callable[[float], object]], None] | None = None
) -> Callable[..., Any]:
    """Return a function that does `call` outside the main thread, for some 50 microseconds more.

    If the main thread is interrupted meanwhile, `stop` is called, with a function that waits so
    many seconds for the call to end, or raises `Empty`.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return call(*args, **kwargs)  # no handler of a signal runs here
        helper = _helper()
        answer: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        over: SimpleQueue[None] = SimpleQueue()
        try:
            helper.put((lambda: call(*args, **kwargs), answer, over))
            result, failure = answer.get()
        except BaseException:
            helper.put(None)  # nobody knows when it will be free
            if stop is not None:
                stop(lambda seconds: over.get(timeout=seconds))
            raise
        _IDLE.append(helper)
        if failure is None:
            return result
        try:
            raise failure
        finally:
            del failure  # which refers to this frame

    return called


def _forget(responses: Any) -> None:
    """Drop what may be the last reference to responses outside the main thread."""
    if responses is None or threading.current_thread() is not threading.main_thread():
        return
    with suppress(RuntimeError):  # no thread starts any more when Python ends
        helper = _helper()
        helper.put((responses.cancel, SimpleQueue(), SimpleQueue()))
        _IDLE.append(helper)


# What threads that wait for work take it from. The main thread alone uses this: appending and
# popping are single steps, so that a handler, too, may make calls.
_IDLE: list[SimpleQueue[Any]] = []


def _helper() -> SimpleQueue[Any]:
    """Return where a thread that has nothing to do takes work from: a call, and who hears of it."""
    if _IDLE:
        return _IDLE.pop()
    work: SimpleQueue[Any] = SimpleQueue()
    # A daemon: what a server does not answer must not keep the process from ending.
    threading.Thread(target=_help, args=(work,), name="inferlake-connect", daemon=True).start()
    return work


def _help(work: SimpleQueue[Any]) -> None:
    for call, answer, over in iter(work.get, None):
        try:
            answer.put((call(), None))
        except BaseException as exc:  # whoever waits for it raises it
            answer.put((None, exc))
        over.put(None)
        del call, answer, over  # nothing is kept alive until the next call
