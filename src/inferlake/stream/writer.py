"""From batch to version: the same for every source, exactly once.

Beside it small files are folded and, if there is a window, facts expire while nothing comes.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from inferlake.errors import InferlakeError, InputError
from inferlake.input import Bad, as_it_came, require_readable
from inferlake.maintain import Change, ChangeReport
from inferlake.maintain.change import applied
from inferlake.session import Sessions
from inferlake.store import Store
from inferlake.store.fold import Folded, facts_due, fold_facts, fold_terms, terms_due
from inferlake.store.table import Snapshot
from inferlake.stream.batch import Batch, as_change
from inferlake.stream.due import Due, wall_clock
from inferlake.stream.options import StreamOptions
from inferlake.stream.report import BatchReport, StreamReport, Totals, batch_report
from inferlake.stream.sail import RenewedSail
from inferlake.stream.state import State

# So many reports are kept; numbers of all batches go into the totals.
KEPT_REPORTS = 1_000

Listener = Callable[[BatchReport], None]


class Stopped(Exception):
    """The stream has been told to end, and takes no further batch."""


@dataclass(frozen=True)
class Target:
    """The knowledge base that a stream writes to."""

    store: Store
    sessions: Sessions
    # Makes a change the next version, on the engine that fits its size.
    apply: Callable[[Change], ChangeReport]
    # The relations that a version's rules know, with their numbers of arguments.
    arities: Callable[[Snapshot], Mapping[str, int]]
    sail: RenewedSail


@dataclass
class Writer:
    """Makes versions of batches, one at a time, and folds small files when they are many."""

    target: Target
    state: State
    options: StreamOptions
    # False for a source that cannot give a batch again: there is nothing to recognise it by.
    replayable: bool = True
    listener: Listener | None = None
    reports: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=KEPT_REPORTS))
    folds: list[Folded] = field(default_factory=list)
    # What went wrong with folds; batches go on without them.
    fold_failures: list[str] = field(default_factory=list)
    # Likewise for expiry between batches; the same thing twice in a row is told once.
    expiry_failures: list[str] = field(default_factory=list)
    now: Callable[[], int] = wall_clock

    def __post_init__(self) -> None:
        self._totals = Totals(self.state.name, self.state.letters.at.address)
        self._stopping = threading.Event()
        # Held while a batch is at work, and while a fold is committed: neither overtakes the other.
        self._alone = threading.Lock()
        self._folding: threading.Thread | None = None
        self._folds_told = 0
        self._expiring: threading.Thread | None = None
        self._due = Due(self.target.store, self.target.sessions)

    @property
    def summary(self) -> StreamReport:
        """What has been done so far."""
        files = sum(one.files_before for one in self.folds)
        failures = tuple(self.fold_failures), tuple(self.expiry_failures)
        return self._totals.report(len(self.folds), files, *failures)

    def write(self, number: int, take: Callable[[], Batch]) -> BatchReport:
        """Make a version of a batch, unless the knowledge base has it already.

        `take` gives the batch, and is not called if it is not needed: input that was committed
        may be gone. Raises `Stopped` once the stream is to end.
        """
        with self._alone:
            if self._stopping.is_set():
                raise Stopped
            self._renew_sail()
            began = time.perf_counter()
            batch, done = self._done(number, take)
            report = self._told(number, done, began, batch.lag if batch else None)
        if self.listener is not None:
            self.listener(report)
        return report

    def _told(
        self, number: int | None, done: ChangeReport, began: float, lag: float | None = None
    ) -> BatchReport:
        """Keep the account of a batch, or of an expiry between two, and fold what is due."""
        report = batch_report(
            self.state.name,
            number,
            done,
            seconds=time.perf_counter() - began,
            lag=lag,
            folded=self._newly_folded(),
        )
        self.reports.append(report)
        self._totals.add(report)
        self._fold_if_due()
        return report

    def stop(self) -> None:
        """Wait for the batch in hand, and take no other."""
        self._stopping.set()
        with self._alone:
            pass

    def close(self) -> None:
        """Wait for a fold or an expiry that is at work, and let go of the state."""
        self._stopping.set()
        if self._expiring is not None:
            self._expiring.join()
        if self._folding is not None:
            self._folding.join()
        self.target.sail.close()
        self.state.close()

    def _renew_sail(self) -> None:
        if not self._is_folding:
            self.target.sail.renew_if_large()

    # --- Batches ---------------------------------------------------------------------------------

    def _done(self, number: int, take: Callable[[], Batch]) -> tuple[Batch | None, ChangeReport]:
        store = self.target.store
        transaction = (self.state.application, number) if self.replayable else None
        if transaction is not None and store.exists():
            base = store.snapshot()
            if applied(base, transaction):
                return None, _repeated(base.version)
        batch = take()
        try:
            return batch, self._applied(batch, transaction)
        except InputError:
            if self.options.on_error == "fail":
                raise
            readable = _without_unreadable(batch)
            if readable.files == batch.files:
                raise
            return readable, self._applied(readable, transaction)

    def _applied(self, batch: Batch, transaction: tuple[str, int] | None) -> ChangeReport:
        def rejected(bad: Iterator[Bad]) -> None:
            stamped = any(file.stamped for file in batch.files)
            came = map(as_it_came, bad) if stamped else bad
            every = itertools.chain(batch.lost, came)
            if self.options.on_error == "fail":
                _refuse(batch, every)
            else:
                self.state.letters.write(batch.number, every, batch.origin)

        change = as_change(batch, self.options, transaction, rejected, self.now())
        done = self.target.apply(change)
        return replace(done, bad_count=done.bad_count + len(batch.lost))

    # --- Expiry between batches ------------------------------------------------------------------

    def keep_time(self) -> None:
        """Let go what is due, now and at every trigger from now on, whether or not batches come.

        Does nothing without a window, or if the events tell the time.
        """
        options = self.options
        if options.window is None or options.time_column is not None:
            return
        if options.trigger.kind != "every":
            self._try_to_expire()
            return
        self._expiring = threading.Thread(
            target=self._keep_time, name="inferlake-expiry", daemon=True
        )
        self._expiring.start()

    def _keep_time(self) -> None:
        self._try_to_expire()
        while not self._stopping.wait(self.options.trigger.seconds):
            self._try_to_expire()

    def _try_to_expire(self) -> None:
        try:
            self.expire_if_due()
        except Exception as exc:  # the next batch tries as well, and the report tells
            if str(exc) not in self.expiry_failures[-1:]:
                self.expiry_failures.append(str(exc))

    def expire_if_due(self) -> BatchReport | None:
        """Let go what is due by the wall clock as a version of its own, if anything is.

        Costs next to nothing if nothing is.
        """
        with self._alone:
            now = self.now()
            if self._stopping.is_set() or not self._due.at(now):
                return None
            self._renew_sail()
            began = time.perf_counter()
            done = self.target.apply(Change(operation="expire", clock=now))
            report = self._told(None, done, began)
        if self.listener is not None:
            self.listener(report)
        return report

    # --- Folds -----------------------------------------------------------------------------------

    def _newly_folded(self) -> int:
        new = self.folds[self._folds_told :]
        self._folds_told += len(new)
        return sum(one.files_before for one in new)

    @property
    def _is_folding(self) -> bool:
        return self._folding is not None and self._folding.is_alive()

    def _fold_if_due(self) -> None:
        """Begin to fold in a thread of its own, unless one is at work."""
        if self._is_folding:
            return
        store, due = self.target.store, self.options.fold_due
        base = store.facts.table.snapshot()
        if not facts_due(base, due) and not terms_due(store.terms, due):
            return
        self._folding = threading.Thread(target=self._fold, name="inferlake-fold", daemon=True)
        self._folding.start()

    def _fold(self) -> None:
        store, due = self.target.store, self.options.fold_due
        try:
            engine = self.target.sessions.for_reading()
            done = (
                fold_facts(
                    engine, store.facts, self.target.arities, due=due, alone=lambda: self._alone
                ),
                fold_terms(engine, store.terms, due=due, alone=lambda: self._alone),
            )
        except Exception as exc:  # a stream is worth more than its tidiness; the report tells
            self.fold_failures.append(str(exc))
            return
        self.folds += [one for one in done if one is not None]


def _refuse(batch: Batch, bad: Iterator[Bad]) -> None:
    """Raise `InputError` for the first of what is bad, if anything is."""
    first = next(bad, None)
    if first is None:
        return
    more = sum(1 for _ in bad)
    others = f"\n({more} more bad lines)" if more else ""
    advice = (
        "Nothing of the batch is stored. Mend it and start again, or use --on-error dead-letter."
    )
    raise InputError(f"{batch.told(first)}{others}\n{advice}")


def _repeated(version: int) -> ChangeReport:
    return ChangeReport(
        operation="stream",
        version=version,
        read=0,
        added=0,
        files=0,
        engine="the driver",
        seconds={},
        repeated=True,
    )


def _without_unreadable(batch: Batch) -> Batch:
    """Return a batch without files that cannot be read to their ends, which are lost with reason.

    Reads all of its files: for batches that failed.
    """
    lost: list[Bad] = []
    readable = []
    for file in batch.files:
        try:
            require_readable(file)
        except InferlakeError as exc:
            lost.append(Bad(file.address, None, None, None, str(exc)))
        else:
            readable.append(file)
    return replace(batch, files=tuple(readable), lost=batch.lost + tuple(lost))
