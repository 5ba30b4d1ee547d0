"""The only place that makes sessions: Apache Spark, and Sail inside this process.

Every plan of Inferlake is PySpark, and runs on either. Starting a JVM takes seconds, so it starts
when the first plan needs it and not before; Sail starts in a fraction of a second.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inferlake.errors import EngineError, JavaMissing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EngineName = Literal["auto", "spark", "sail"]
ENGINES: tuple[EngineName, ...] = ("auto", "spark", "sail")

# So many seconds a server that runs elsewhere has to take our first call.
_STARTING = 20

# Spark 4 is compiled for Java 17.
OLDEST_JAVA = 17

JAVA_REMEDY = (
    "install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17) or point JAVA_HOME at it; or use --engine sail, which needs no Java"
)


@dataclass(frozen=True)
class Engine:
    """A session and the name of the engine behind it. Small and cheap to pass around."""

    name: Literal["spark", "sail"]
    session: SparkSession

    def sql(self, text: str, **frames: DataFrame) -> DataFrame:
        """Plan `text`, a query, in which `{name}` stands for the frame given as `name`."""
        if self._connected:
            return self._planned(text, frames)
        # PySpark's annotations forget that frames may be given by name.
        return self.session.sql(text, **frames)  # pyright: ignore[reportArgumentType]

    @property
    def _connected(self) -> bool:
        """Whether the session speaks Spark Connect, as every one on Sail does."""
        return is_connected(self.session)

    def _planned(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Do what `session.sql` does, without asking the server whether `text` is a command.

        That is a round trip for each query, and a small change has a dozen of them.
        """
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
        from pyspark.sql.connect.plan import SQL, SubqueryAlias
        from pyspark.sql.connect.sql_formatter import SQLStringFormatter

        session: Any = self.session
        formatter = SQLStringFormatter(session)
        query = formatter.format(text, **frames)
        views = [SubqueryAlias(frame._plan, name) for frame, name in formatter._temp_views]
        return ConnectFrame(SQL(query, [], {}, views), session)

    def empty(self, columns: str) -> DataFrame:
        """Return a frame without rows, of columns such as `id BIGINT, term STRING`.

        As SQL, because an empty list of rows would start a Python worker on Spark.
        """
        pairs = (column.split() for column in columns.split(", "))
        nulls = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in pairs)
        return self.sql(f"SELECT {nulls} WHERE FALSE")


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, with repetitions.

    By halves: a plan as deep as it has frames is more than a protocol buffer may nest.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return union(frames[:middle]).unionAll(union(frames[middle:]))


@dataclass
class Sessions:
    """Opens each engine once, when first asked for, and decides which one a piece of work gets."""

    engine: EngineName = "auto"
    given: SparkSession | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    # Gives a session on Sail, where that is not the one in this process.
    sail: Callable[[], SparkSession] | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise EngineError(f"no engine '{self.engine}': choose one of {', '.join(ENGINES)}")
        if self.engine == "sail" and (self.given is not None or self.master is not None):
            raise EngineError(
                "engine sail runs in this process, and a Spark master or session was given too:"
                " leave one of them out"
            )

    def for_change(self, size: int) -> Engine:
        """Return the engine for a change that reads about `size` bytes of text.

        Sail does the same plan several times faster than Spark while the work fits in memory;
        Spark spills, and spreads over machines. So the line between them is a share of memory.
        """
        if self.engine == "sail" or (self.engine == "auto" and self._fits_sail(size)):
            return self._sail
        return self._spark

    def of(self, frame: DataFrame) -> Engine:
        """Return the engine that `frame` lives on: frames of two sessions cannot meet."""
        session = frame.sparkSession
        started = _started_sail.cache_info().currsize > 0
        return Engine("sail" if started and session is _started_sail() else "spark", session)

    def for_reading(self) -> Engine:
        """Return the engine for look-ups and frames handed to the caller."""
        return self.for_change(0)

    def for_streaming(self) -> Engine:
        """Return the engine of Structured Streaming: Apache Spark in this process, never Sail.

        It plans the batches; what a batch does may run elsewhere.
        """
        if self.engine == "sail":
            raise EngineError(
                "Structured Streaming needs Apache Spark, and engine sail was asked for: leave it"
                " out (batches that fit run on Sail all the same), or pipe lines in with -"
            )
        engine = self._spark
        if is_connected(engine.session):
            raise EngineError(
                "Spark Connect cannot hand the batches of a stream to this process: name a master"
                " such as local[*] or spark://…"
            )
        return engine

    def _fits_sail(self, size: int) -> bool:
        if self.given is not None or self.master is not None:
            return False  # who names a cluster or brings a session wants the work done there
        return size <= machine_memory() // 4 or not has_java()

    @property
    def _sail(self) -> Engine:
        return Engine("sail", self.sail() if self.sail else _sail_session())

    @property
    def _spark(self) -> Engine:
        if self.given is not None:
            return Engine("spark", self.given)
        if self.master is not None and self.master.startswith("sc://"):
            return Engine("spark", _connect_session(self.master))
        return Engine("spark", _spark_session(self.master, tuple(sorted(self.conf.items()))))


# So many rows of ids go to every worker, rather than that all others move to meet them.
_BROADCAST = 1_000_000


def broadcast_sql(alias: str, rows: int | None) -> str:
    """Return a hint, for behind SELECT, that a side of a join has few rows, if it has.

    Spark would move the other side as well, however large it is; Sail sees the sizes of files.
    """
    return f"/*+ BROADCAST({alias}) */ " if rows is not None and rows <= _BROADCAST else ""


def is_connected(session: object) -> bool:
    """Tell whether a session speaks Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def is_engine_failure(exc: Exception) -> bool:
    """Tell an engine's failure from a mistake of ours, which must keep its own traceback."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(exc, PySparkException | Py4JError)


def machine_memory() -> int:
    """Return the memory in bytes that this machine, or the container around it, has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(total, int(text)) if text.isdigit() else total


def peak_memory() -> int:
    """Return the largest resident size in bytes of this process and of its children, added up.

    That is what Sail, a local JVM and its Python workers took; of a cluster nothing is known here,
    and where there is no /proc the answer is 0.
    """
    me = Path("/proc/self")
    if not me.exists():
        return 0
    children = [Path("/proc", pid) for pid in _descendants(me.resolve().name)]
    return sum(map(_high_water, [me, *children]))


def resident_memory(pid: int) -> int:
    """Return the bytes of memory that a process has now; 0 where nothing tells."""
    words = _words(Path("/proc", str(pid), "status"))
    return int(words[words.index("VmRSS:") + 1]) * 1024 if "VmRSS:" in words else 0


def _descendants(pid: str) -> list[str]:
    tasks = Path("/proc", pid, "task").glob("*/children")
    direct = [child for task in tasks for child in _words(task)]
    return direct + [other for child in direct for other in _descendants(child)]


def _high_water(process: Path) -> int:
    words = _words(process / "status")
    return int(words[words.index("VmHWM:") + 1]) * 1024 if "VmHWM:" in words else 0


def _words(file: Path) -> list[str]:
    """Return the words in a file of /proc, none if its thread or process has just ended."""
    try:
        return file.read_text().split()
    except OSError:
        return []


def cores() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- Sail ---------------------------------------------------------------------------------------


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
    with _quiet_imports():
        from pysail.spark import SparkConnectServer

        try:
            server = SparkConnectServer("127.0.0.1", 0)
            server.start(background=True)
        except RuntimeError as exc:
            raise EngineError(f"Sail could not start in this process: {exc}") from exc
    host, port = server.listening_address or ("127.0.0.1", 0)
    return server, f"sc://{host}:{port}"


def _sail_session() -> SparkSession:
    """Return a session on the Sail server of this process, on a new one if that has stopped."""
    session: Any = _started_sail()
    if not _listens(session._inferlake_server):
        _started_sail.cache_clear()
        session = _started_sail()
    return session


def _listens(server: Any) -> bool:
    """Tell whether a server still takes calls: by itself it does not say that it has stopped."""
    try:
        socket.create_connection(server.listening_address).close()
    except ConnectionError:
        return False
    return True


@cache
def _started_sail() -> SparkSession:
    """Start the Sail server of this process and return a session on it."""
    server, address = start_sail()
    session: Any = connect(address)
    _keep_interrupts_from_sail()
    session.client.set_retry_policies([_soon_given_up()])
    # The server stops when the object is collected: keep it as long as its session.
    session._inferlake_server = server
    return session


def _keep_interrupts_from_sail() -> None:
    """Let Ctrl-C interrupt what Python does, and not end the server beside it.

    Sail has put a handler before Python's, at which it stops for good: in a notebook whose cell was
    interrupted, no other would find it. Only the main thread may set handlers, as it does when the
    server starts there; elsewhere a stopped server is replaced when the next work comes.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def connect(url: str) -> SparkSession:
    """Open a Spark Connect session, without asking whether a server is there.

    The process's session on a JVM, if it has one, stays its default. An interrupt of the main
    thread stops the query that it waits for; the session and the frames on it stay of use.
    """
    # The process may start a JVM later. In the child that becomes it, gRPC's handlers would now and
    # then abort, and have nothing to do there: it only replaces itself.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    with _quiet_imports():
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        from inferlake.connection import Builder

        try:
            session = ConnectSession.builder.channelBuilder(Builder(url)).create()
        except Exception as exc:
            raise EngineError(
                f"{url}: no address of a Spark Connect server, such as sc://host:15002:"
                f" {_first_line(exc)}"
            ) from exc
    _ask_nothing_at_exit(session.client)
    return session  # type: ignore[return-value]


def _soon_given_up() -> Any:
    """Return how often to call a server of this process again: it answers, or has stopped."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    return DefaultPolicy(max_retries=3, max_backoff=1000)


def _ask_nothing_at_exit(client: Any) -> None:
    """Let the process end without a call to the server, which may be gone by then.

    PySpark would have it forget machine learning models, of which there are none, and try for ten
    minutes to reach a server that an interrupt has ended. Who wants sessions released at exit has
    told PySpark so, and knows that their server stays.
    """
    if not client._release_session_on_exit:
        atexit.unregister(client._on_exit)


@cache
def _connect_session(url: str) -> SparkSession:
    """Open a session on a server that runs elsewhere, which may just be starting."""
    from inferlake.connection import answers

    session = connect(url)
    if not answers(session, _STARTING):
        session.client.close()
        raise EngineError(
            f"no Spark Connect server answers at {url} (waited {_STARTING} s): start it, or correct"
            " the host and the port, which is 15002 unless it was told another"
        )
    return session


@contextmanager
def _quiet_imports() -> Iterator[None]:
    """Keep PySpark's warnings about versions of pandas and numpy off the user's screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- Apache Spark -------------------------------------------------------------------------------


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
def _spark_session(master: str | None, conf: tuple[tuple[str, str], ...]) -> SparkSession:
    """Start a JVM, or join the session that this process already has."""
    require_java()
    with _quiet_imports():
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.dataframe import DataFrame as _  # noqa: F401  (loaded quietly)
    active = SparkSession.getActiveSession()
    if active is not None and master is None and not conf:
        return active
    if master is not None and master.startswith("spark://"):
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
        with _child_errors_to(log), _quiet_imports():
            session = builder.getOrCreate()
    except Exception as exc:
        raise EngineError(_start_failure(exc, log)) from exc
    log.unlink(missing_ok=True)  # the JVM goes on writing where nobody needs to clean up
    session.sparkContext.setLogLevel("OFF")
    return session


def _require_master(master: str) -> None:
    """Raise unless one of the hosts of a `spark://` address takes calls, or soon does.

    Spark would go on asking for a minute and a half, and tell it in forty lines.
    """
    hosts = master.removeprefix("spark://").split(",")
    until = time.monotonic() + _STARTING
    while not any(map(_takes_calls, hosts)):
        if time.monotonic() > until:
            raise EngineError(
                f"no Spark master answers at {master} (waited {_STARTING} s): start it, or correct"
                " the host and the port, which is 7077 unless it was told another"
            )
        time.sleep(0.5)


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
    told = [_first_line(exc), *(line.strip().removeprefix("Caused by: ") for line in logged)]
    return f"Spark could not start: {'; '.join(told)}; its own words are in {log}"


_FAILURE = re.compile("Error|Exception")

# A line of a stack of the JVM.
_STACK = re.compile(r"\s*(at |\.\.\. )")


def _first_line(exc: Exception) -> str:
    """Return what an exception says, without the stack of the JVM.

    With py4j that comes second, after the name of what it called.
    """
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    told = next((line[1:].strip() for line in lines[1:2] if line.startswith(":")), "")
    return told or next(iter(lines), type(exc).__name__)


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


def java_command() -> str | None:
    """Return the `java` that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if java.is_file() else None
    return shutil.which("java")


def has_java() -> bool:
    """Tell whether Apache Spark could start here."""
    return java_command() is not None


def require_java() -> None:
    """Raise `JavaMissing`, with the remedy, unless a Java new enough for Spark is there."""
    java = java_command()
    if java is None:
        raise JavaMissing(f"Apache Spark needs Java {OLDEST_JAVA} or newer: {JAVA_REMEDY}")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found and int(found[1]) < OLDEST_JAVA:
        raise JavaMissing(
            f"Apache Spark needs Java {OLDEST_JAVA} or newer, and {java} is {found[1]}:"
            f" {JAVA_REMEDY}"
        )
