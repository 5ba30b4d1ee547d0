"""Streams: micro-batches that each become one version, exactly once."""

from inferlake.stream.options import StreamOptions, Trigger
from inferlake.stream.report import BatchReport, StreamReport
from inferlake.stream.running import RunningStream
from inferlake.stream.start import Stream

__all__ = ["BatchReport", "RunningStream", "Stream", "StreamOptions", "StreamReport", "Trigger"]
