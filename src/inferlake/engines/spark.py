"""Apache Spark in a JVM beside this process."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferlake.engines.connect import STARTING
from inferlake.engines.machine import cores, machine_memory, require_java
from inferlake.engines.quiet import first_line, quiet_imports
from inferlake.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Throughput matters here, pauses do not. Spark's generated methods can be longer than what the JVM
# compiles by default. And most of what it would compile with all its art is the planning of a few
# jobs, not the work on their rows, which reaches any threshold at once: with those of the JVM a
# third of a load's CPU time went to its compilers.
_JVM_OPTIONS = (
    "-XX:+UseParallelGC",
    "-XX:-DontCompileHugeMethods",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


def local_settings() -> dict[str, str]:
    """Return the settings of a local Spark, sized to this machine."""
    # Half the machine: the rest is for Python workers, Sail and the page cache. Who sets the
    # variable of Spark's own knows better.
    heap = os.environ.get("SPARK_DRIVER_MEMORY") or f"{max(1, machine_memory() // 2 // 2**30)}g"
    return {
        "spark.driver.memory": heap,
        "spark.driver.extraJavaOptions": " ".join(_JVM_OPTIONS),
        # 200 tasks by default: on a few cores that is all scheduling and no work.
        "spark.sql.shuffle.partitions": str(2 * cores()),
        # Ids are uniform hashes, so hash joins of ids never meet skew and need no sort.
        "spark.sql.join.preferSortMergeJoin": "false",
        # Beyond 32 files Spark looks each up in a task of its own, for every frame made of them.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # Everything is local: there is nobody to show a page to, and its port may be taken.
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
    }


# Settings that every Spark session of ours has, wherever it runs.
COMMON_SETTINGS = {
    "spark.app.name": "inferlake",
    # The progress bar of Spark and ours would overwrite each other.
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Code that is alike but for its place in a plan is then one class, compiled once.
    "spark.sql.codegen.useIdInClassName": "false",
    # Repetitions of ids are many, and told apart in maps of Spark's fast kind as long as they fit.
    "spark.sql.codegen.aggregate.map.twolevel.partialOnly": "false",
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "20",
    # Checksum files beside ours would be taken for output; Parquet has checksums of its own.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Empty success markers would be one more file to list, and to vacuum.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@cache
def spark_session(master: str | None, conf: tuple[tuple[str, str], ...]) -> SparkSession:
    """Start a JVM, or join the session that this process already has."""
    require_java()
    with quiet_imports():
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.dataframe import DataFrame as _  # noqa: F401  (loaded quietly)
    active = SparkSession.getActiveSession()
    if active is not None and master is None and not conf:
        return active
    if master is not None:
        _require_master(master)
    local = master is None or master.startswith("local")
    settings = {**COMMON_SETTINGS, **(local_settings() if local else {}), **dict(conf)}
    builder: Any = SparkSession.builder.master(master or "local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    # Spark would start whatever `python3` it finds; workers need the packages of this one.
    os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    log = Path(tempfile.gettempdir()) / f"inferlake-spark-{os.getpid()}.log"
    try:
        with _child_errors_to(log), quiet_imports():
            session = builder.getOrCreate()
    except Exception as exc:
        raise EngineError(_start_failure(exc, log)) from exc
    log.unlink(missing_ok=True)  # the JVM goes on writing where nobody needs to clean up
    session.sparkContext.setLogLevel("OFF")
    return session


def _require_master(master: str) -> None:
    """Raise unless it is a master that Spark knows; if one of its own, that answers or soon does.

    Spark tells the first by the end of its JVM, and asks the second for a minute and a half.
    """
    if not _MASTER.fullmatch(master):
        raise EngineError(
            f"{master}: no Spark master; write local[4], spark://host:7077, yarn, k8s://host:port,"
            " or sc://host:15002 for Spark Connect"
        )
    if not master.startswith("spark://"):
        return
    hosts = master.removeprefix("spark://").split(",")
    if not all(map(_ADDRESS.fullmatch, hosts)):
        raise EngineError(f"{master}: no address of a Spark master, such as spark://host:7077")
    until = time.monotonic() + STARTING
    while not any(map(_takes_calls, hosts)):
        if time.monotonic() > until:
            raise EngineError(
                f"no Spark master answers at {master} (waited {STARTING} s): start it, or correct"
                " the host and the port, which is 7077 unless it was told another"
            )
        time.sleep(0.5)


_MASTER = re.compile(r"local(\[.+\]|-cluster\[.+\])?|spark://.*|yarn|k8s://.+")
_ADDRESS = re.compile(r"[^\s/:]+:\d{1,5}|\[[^\s/]+\]:\d{1,5}")


def _takes_calls(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, ValueError, OverflowError):  # a host or a port that cannot be, too
        return False
    return True


def _start_failure(exc: Exception, log: Path) -> str:
    """Return in one line why Spark did not start: what it raised, and the last cause it logged."""
    words = log.read_text(errors="replace").splitlines() if log.is_file() else []
    causes = (line for line in words if _FAILURE.search(line) and not _STACK.match(line))
    logged = [cause for cause in causes if cause.strip() not in str(exc)][-1:]
    told = [first_line(exc), *(line.strip().removeprefix("Caused by: ") for line in logged)]
    return f"Spark could not start: {'; '.join(told)}; its own words are in {log}"


_FAILURE = re.compile("Error|Exception")

# A line of a stack of the JVM.
_STACK = re.compile(r"\s*(at |\.\.\. )")


@contextmanager
def _child_errors_to(log: Path) -> Iterator[None]:
    """Let child processes started inside the block write their standard error to `log`.

    The JVM and its Python workers inherit the descriptor for good, so that Spark's messages never
    reach the screen, while this process gets its own standard error back.
    """
    saved = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)
