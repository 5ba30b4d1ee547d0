"""Sail inside this process: a server of Spark Connect that starts in milliseconds."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from inferlake.engines.connect import connect
from inferlake.engines.machine import machine_memory
from inferlake.engines.quiet import quiet_imports
from inferlake.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_sail() -> tuple[Any, str]:
    """Start a Sail server in this process, and return it with its address."""
    settings = {
        # Sail logs every session to standard error by default.
        "RUST_LOG": "error",
        # Past this, sorts and aggregations spill to disk instead of being killed by the kernel.
        "SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair",
        "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE": str(machine_memory() * 6 // 10),
        # A file is looked up for a few ids at a time: evaluate the filter while decoding. Not
        # together with skipping pages: arrow-rs then fails now and then (its issues 9239, 10733).
        "SAIL_PARQUET__PUSHDOWN_FILTERS": "true",
        "SAIL_PARQUET__ENABLE_PAGE_INDEX": "false",
        # Nor with its cache of what filters read, which asks for pages that were not loaded: so the
        # closure of LUBM(10) under owl2rl failed every time.
        "SAIL_PARQUET__MAX_PREDICATE_CACHE_SIZE": "0",
        # Small row groups let min/max statistics skip most of a sorted file.
        "SAIL_PARQUET__MAX_ROW_GROUP_SIZE": "131072",
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    with quiet_imports():
        from pysail.spark import SparkConnectServer

        try:
            server = SparkConnectServer("127.0.0.1", 0)
            server.start(background=True)
        except RuntimeError as exc:
            raise EngineError(f"Sail could not start in this process: {exc}") from exc
    host, port = server.listening_address or ("127.0.0.1", 0)
    return server, f"sc://{host}:{port}"


def sail_session() -> SparkSession:
    """Return a session on the Sail server of this process, on a new one if that has stopped."""
    session: Any = _started_sail()
    if not _listens(session._inferlake_server):
        _started_sail.cache_clear()
        session = _started_sail()
    return session


def is_sail_here(session: object) -> bool:
    """Tell whether a session is the one on the Sail server of this process."""
    return _started_sail.cache_info().currsize > 0 and session is _started_sail()


def _listens(server: Any) -> bool:
    """Tell whether a server still takes calls: by itself it does not say that it has stopped."""
    address = server.listening_address
    if address is None:  # it was told to
        return False
    try:
        socket.create_connection(address).close()
    except OSError:
        return False
    return True


@cache
def _started_sail() -> SparkSession:
    """Start the Sail server of this process and return a session on it."""
    with _interrupts_kept_from_sail():
        server, address = start_sail()
    session: Any = connect(address)
    session.client.set_retry_policies([_soon_given_up()])
    # The server stops when the object is collected: keep it as long as its session.
    session._inferlake_server = server
    return session


# So many seconds Sail has for putting its handler in place; it takes two milliseconds, and does so
# once in a process.
_HANDLING = 0.5


@contextmanager
def _interrupts_kept_from_sail() -> Iterator[None]:
    """Let Ctrl-C interrupt what Python does, and not end the server that is started meanwhile.

    Soon after it has started Sail puts a handler before Python's, at which it stops for good: in a
    notebook whose cell was interrupted, no other would find it. Only the main thread may set
    handlers, as it does when the server starts there; elsewhere a stopped server is replaced when
    the next work comes.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = _interrupt_handler()
    try:
        yield
    finally:
        until = time.monotonic() + _HANDLING
        while _interrupt_handler() == ours and time.monotonic() < until:
            time.sleep(0.001)
        signal.signal(signal.SIGINT, handler)


def _interrupt_handler() -> int | None:
    """Return the address of what the system calls at an interrupt, which Python does not tell."""
    # By POSIX the handler is in this structure; with glibc, musl and macOS it comes first.
    action = ctypes.create_string_buffer(1024)
    ctypes.CDLL(None).sigaction(signal.SIGINT, None, action)
    return ctypes.c_void_p.from_buffer(action).value


def _soon_given_up() -> Any:
    """Return how often to call a server of this process again: it answers, or has stopped."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return DefaultPolicy(max_retries=3, max_backoff=1000)
