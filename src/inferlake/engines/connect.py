"""Sessions on servers of Spark Connect: Sail in this process, or Spark elsewhere."""

from __future__ import annotations

import atexit
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from inferlake.engines.quiet import first_line, quiet_imports
from inferlake.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# So many seconds a server that runs elsewhere has to take our first call.
STARTING = 20


def connect(url: str) -> SparkSession:
    """Open a Spark Connect session, without asking whether a server is there.

    The process's session on a JVM, if it has one, stays its default. An interrupt of the main
    thread stops the query that it waits for; the session and the frames on it stay of use.
    """
    # The process may start a JVM later. In the child that becomes it, gRPC's handlers would now and
    # then abort, and have nothing to do there: it only replaces itself.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    with quiet_imports():
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        from inferlake.engines.channel import Builder

        try:
            session = ConnectSession.builder.channelBuilder(Builder(url)).create()
        except Exception as exc:
            raise EngineError(
                f"{url}: no address of a Spark Connect server, such as sc://host:15002:"
                f" {first_line(exc)}"
            ) from exc
    _ask_nothing_at_exit(session.client)
    return session  # type: ignore[return-value]


def _ask_nothing_at_exit(client: Any) -> None:
    """Let the process end without a call to the server, which may be gone by then.

    PySpark would have it forget machine learning models, of which there are none, and try for ten
    minutes to reach a server that an interrupt has ended. Who wants sessions released at exit has
    told PySpark so, and knows that their server stays.
    """
    if not client._release_session_on_exit:
        atexit.unregister(client._on_exit)


@cache
def server_session(url: str) -> SparkSession:
    """Open a session on a server that runs elsewhere, which may just be starting."""
    from inferlake.engines.channel import answers

    session = connect(url)
    if not answers(session, STARTING):
        session.client.close()
        raise EngineError(
            f"no Spark Connect server answers at {url} (waited {STARTING} s): start it, or correct"
            " the host and the port, which is 15002 unless it was told another"
        )
    return session
