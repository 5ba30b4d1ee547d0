"""What a piece of work did, how long each phase took, and where it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from inferlake.evaluate.report import Contradiction, Round
from inferlake.evaluate.sets import Work
from inferlake.input import Bad
from inferlake.progress import counted, one_line, shown_time


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
    # Facts, asserted or derived, whose time had come; events that came too late to be stored.
    expired: int = 0
    late: int = 0
    # The time up to which the version has let facts go, in milliseconds since 1970, if it ever did.
    clock: int | None = None
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
        if self.not_asserted:
            were = "was" if self.not_asserted == 1 else "were"
            parts.append(f"{counted(self.not_asserted, 'triple')} to remove {were} not asserted")
        if self.expired and self.operation != "expire":
            parts.append(f"{counted(self.expired, 'fact')} expired")
        if self.late:
            at = "" if self.clock is None else f" for the clock at {shown_time(self.clock)}"
            parts.append(f"{counted(self.late, 'event')} came too late{at}")
        if self.bad_count:
            parts.append(f"skipped {counted(self.bad_count, 'bad statement')}")
        if self.graphs_dropped:
            parts.append(f"dropped the names of {counted(self.graphs_dropped, 'graph')}")
        parts += self._repaired()
        if self.contradictions:
            more = "at least " if self.more_contradictions else ""
            parts.append(more + counted(len(self.contradictions), "contradiction"))
        if self.peak_memory:
            parts.append(f"peak memory {self.peak_memory / 2**30:.1f} GB")
        parts.append(f"version {self.version}")
        return one_line("; ".join(parts), self.seconds, self.engine, triples=self.read)

    @property
    def _done(self) -> str:
        """What happened to the asserted triples, or to the rules if nothing else was given."""
        source = f"of {self.read:,} read from {counted(self.files, 'file')}"
        if self.operation == "expire" and self.clock is not None:
            return f"{counted(self.expired, 'fact')} expired by {shown_time(self.clock)}"
        if self.operation == "load":
            return f"loaded {counted(self.added, 'new triple')} {source}"
        if not self.files:
            return f"changed the rules to {', '.join(self.rules) or 'none'}"
        if self.added and self.removed:
            return f"added {self.added:,} and removed {counted(self.removed, 'triple')} {source}"
        if self.added:
            return f"added {counted(self.added, 'triple')} {source}"
        if self.removed:
            return f"removed {counted(self.removed, 'triple')} {source}"
        return f"changed no triple {source}"

    @property
    def _may_withdraw(self) -> bool:
        """Whether triples went, or rules alone were changed."""
        return bool(self.removed) or not self.files

    def _repaired(self) -> Iterator[str]:
        """Yield what happened to the derived facts: what went and how, and what came."""
        if self.operation == "expire":
            return
        gone = counted(self.withdrawn, "derived fact")
        by = f"by {', '.join(self.rules)} in {counted(len(self.rounds), 'round')}"
        if self.withdrawn and self.expired and not self.algorithm:
            yield f"withdrew {gone}"
        elif self.withdrawn and not self.algorithm:
            yield f"{gone} {'is' if self.withdrawn == 1 else 'are'} asserted now"
        elif self.withdrawn or (self.algorithm and self.rules and self._may_withdraw):
            if self.algorithm == "rebuild" and self.rules:
                now = counted(self.derived, "derived fact")
                # Most of them are the same: `changes` tells which are not.
                yield f"rebuilt ({self.reason}): {now}, {self.withdrawn:,} before, {by}"
                return
            yield f"withdrew {gone} by {self.algorithm} ({self.reason})"
        if self.rules and (self.derived or self.operation == "load"):
            yield f"derived {self.derived:,} {by}"
