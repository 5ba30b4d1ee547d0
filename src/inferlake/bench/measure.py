"""What cases share: a store of their own, a warm engine, the numbers of a report."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inferlake.bench.record import Row
from inferlake.engines.machine import peak_memory
from inferlake.kb import KnowledgeBase
from inferlake.maintain import ChangeReport
from inferlake.session import Sessions


@contextmanager
def store(
    engine: str, master: str | None = None, conf: Mapping[str, str] | None = None
) -> Iterator[tuple[KnowledgeBase, Path]]:
    """Yield a knowledge base that does not exist yet, and a folder that goes with it.

    The engine has answered once: to start it is not what a case measures.
    """
    with tempfile.TemporaryDirectory() as folder:
        sessions = Sessions(engine, None, master, dict(conf or {}))  # type: ignore[arg-type]
        sessions.for_reading().sql("SELECT 1").collect()
        path = Path(folder)
        yield KnowledgeBase(path / "kb", engine=engine, master=master, conf=conf), path  # type: ignore[arg-type]


def timed(work: Callable[[], ChangeReport]) -> tuple[float, ChangeReport]:
    """Return how long a change took, from the call to the committed version, and its report."""
    began = time.perf_counter()
    report = work()
    return time.perf_counter() - began, report


def numbers(report: ChangeReport, seconds: float) -> Row:
    """Return what a change did, by name: times by phase, and counts of work.

    A rebuild asks no fact for a proof: nobody counts there.
    """
    work = report.work
    counts = {
        "checked": work.checked,
        "examined": work.examined,
        "derivations": work.forward + work.backward + work.deletion,
        "backward": work.backward,
        "forward": work.forward,
        "deletion": work.deletion,
    }
    return {
        "seconds": seconds,
        "done_by": report.algorithm,
        "reason": report.reason,
        "phases": dict(report.seconds),
        "changed": report.added + report.removed,
        "derived": report.derived,
        "withdrawn": report.withdrawn,
        "rounds": len(report.rounds),
        "files_read": report.files_read,
        "rows_read": report.rows_read,
        "files_stored": report.files_stored,
        "rows_stored": report.rows_stored,
        **(counts if report.algorithm != "rebuild" else {}),
    }


def said(report: ChangeReport) -> list[str]:
    """Return the rounds of a change as a person would read them."""
    return [str(done) for done in report.rounds]


def peak() -> int:
    """Return the peak memory of this process and those below it, in MB."""
    return peak_memory() // 2**20


def nothing(folder: Path) -> Path:
    """Return a file without triples: to load it under other rules derives, and does no more."""
    file = folder / "nothing.nt"
    file.write_text("")
    return file


def warm(kb: KnowledgeBase, folder: Path) -> None:
    """Let the engine compile and cache what every change needs."""
    line = folder / "warm.nt"
    line.write_text("<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n")
    for _ in range(2):
        kb.update(add=line)
        kb.update(remove=line)
