"""The only place that hands out sessions: Apache Spark, and Sail inside this process.

Every plan of Inferlake is PySpark, and runs on either. Starting a JVM takes seconds, so it starts
when the first plan needs it and not before; Sail starts in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from inferlake.engines.connect import server_session
from inferlake.engines.machine import has_java, machine_memory
from inferlake.engines.sail import is_sail_here, sail_session
from inferlake.engines.spark import spark_session
from inferlake.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EngineName = Literal["auto", "spark", "sail"]
ENGINES: tuple[EngineName, ...] = ("auto", "spark", "sail")


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
    def is_here(self) -> bool:
        """Whether all its work is done on this machine, so that a folder of it serves them all."""
        if self.name == "sail":
            return True
        return not self._connected and (self.session.sparkContext.master or "").startswith("local")

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
        return Engine("sail" if is_sail_here(session) else "spark", session)

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
        return Engine("sail", self.sail() if self.sail else sail_session())

    @property
    def _spark(self) -> Engine:
        if self.given is not None:
            return Engine("spark", self.given)
        if self.master is not None and self.master.startswith("sc://"):
            return Engine("spark", server_session(self.master))
        return Engine("spark", spark_session(self.master, tuple(sorted(self.conf.items()))))


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
