"""Where a stream comes from: a folder, a topic of Kafka, or any streaming DataFrame of lines.

A source gives Structured Streaming a frame to plan batches of, and makes a `Batch` of each. For a
folder that is a frame of file names: the files themselves are read by whichever engine fits the
batch. Lines are written to a spool first, because the frame of a batch lives on Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import xxhash

from inferlake import parquet
from inferlake.errors import EngineError, InputError
from inferlake.input import CHANGE_FORMATS, COMPRESSIONS, FORMATS, Bad, arrived, milliseconds_sql
from inferlake.paths import Place, absolute, place
from inferlake.session import is_connected, is_engine_failure
from inferlake.stream.batch import Batch
from inferlake.stream.due import wall_clock
from inferlake.stream.spool import Message, spooled
from inferlake.stream.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANY_AGE = "36500d"
_FILE_COLUMNS = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"

# Beside pyspark, whose version it must have.
_KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"


class SparkSource(Protocol):
    """What Structured Streaming reads."""

    @property
    def description(self) -> str | None:
        """What tells this source from others in a checkpoint, if anything does."""
        ...

    @property
    def short_name(self) -> str:
        """A name for the stream, where none is given."""
        ...

    def frame(self, session: SparkSession) -> DataFrame:
        """Return the streaming frame to plan batches of."""
        ...

    def batch(self, number: int, frame: DataFrame, state: State) -> Batch:
        """Return the batch whose rows are `frame`."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder that receives files, each whole when it appears."""

    at: Place
    max_files: int | None = None

    @property
    def description(self) -> str:
        return self.at.address

    @property
    def short_name(self) -> str:
        return _short(self.at.address.rsplit("/", 1)[-1], self.at.address)

    def frame(self, session: SparkSession) -> DataFrame:
        found = self.at.info().type
        if found == pafs.FileType.File:
            raise InputError(
                f"{self.at.address}: a file; a stream follows a folder. Load it, or pipe it in: -"
            )
        if found != pafs.FileType.Directory:
            raise InputError(f"{self.at.address}: no such folder; make it, or check the path")
        known = [s.removeprefix(".") for s in (*FORMATS, *CHANGE_FORMATS)]
        suffixes = ",".join([*known, *map(str.upper, known)])
        compressed = ",".join([*COMPRESSIONS, *map(str.upper, COMPRESSIONS)])
        reader = session.readStream.format("binaryFile").schema(_FILE_COLUMNS)
        # A file that is moved here keeps its time: Spark would pass over one older than a week.
        reader = reader.option("maxFileAge", _ANY_AGE)
        reader = reader.option("pathGlobFilter", f"*.{{{suffixes}}}{{,{compressed}}}")
        if self.max_files is not None:
            reader = reader.option("maxFilesPerTrigger", self.max_files)
        # Without the content, which nobody then reads.
        return reader.load(self.at.address).select("path", "modificationTime")

    def batch(self, number: int, frame: DataFrame, state: State) -> Batch:
        """Return the files of a batch, in the order of their times and then their names."""
        rows = frame.selectExpr("path", "unix_micros(modificationTime) AS at").collect()
        files, lost = [], []
        for row in sorted(rows, key=lambda row: (row["at"], row.path)):
            address = _address(row.path)
            try:
                files.append(arrived(address))
            except InputError as exc:
                lost.append(Bad(address, None, None, None, str(exc)))
        oldest = min((row["at"] for row in rows), default=None)
        return Batch(
            number, tuple(files), tuple(lost), None if oldest is None else oldest / 1_000_000
        )


@dataclass(frozen=True)
class Lines:
    """A streaming frame with a column of N-Triples or RDF Patch lines, of the caller's.

    Rows that have a partition and an offset, as Kafka's have, count in that order; others in the
    order in which Spark hands them over. If they are `timed`, each has the time of its event: in
    the `time_column`, or of its arrival, which Kafka tells, and else is when its batch is taken.
    """

    given: DataFrame = field(compare=False)
    column: str = "value"
    description: str | None = None
    short_name: str = "stream"
    timed: bool = False
    time_column: str | None = None

    def frame(self, session: SparkSession) -> DataFrame:
        columns = [f"CAST({_quoted(self.column)} AS BINARY) AS value"]
        if self._ordered:
            columns += ["INT(partition) AS part", "BIGINT(offset) AS place"]
        if dict(self.given.dtypes).get("timestamp") == "timestamp":
            columns.append("unix_micros(timestamp) AS at")
        if self.timed and (self.time_column is not None or self._is_kafkas):
            time_column = self.time_column or "timestamp"
            kinds = dict(self.given.dtypes)
            columns.append(f"{milliseconds_sql(time_column, kinds)} AS event")
        return self.given.selectExpr(*columns)

    @property
    def _ordered(self) -> bool:
        return {"partition", "offset"} <= set(self.given.columns)

    @property
    def _is_kafkas(self) -> bool:
        return self._ordered and dict(self.given.dtypes).get("timestamp") == "timestamp"

    def batch(self, number: int, frame: DataFrame, state: State) -> Batch:
        folder = state.spool.child(str(number))
        folder.remove()
        ordered = frame.orderBy("part", "place") if self._ordered else frame
        rows = folder.child("rows")
        files = parquet.write(ordered, rows, how=parquet.PASSING)
        taken = wall_clock() if self.timed and self.time_column is None else None
        messages = _messages(rows, sorted(file.path for file in files), taken)
        return spooled(
            folder.child("lines"),
            number,
            messages,
            source=self.description or state.name,
            owner=state.id,
            timed=self.timed,
        )


def kafka(session: SparkSession, url: str, max_lines: int) -> Lines:
    """Return the lines of a topic, from its beginning, as `kafka://host:port[,host:port]/topic`."""
    found = re.fullmatch(r"kafka://([^/\s]+)/([^/\s]+)", url)
    if not found:
        raise InputError(f"{url}: write kafka://host:port/topic, brokers divided by commas")
    reader = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", found[1])
        .option("subscribe", found[2])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", max_lines)
    )
    try:
        frame = reader.load()
    except Exception as exc:
        if not is_engine_failure(exc):
            raise
        package = f"{_KAFKA_PACKAGE}:{session.version}"
        raise EngineError(
            f"{url}: Spark has no connector for Kafka ({_first_line(exc)}); start with"
            f" --conf spark.jars.packages={package}, or in Python conf={{…}} of inferlake.open;"
            " if Maven Central does not have that version, the one before will do"
        ) from exc
    return Lines(frame, "value", url, _short(found[2], url))


def folder(path: str, max_files: int | None) -> Folder:
    """Return the folder at `path` as a source."""
    return Folder(place(absolute(path)), max_files)


def checked(frame: Any, column: str) -> Lines:
    """Return a caller's frame as a source; raise `InputError` if it cannot be one."""
    if not hasattr(frame, "isStreaming"):
        raise InputError(
            f"a {type(frame).__name__} is no stream: give a folder, kafka://host:port/topic, or a"
            " streaming DataFrame (spark.readStream…)"
        )
    if is_connected(frame.sparkSession):
        raise InputError(
            "the DataFrame lives on Sail or Spark Connect, which cannot hand batches to this"
            " process: make it with a Spark session of this process, spark.readStream…"
        )
    if not frame.isStreaming:
        raise InputError(
            "the DataFrame is not a stream: make it with spark.readStream, or give it to kb.load"
        )
    if column not in frame.columns:
        known = ", ".join(frame.columns)
        raise InputError(f"the DataFrame has no column {column}; it has {known}: name one of them")
    kind = dict(frame.dtypes)[column]
    if kind not in ("string", "binary"):
        raise InputError(f"the DataFrame's column {column} is {kind}, not lines of text")
    return Lines(frame, column)


def _messages(rows: Place, paths: list[str], taken: int | None) -> Iterator[Message]:
    """Yield the rows of a batch, from files whose names are in the order of the rows.

    If events are of the times of their arrival, none came later than the batch was `taken`.
    """
    seen = 0
    for path in paths:
        with rows.filesystem.open_input_file(rows.child(path).path) as source:
            for some in pq.ParquetFile(source).iter_batches():
                for row in some.to_pylist():
                    if row["value"] is not None:
                        at, event = row.get("at"), row.get("event")
                        if taken is not None:
                            event = taken if event is None else min(event, taken)
                        yield Message(
                            row["value"],
                            row.get("place", seen),
                            row.get("part"),
                            None if at is None else at / 1_000_000,
                            event,
                        )
                    seen += 1


def _address(path: str) -> str:
    """Return where we find what Spark calls `path`."""
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path.replace("s3a://", "s3://", 1)


def _short(words: str, whole: str) -> str:
    """Return a name for a folder: some words, and what tells it from others with the same."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", words).strip("-.") or "stream"
    return f"{plain[:40]}-{xxhash.xxh64_hexdigest(whole.encode())[:8]}"


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _first_line(exc: Exception) -> str:
    return (str(exc).splitlines() or [""])[0]
