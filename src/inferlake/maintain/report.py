"""What a piece of work did, how long each phase took, and where it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from inferlake.evaluate.removal import Work
from inferlake.evaluate.report import Contradiction, Round
from inferlake.input import Bad
from inferlake.progress import counted, one_line


@dataclass(frozen=True)
class ChangeReport:
    """The account of one change: a load, an update, other rules.

    `read` counts statements in the input, with repetitions; `added` the facts that were new. If
    `repeated`, the batch had been applied before and this call changed nothing.
    """

    operation: str
    version: int
    read: int
    added: int
    files: int
    engine: str
    seconds: Mapping[str, float]
    # Asserted triples that went, and triples that were to go and were not asserted.
    removed: int = 0
    not_asserted: int = 0
    bad_count: int = 0
    bad: tuple[Bad, ...] = ()
    graphs_dropped: int = 0
    repeated: bool = False
    files_read: int = 0
    rows_read: int = 0
    files_stored: int = 0
    rows_stored: int = 0
    rules: tuple[str, ...] = ()
    derived: int = 0
    # Derived facts that no longer follow, are asserted now, or were derived under other rules.
    withdrawn: int = 0
    # How the derived facts were found that no longer follow, and why so; empty if none could go.
    algorithm: str = ""
    reason: str = ""
    work: Work = field(default_factory=Work)
    rounds: tuple[Round, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    more_contradictions: bool = False
    peak_memory: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return asdict(self)

    def __str__(self) -> str:
        if self.repeated:
            return f"batch already applied; still version {self.version}"
        parts = [self._done]
        if self.bad_count:
            parts.append(f"skipped {counted(self.bad_count, 'bad statement')}")
        if self.graphs_dropped:
            parts.append(f"dropped the names of {counted(self.graphs_dropped, 'graph')}")
        if self.withdrawn:
            by = f" by {self.algorithm} ({self.reason})" if self.algorithm else ""
            parts.append(f"withdrew {self.withdrawn:,}{by}")
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

    @property
    def _done(self) -> str:
        files = counted(self.files, "file")
        if self.operation == "load":
            return f"loaded {counted(self.added, 'new triple')} of {self.read:,} read from {files}"
        if self.operation == "rules":
            return "changed the rules"
        done = f"added {counted(self.added, 'triple')}, removed {self.removed:,}"
        if self.files:
            done += f" of {self.read:,} read from {files}"
        absent = f"; {self.not_asserted:,} to remove were not asserted" if self.not_asserted else ""
        return done + absent
