"""What a piece of work did, how long each phase took, and where it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inferlake.evaluate.report import Contradiction, Round
from inferlake.input import Bad
from inferlake.progress import one_line


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
        parts = [
            f"loaded {self.added:,} new triples of {self.read:,} read from {self.files:,} files"
        ]
        if self.bad_count:
            parts.append(f"skipped {self.bad_count:,} bad statements")
        if self.graphs_dropped:
            parts.append(f"dropped the names of {self.graphs_dropped:,} graphs")
        if self.rules:
            rounds = f"{len(self.rounds)} round{'' if len(self.rounds) == 1 else 's'}"
            parts.append(f"derived {self.derived:,} by {', '.join(self.rules)} in {rounds}")
        if self.contradictions:
            more = " or more" if self.more_contradictions else ""
            parts.append(f"{len(self.contradictions)}{more} contradictions")
        if self.peak_memory:
            parts.append(f"peak memory {self.peak_memory / 2**30:.1f} GB")
        parts.append(f"version {self.version}")
        return one_line("; ".join(parts), self.seconds, self.engine, triples=self.read)
