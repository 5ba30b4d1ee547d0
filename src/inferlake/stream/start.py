"""Starting a stream: its source, its state, and the query or the pipe that drives it."""

from __future__ import annotations

import sys
import uuid
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import IO, Any

from inferlake.errors import InputError
from inferlake.stream.options import StreamOptions
from inferlake.stream.pipe import PipeStream
from inferlake.stream.running import RunningStream, SparkStream
from inferlake.stream.sources import Lines, SparkSource, checked, folder, kafka
from inferlake.stream.state import State
from inferlake.stream.writer import Listener, Target, Writer

PIPE = "-"


@dataclass(frozen=True)
class Stream:
    """A stream that has not started: a source, where it goes, and how.

    The source is a folder, `kafka://host:port/topic`, `-` for standard input, or a streaming
    DataFrame with a column of lines.
    """

    source: Any
    target: Target
    options: StreamOptions
    column: str = "value"

    def start(
        self, *, listener: Listener | None = None, pipe: IO[bytes] | None = None
    ) -> RunningStream:
        """Begin; `listener` hears of each batch, `pipe` stands for standard input."""
        self.target.sessions.for_reading()  # now, so that whoever waits has interrupts for himself
        if self.source == PIPE:
            return self._piped(pipe or sys.stdin.buffer, listener)
        source = self._spark_source()
        session = self._session
        frame = source.frame(session)
        state = State.open(
            self.target.store,
            self.options.name or source.short_name,
            self.options.checkpoint,
            source.description,
        )
        writer = Writer(self.target, state, self.options, listener=listener)
        writer.keep_time()
        return SparkStream(writer, source, frame)

    @property
    def _session(self) -> Any:
        if hasattr(self.source, "sparkSession"):
            return self.source.sparkSession
        return self.target.sessions.for_streaming().session

    def _spark_source(self) -> SparkSource:
        if not isinstance(self.source, str | PurePath):
            return self._timed(checked(self.source, self.column))
        text = str(self.source)
        if text.startswith("kafka://"):
            return self._timed(kafka(self._session, text, self.options.max_lines))
        self._refuse_time_column()
        if "://" in text and text.split("://")[0] not in ("file", "s3", "gs", "abfss", "hdfs"):
            raise InputError(
                f"{text}: no source of a stream; give a folder, kafka://host:port/topic, or -"
            )
        return folder(text, self.options.max_files)

    def _timed(self, lines: Lines) -> Lines:
        options = self.options
        return replace(lines, timed=options.window is not None, time_column=options.time_column)

    def _refuse_time_column(self) -> None:
        if self.options.time_column is not None:
            raise InputError(
                f"{self.source}: has no column {self.options.time_column}; a time_column is one of"
                " a streaming DataFrame, and other sources have the times of arrival"
            )

    def _piped(self, pipe: IO[bytes], listener: Listener | None) -> RunningStream:
        self._refuse_time_column()
        run = uuid.uuid4().hex[:8]
        name = self.options.name or f"stdin-{run}"
        state = State.open(self.target.store, name, self.options.checkpoint, PIPE, run=run)
        writer = Writer(self.target, state, self.options, replayable=False, listener=listener)
        writer.keep_time()
        return PipeStream(writer, pipe)
