"""What each batch did, and what a stream did altogether."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from inferlake.maintain import ChangeReport
from inferlake.progress import counted


@dataclass(frozen=True)
class BatchReport:
    """The account of one batch. If `repeated`, it had been committed before, and changed nothing.

    Facts that expired while nothing came have an account of their own, in which `batch` is None.
    `lines` counts statements and bad lines; `lag` is how old the oldest input of the batch was when
    its version was committed, in seconds, where that is known.
    """

    stream: str
    batch: int | None
    version: int
    lines: int
    bad: int
    added: int
    removed: int
    derived: int
    withdrawn: int
    seconds: float
    phases: Mapping[str, float]
    engine: str
    lag: float | None = None
    repeated: bool = False
    algorithm: str = ""
    contradictions: int = 0
    # Stored files of facts and their rows that the batch read, of those there were.
    files_read: int = 0
    rows_read: int = 0
    files_stored: int = 0
    rows_stored: int = 0
    # Small files that were folded since the batch before.
    files_folded: int = 0
    peak_memory: int = 0
    # Facts, asserted or derived, whose time had come; events that came too late to be stored; and
    # the time up to which facts have gone, in milliseconds since 1970, if there is a window.
    expired: int = 0
    late: int = 0
    clock: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return asdict(self)

    @property
    def rebuilt(self) -> bool:
        """Whether facts that had been derived were derived again: then both counts are of all."""
        return self.algorithm == "rebuild" and self.withdrawn > 0

    @property
    def gained(self) -> int:
        """How many derived facts there are more; less than none if there are fewer."""
        return self.derived - self.withdrawn

    def __str__(self) -> str:
        if self.repeated:
            return f"batch {self.batch}: committed before; still version {self.version}"
        if self.batch is None:
            gone = counted(self.expired, "fact")
            spent = f"{self.seconds:.2f} s on {self.engine}"
            return f"between batches: {gone} expired; version {self.version} ({spent})"
        bad = f", {self.bad:,} bad" if self.bad else ""
        bad += f", {self.late:,} late" if self.late else ""
        expired = f"expired {self.expired:,}, " if self.expired else ""
        lag = "" if self.lag is None else f", lag {self.lag:.1f} s"
        folded = f"; folded {counted(self.files_folded, 'file')}" if self.files_folded else ""
        again = " (all of it, by rebuild)" if self.rebuilt else ""
        return (
            f"batch {self.batch}: {counted(self.lines, 'line')}{bad};"
            f" {expired}asserted +{self.added:,} -{self.removed:,},"
            f" derived +{self.derived:,} -{self.withdrawn:,}{again}; version {self.version}"
            f" ({self.seconds:.2f} s on {self.engine}{lag}; read {self.rows_read:,} rows of"
            f" {self.files_read:,} of {self.files_stored:,} files){folded}"
        )


def batch_report(
    stream: str,
    number: int | None,
    done: ChangeReport,
    *,
    seconds: float,
    lag: float | None,
    folded: int,
) -> BatchReport:
    """Return the account of a batch, or of an expiry between two, whose change is done."""
    return BatchReport(
        stream=stream,
        batch=number,
        version=done.version,
        lines=done.read + done.bad_count,
        bad=done.bad_count,
        added=done.added,
        removed=done.removed,
        derived=done.derived,
        withdrawn=done.withdrawn,
        seconds=seconds,
        phases=dict(done.seconds),
        engine=done.engine,
        lag=lag,
        repeated=done.repeated,
        algorithm=done.algorithm,
        contradictions=len(done.contradictions),
        files_read=done.files_read,
        rows_read=done.rows_read,
        files_stored=done.files_stored,
        rows_stored=done.rows_stored,
        files_folded=folded,
        peak_memory=done.peak_memory,
        expired=done.expired,
        late=done.late,
        clock=done.clock,
    )


@dataclass(frozen=True)
class StreamReport:
    """The account of a stream since it started.

    Of a batch that derived everything again, `derived` or `withdrawn` has the difference.
    """

    stream: str
    batches: int
    repeated: int
    lines: int
    bad: int
    added: int
    removed: int
    derived: int
    withdrawn: int
    version: int | None
    # Seconds of the batches that were not repeated.
    median: float
    p95: float
    longest: float
    folds: int
    files_folded: int
    dead_letters: str
    # What went wrong with folds; batches went on without them.
    fold_failures: tuple[str, ...] = ()
    # As in the report of a batch.
    expired: int = 0
    late: int = 0
    clock: int | None = None
    # What went wrong when facts were to go while nothing came; the next batch lets them go.
    expiry_failures: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return asdict(self)

    def __str__(self) -> str:
        gone = f"; {counted(self.expired, 'fact')} expired" if self.expired else ""
        if not self.batches:
            return f"{self.stream}: nothing came{gone}{self._failed}"
        bad = f"; {counted(self.bad, 'bad line')} in {self.dead_letters}" if self.bad else ""
        bad += f"; {counted(self.late, 'event')} came too late" if self.late else ""
        bad += gone
        return (
            f"{self.stream}: {counted(self.batches, 'batch').replace('batchs', 'batches')} of"
            f" {counted(self.lines, 'line')}{bad}; asserted +{self.added:,} -{self.removed:,},"
            f" derived +{self.derived:,} -{self.withdrawn:,}; version {self.version};"
            f" a batch took {self.median:.2f} s (median), {self.p95:.2f} s (p95);"
            f" folded {counted(self.files_folded, 'small file')} in {counted(self.folds, 'fold')}"
            f"{self._failed}"
        )

    @property
    def _failed(self) -> str:
        failed = ""
        if self.fold_failures:
            folds = counted(len(self.fold_failures), "fold")
            failed += f"; {folds} failed: {self.fold_failures[-1]}"
        if self.expiry_failures:
            failed += f"; facts could not expire between batches: {self.expiry_failures[-1]}"
        return failed


_COUNTED = ("lines", "bad", "added", "removed", "derived", "withdrawn", "expired", "late")


@dataclass
class Totals:
    """Adds up reports: numbers, and eight bytes a batch for the times."""

    stream: str
    dead_letters: str
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    repeated: int = 0
    version: int | None = None
    clock: int | None = None
    seconds: array[float] = field(default_factory=lambda: array("d"))

    def add(self, one: BatchReport) -> None:
        """Count one more batch, or what expired between two."""
        self.version = one.version
        if one.repeated:
            self.repeated += 1
            return
        self.clock = one.clock
        if one.batch is not None:
            self.seconds.append(one.seconds)
        for name in _COUNTED:
            self.sums[name] += getattr(one, name)
        if one.rebuilt:
            both = min(one.derived, one.withdrawn)
            self.sums["derived"] -= both
            self.sums["withdrawn"] -= both

    def report(
        self,
        folds: int,
        files_folded: int,
        fold_failures: tuple[str, ...],
        expiry_failures: tuple[str, ...],
    ) -> StreamReport:
        """Return the account of all batches so far."""
        times = sorted(self.seconds)
        return StreamReport(
            stream=self.stream,
            batches=len(times) + self.repeated,
            repeated=self.repeated,
            version=self.version,
            median=statistics.median(times) if times else 0.0,
            p95=quantile(times, 0.95),
            longest=times[-1] if times else 0.0,
            folds=folds,
            files_folded=files_folded,
            dead_letters=self.dead_letters,
            fold_failures=fold_failures,
            clock=self.clock,
            expiry_failures=expiry_failures,
            **self.sums,
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of ordered numbers that at least a share of them does not exceed.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5), quantile([1.0], 0.95), quantile([], 0.95)
    (2.0, 1.0, 0.0)
    """
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
