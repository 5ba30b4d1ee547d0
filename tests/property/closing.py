"""Programs over facts in terms, closed by an engine: what tests compare with the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from inferlake.evaluate.blocks import Scratch
from inferlake.evaluate.closure import Closure, Rules, block, evaluate
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.reference import Fact
from inferlake.paths import place
from inferlake.plan.clauses import layout
from inferlake.plan.compile import Options
from inferlake.rules.model import Program
from inferlake.session import Engine
from inferlake.terms import FULL


@dataclass
class Closed:
    """The facts of a closure in terms, and the evaluation behind it."""

    facts: set[Fact]
    closure: Closure
    contradictions: set[tuple[str, tuple[Fact, ...]]]


def close(
    engine: Engine,
    program: Program,
    facts: Iterable[Fact],
    *,
    closed: Iterable[Fact] = (),
    options: Options | None = None,
    limits: Limits | None = None,
) -> Closed:
    """Close `facts`, on top of `closed` ones, and check that nothing is there twice."""
    given, old = list(facts), list(closed)
    shape = layout(program, {name: len(args) for name, args in [*given, *old]})
    terms = {term for _, args in [*given, *old] for term in args} | program.constants
    texts = {FULL.of(term): term for term in terms}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(place(Path(folder)))

        def blocks(some: list[Fact]) -> list:
            names = dict.fromkeys(name for name, _ in some)
            return [block(shape, name, _frame(engine, scratch, name, some)) for name in names]

        def dictionary():
            if not texts:
                return engine.empty("id BIGINT, term STRING")
            ids, names = pa.array(texts, pa.int64()), pa.array(texts.values(), pa.string())
            return engine.session.createDataFrame(pa.table({"id": ids, "term": names}))

        result = evaluate(
            engine,
            Rules(program, FULL.of),
            blocks(given),
            layout=shape,
            scratch=scratch,
            terms=dictionary,
            closed=blocks(old),
            options=options,
            limits=limits,
        )
        found = [
            (name, tuple(texts[id] for id in row))
            for name in shape.arities
            for row in result.relation(name).collect()
        ]
        assert len(found) == len(set(found)), "a fact is there twice"
        broken, more = result.contradictions(1000)
        assert not more
        names = sorted(shape.arities)
        shown = {
            (one.rule, tuple(_fact(row, shape, names, texts) for row in one.facts))
            for one in broken
        }
        return Closed(set(found), result, shown)


def _frame(engine: Engine, scratch: Scratch, name: str, facts: list[Fact]):
    rows = tuple(tuple(FULL.of(term) for term in args) for one, args in facts if one == name)
    return scratch.table(engine, tuple(f"a{n}" for n in range(len(rows[0]))), rows)


def _fact(row, shape, names, texts) -> Fact:
    name, args = ("triple", row) if shape.only_triples else (names[row[0]], row[1:])
    return name, tuple(texts[id] for id in args if id is not None)
