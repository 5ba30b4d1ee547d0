"""Stores with facts that expire, changed step by step beside a model that is plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from inferlake.evaluate.reference import Fact, closure
from inferlake.kb import KnowledgeBase
from inferlake.maintain import ChangeReport
from inferlake.plan.compile import Options
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import Engine
from inferlake.store.until import FOREVER

Triple = tuple[str, str, str]


def expiries(program: Program, asserted: dict[Fact, int]) -> dict[Fact, int]:
    """Return until when each fact stands, given until when facts are asserted.

    A fact stands at a time if it follows from what is asserted then: so plainly, no semiring.
    """
    found: dict[Fact, int] = {}
    for until in sorted(set(asserted.values())):
        alive = {fact for fact, end in asserted.items() if end >= until}
        found |= dict.fromkeys(closure(program, alive), until)
    # What follows from nothing, by rules without a body, stands whatever expires.
    return found | dict.fromkeys(closure(program, ()), FOREVER)


@dataclass
class Windowed:
    """A store, and what is asserted in it until when."""

    engine: Engine
    folder: Path
    texts: list[Any]
    options: Options = field(default_factory=Options)
    asserted: dict[Fact, int] = field(default_factory=dict)
    clock: int | None = None
    steps: int = 0

    def __post_init__(self) -> None:
        name = self.engine.name
        self.kb = KnowledgeBase(self.folder / "kb", engine=name, options=self.options)

    def load(self, triples: Iterable[Triple]) -> ChangeReport:
        """Assert triples for ever."""
        some = list(triples)
        rules = (tuple(self.texts) or ("none",)) if not self.steps else None
        report = self.kb.load(self.file(some), rules=rules)
        self.asserted |= {(TRIPLE, triple): FOREVER for triple in some}
        self.check(report)
        return report

    def update(
        self,
        *,
        remove: Iterable[Triple] = (),
        add: Iterable[Triple] = (),
        stream: dict[Triple, int] | None = None,
        window: int = 0,
        now: int | None = None,
        rules: list[Any] | None = None,
        algorithm: Any = "auto",
    ) -> ChangeReport:
        """Advance the clock, then remove triples, and add some for ever, or `stream` ones."""
        gone, new = list(remove), list(add)
        options: dict[str, Any] = {"now": now, "algorithm": algorithm}
        if rules is not None:
            self.texts = rules
            options["rules"] = tuple(rules) or ("none",)
        if stream is not None:
            options |= {"add": self.frame(stream), "time_column": "time"}
            options["window"] = timedelta(milliseconds=window)
        else:
            options["add"] = self.file(new)
        options["remove"] = self.file(gone)
        report = self.kb.update(**options)
        self.advance(now)
        for triple in gone:
            self.asserted.pop((TRIPLE, triple), None)
        for triple in new if stream is None else ():
            self.asserted[TRIPLE, triple] = FOREVER
        for triple, time in (stream or {}).items():
            self.arrive(triple, time + window)
        self.check(report)
        return report

    def expire(self, now: int) -> ChangeReport:
        report = self.kb.expire(now)
        assert report.rounds == () and report.work.examined == 0
        before = set(self.stand())
        self.advance(now)
        assert report.expired == len(before - set(self.stand()))
        self.check(report)
        return report

    # --- The model -------------------------------------------------------------------------------

    def advance(self, now: int | None) -> None:
        if now is not None:
            self.clock = now if self.clock is None else max(self.clock, now)
        self.asserted = {fact: end for fact, end in self.asserted.items() if self.is_later(end)}

    def is_later(self, time: int) -> bool:
        return self.clock is None or time > self.clock

    def arrive(self, triple: Triple, until: int) -> None:
        if self.is_later(until):
            fact = (TRIPLE, triple)
            self.asserted[fact] = max(until, self.asserted.get(fact, until))

    @property
    def program(self) -> Program:
        return compiled(read_rules(self.texts or ["none"]))

    def stand(self) -> dict[Fact, int]:
        return expiries(self.program, self.asserted)

    # --- The comparison --------------------------------------------------------------------------

    def check(self, report: ChangeReport) -> None:
        """Compare facts, layers and times with the model."""
        stand, program = self.stand(), self.program
        assert closure(program, self.asserted) == set(stand)
        triples = {args for name, args in stand if name == TRIPLE}
        asserted = {args for _, args in self.asserted}
        assert self.facts("asserted") == asserted
        assert self.facts("derived") == triples - asserted
        assert self.times(TRIPLE) == {
            args: (self._asserted_until(TRIPLE, args), until)
            for (name, args), until in stand.items()
            if name == TRIPLE
            and (until < FOREVER or self._asserted_until(TRIPLE, args) is not None)
        }
        for relation in program.arities.keys() - {TRIPLE}:
            rows = [tuple(row)[:-1] for row in self.kb.relation(relation).collect()]
            assert sorted(rows) == sorted(args for name, args in stand if name == relation)
            assert self.times(relation) == {
                args: (None, until)
                for (name, args), until in stand.items()
                if name == relation and until < FOREVER
            }
        assert report.clock == self.clock

    def _asserted_until(self, relation: str, args: tuple[str, ...]) -> int | None:
        until = self.asserted.get((relation, args))
        return None if until == FOREVER else until

    def facts(self, layer: Any) -> set[tuple[str, ...]]:
        rows = [tuple(row)[:3] for row in self.kb.facts(layer).collect()]
        assert len(rows) == len(set(rows)), "a triple is there twice"
        return set(rows)

    def times(self, relation: str) -> dict[tuple[str, ...], tuple[int | None, int]]:
        rows = [tuple(row) for row in self.kb.expiring(relation).collect()]
        assert len(rows) == len({row[:-2] for row in rows}), "two times for one fact"
        return {row[:-2]: (row[-2], row[-1]) for row in rows}

    # --- Input -----------------------------------------------------------------------------------

    def file(self, triples: list[Triple]) -> Path:
        self.steps += 1
        file = self.folder / f"{self.steps}.nt"
        file.write_text("".join(f"{' '.join(triple)} .\n" for triple in triples))
        return file

    def frame(self, triples: dict[Triple, int]) -> Any:
        columns: list[list[Any]] = [[triple[place] for triple in triples] for place in range(3)]
        names = ["subject", "predicate", "object"]
        arrays = [pa.array(column, pa.string()) for column in columns]
        times = pa.array(triples.values(), pa.int64())
        table = pa.table([*arrays, times], names=[*names, "time"])
        return self.engine.session.createDataFrame(table)
