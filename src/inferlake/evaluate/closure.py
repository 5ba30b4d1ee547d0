"""From relations of ids to their closure: the way into the fixpoint, and out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, FileBlock, FrameBlock, Scratch, facts
from inferlake.evaluate.contradictions import Broken, contradictions
from inferlake.evaluate.fixpoint import Fixpoint, Limits
from inferlake.evaluate.queries import Queries
from inferlake.evaluate.report import Round
from inferlake.plan.clauses import Layout, clauses, patterns
from inferlake.plan.compile import Options
from inferlake.plan.patterns import Patterns
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@dataclass(frozen=True)
class Rules:
    """A program in the ids of one dictionary."""

    program: Program
    id_of: Callable[[str], int]

    @property
    def type_id(self) -> int:
        """The id of rdf:type."""
        return self.id_of(RDF_TYPE)

    @property
    def texts(self) -> dict[int, str]:
        """The terms of the program's constants, by id."""
        return {self.id_of(term): term for term in self.program.constants}

    def queries(
        self, engine: Engine, layout: Layout, scratch: Scratch, terms: Callable[[], DataFrame]
    ) -> Queries:
        """Return what runs these rules over blocks; `terms` gives the dictionary `id, term`."""
        return Queries(engine, layout, scratch, terms, self.type_id)


@dataclass(frozen=True)
class Closure:
    """A finished evaluation."""

    fixpoint: Fixpoint

    @property
    def rounds(self) -> list[Round]:
        return self.fixpoint.rounds

    @property
    def derived(self) -> int:
        """How many facts were derived that had not been given."""
        return sum(block.rows for block in self.fixpoint.new)

    def relation(self, name: str, *, derived_only: bool = False) -> DataFrame:
        """Return the facts of a relation, in the columns of its layout."""
        blocks = self.fixpoint.new if derived_only else self.fixpoint.blocks
        queries = self.fixpoint.queries
        return relation(queries.engine, queries.layout, blocks, name)

    def counts(self) -> dict[str, int]:
        """Return how many facts of each relation were derived."""
        queries = self.fixpoint.queries
        return counts(queries.engine, queries.layout, self.fixpoint.new)

    def contradictions(self, most: int, *, sound: bool = False) -> tuple[list[Broken], bool]:
        """Return up to `most` broken constraints of each rule, and whether there are more.

        If the closed facts are `sound`, they break none of the constraints by themselves: then only
        new facts, and new constraints, are looked at.
        """
        done = self.fixpoint
        settled = done.earlier_constraints if sound else ()
        return contradictions(
            done.queries, done.plan.constraints(), done.ranges, done.texts, most, settled
        )


def relation(engine: Engine, layout: Layout, blocks: list, name: str) -> DataFrame:
    """Return the facts of one relation among `blocks`."""
    arity = layout.arities[name]
    wanted = Patterns([layout.row(name, ["x"] * arity)])
    columns = layout.arguments[:arity]
    found = facts(blocks, engine, wanted, layout)
    if found is None:
        return engine.empty(", ".join(f"{column} BIGINT" for column in columns))
    return found.select(*columns)


def counts(engine: Engine, layout: Layout, blocks: Iterable[FileBlock]) -> dict[str, int]:
    """Return how many facts of each relation there are among `blocks`."""
    found: Counter[str] = Counter()
    mixed: list[Block] = []
    for block in blocks:
        name = TRIPLE if layout.only_triples else block.relation
        if name is None:
            mixed.append(block)
        else:
            found[name] += block.rows
    rest = facts(mixed, engine, Patterns([(None,) * len(layout.columns)]), layout)
    if rest is not None:
        rows = rest.groupBy("r").count().collect()
        found.update({layout.names[row.r]: row["count"] for row in rows})
    return dict(found)


def block(layout: Layout, name: str, frame: DataFrame) -> FrameBlock:
    """Return a frame of a relation's facts as a block: its columns in order, of any names."""
    made = [
        f"{mine} AS {column}" for mine, column in zip(frame.columns, layout.arguments, strict=False)
    ]
    made += [f"BIGINT(0) AS {column}" for column in layout.arguments[len(frame.columns) :]]
    if not layout.only_triples:
        made = [f"BIGINT({layout.number(name)}) AS r", *made]
    pattern = layout.row(name, ["x"] * len(frame.columns))
    return FrameBlock(layout, frame.selectExpr(*made), pattern)


def evaluate(
    engine: Engine,
    rules: Rules,
    given: list[Block],
    *,
    layout: Layout,
    scratch: Scratch,
    terms: Callable[[], DataFrame],
    closed: list[Block] | None = None,
    under: Program | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    listen: Callable[[Round], None] = lambda done: None,
) -> Closure:
    """Return all that follows from `given` facts, and from `closed` ones that were closed before.

    `terms` gives the dictionary `id, term`; it is asked for only if a rule compares values. Given
    facts must not be among the closed ones, and be there once. The closed ones are closed `under`
    some of the rules, by default all.
    """
    fixpoint = Fixpoint(
        rules.queries(engine, layout, scratch, terms),
        clauses(rules.program, layout, rules.id_of),
        patterns(rules.program, layout, rules.id_of),
        rules.texts,
        options or Options(),
        limits or Limits(),
        listen,
    )
    earlier = None if under is None else clauses(under, layout, rules.id_of)
    fixpoint.run(closed or [], given, earlier)
    return Closure(fixpoint)
