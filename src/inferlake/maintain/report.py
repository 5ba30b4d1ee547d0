"""What a piece of work did, how long each phase took, and where it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inferlake.evaluate.report import Contradiction, Round
from inferlake.input import Bad
from inferlake.progress import counted, one_line


@dataclass(frozen=True)
class LoadReport:
    """The account of one load.

    `read` counts statements in the input, with repetitions; `added` the facts that were new. If
    `repeated`, the batch had been applied before and this call changed nothing.
    """

    version: int
    read: int
    added: int
    files: int
    engine: str
    seconds: Mapping[str, float]
    bad_count: int = 0
    bad: tuple[Bad, ...] = ()
    graphs_dropped: int = 0
    repeated: bool = False
    files_read: int = 0
    files_stored: int = 0
    rules: tuple[str, ...] = ()
    derived: int = 0
    # What had been derived under other rules, and was replaced.
    withdrawn: int = 0
    rounds: tuple[Round, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    more_contradictions: bool = False
    peak_memory: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return {"operation": "load", **asdict(self), "bad": [asdict(bad) for bad in self.bad]}

    def __str__(self) -> str:
        if self.repeated:
            return f"batch already applied; still version {self.version}"
        new, files = counted(self.added, "new triple"), counted(self.files, "file")
        parts = [f"loaded {new} of {self.read:,} read from {files}"]
        if self.bad_count:
            parts.append(f"skipped {counted(self.bad_count, 'bad statement')}")
        if self.graphs_dropped:
            parts.append(f"dropped the names of {counted(self.graphs_dropped, 'graph')}")
        if self.withdrawn:
            parts.append(f"withdrew {self.withdrawn:,} that other rules had derived")
        if self.rules:
            rounds = counted(len(self.rounds), "round")
            parts.append(f"derived {self.derived:,} by {', '.join(self.rules)} in {rounds}")
        if self.contradictions:
            more = "at least " if self.more_contradictions else ""
            parts.append(more + counted(len(self.contradictions), "contradiction"))
        if self.peak_memory:
            parts.append(f"peak memory {self.peak_memory / 2**30:.1f} GB")
        parts.append(f"version {self.version}")
        return one_line("; ".join(parts), self.seconds, self.engine, triples=self.read)
