"""A stream by hand: batches are given to the writer as a source would, without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inferlake.engines.machine import has_java
from inferlake.evaluate.reference import closure
from inferlake.input import arrived
from inferlake.kb import KnowledgeBase
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE
from inferlake.session import Sessions
from inferlake.stream.batch import Batch
from inferlake.stream.report import BatchReport
from inferlake.stream.spool import Message, spooled
from inferlake.stream.state import State
from inferlake.stream.writer import Writer

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB_CLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"

Triple = tuple[str, ...]


def facts(kb: KnowledgeBase, layer: str = "all") -> set[Triple]:
    """Return the triples of a layer, none of which may be there twice."""
    rows = [tuple(row)[:3] for row in kb.facts(layer).collect()]  # type: ignore[arg-type]
    assert len(rows) == len(set(rows)), "a triple is there twice"
    return set(rows)


def assert_right(kb: KnowledgeBase, asserted: set[Triple], rules: str = "rdfs") -> None:
    """Compare with the reference evaluator, from the test's own copy of what is asserted."""
    assert facts(kb, "asserted") == asserted
    stated = {(TRIPLE, triple) for triple in asserted}
    program = compiled(read_rules([rules]))
    assert facts(kb) == {args for name, args in closure(program, stated) if name == TRIPLE}


def name(local: object) -> str:
    """Return an IRI."""
    return f"<http://example.org/{local}>"


def line(triple: Triple) -> str:
    """Return a triple as a line of N-Triples."""
    return f"{' '.join(triple)} ."


def put(file: Path, lines: Iterable[str], *, at: int = 0) -> Path:
    """Let a file appear as a whole, with a time that tells its turn."""
    hidden = file.with_name(f".{file.name}")
    hidden.write_text("".join(f"{one}\n" for one in lines))
    os.utime(hidden, (1_700_000_000 + at, 1_700_000_000 + at))
    return hidden.rename(file)


class ByHand:
    """A stream whose batches the test makes, on one engine."""

    def __init__(self, kb: KnowledgeBase, folder: Path, **options: Any) -> None:
        self.kb, self.folder, self.number = kb, folder, -1
        self.stream = kb.stream(folder, name="by-hand", **options)
        self.writer = self._opened()

    def _opened(self) -> Writer:
        state = State.open(self.kb._store, "by-hand", None, str(self.folder))
        return Writer(self.stream.target, state, self.stream.options)

    def reopen(self) -> None:
        """Start again, as a process does after a crash."""
        self.writer.close()
        self.writer = self._opened()

    def files(self, *files: Path, number: int | None = None) -> BatchReport:
        """Make a batch of files in their order."""
        return self._write(number, lambda n: Batch(n, tuple(arrived(str(f)) for f in files)))

    def lines(self, lines: Iterable[str | Message], number: int | None = None) -> BatchReport:
        """Make a batch of lines, as from a topic."""
        messages = [
            one if isinstance(one, Message) else Message(one.encode(), offset)
            for offset, one in enumerate(lines)
        ]
        state = self.writer.state

        def batch(n: int) -> Batch:
            at = state.spool.child(str(n))
            timed = self.stream.options.window is not None
            return spooled(at, n, messages, source="a topic", owner=state.id, timed=timed)

        return self._write(number, batch)

    def _write(self, number: int | None, take: Any) -> BatchReport:
        self.number = self.number + 1 if number is None else number
        return self.writer.write(self.number, lambda: take(self.number))

    def letters(self) -> list[str]:
        """Return all lines of all dead letters."""
        folder = Path(self.writer.state.letters.at.path)
        return [one for file in sorted(folder.glob("*")) for one in file.read_text().splitlines()]


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[ByHand]:
    """A stream by hand under rdfs, on Sail: a batch on Spark takes seconds, and few need it."""
    started = ByHand(KnowledgeBase(tmp_path / "kb", engine="sail", rules="rdfs"), tmp_path)
    yield started
    started.writer.close()


@pytest.fixture
def streaming() -> Any:
    """The Spark session of this process, for Structured Streaming."""
    if not has_java():
        pytest.skip("Structured Streaming needs Apache Spark, which needs Java")
    return Sessions("auto").for_streaming().session
