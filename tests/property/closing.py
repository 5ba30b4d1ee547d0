"""Programs over facts in terms, closed by an engine: what tests compare with the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from inferlake.evaluate import reference
from inferlake.evaluate.blocks import FrameBlock, Scratch
from inferlake.evaluate.closure import Closure, Rules, block, evaluate, relation
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.reference import Fact
from inferlake.evaluate.retract import Algorithm, Retracted, Retraction
from inferlake.paths import place
from inferlake.plan.clauses import clauses, layout, patterns
from inferlake.plan.compile import Options
from inferlake.rules.model import Program
from inferlake.session import Engine, union
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
    texts = _texts([*given, *old], program)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(place(Path(folder)))

        def blocks(some: list[Fact]) -> list:
            names = dict.fromkeys(name for name, _ in some)
            return [block(shape, name, _frame(engine, scratch, name, some)) for name in names]

        result = evaluate(
            engine,
            Rules(program, FULL.of),
            blocks(given),
            layout=shape,
            scratch=scratch,
            terms=lambda: _dictionary(engine, texts),
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


def retract(
    engine: Engine,
    program: Program,
    kept: Program,
    facts: Iterable[Fact],
    removed: Iterable[Fact],
    algorithm: Algorithm,
    *,
    options: Options | None = None,
) -> tuple[set[Fact], Retracted]:
    """Return what of a closure is gone without some facts and rules."""
    asserted, going = sorted(set(facts)), sorted(set(removed))
    everything = reference.closure(program, asserted)
    derived = sorted(everything - set(asserted))
    shape = layout(program, {name: len(args) for name, args in asserted})
    texts = _texts(everything, program)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(place(Path(folder)))

        def blocks(some: list[Fact]) -> tuple[FrameBlock, ...]:
            names = dict.fromkeys(name for name, _ in some)
            return tuple(block(shape, name, _frame(engine, scratch, name, some)) for name in names)

        rules = Rules(program, FULL.of)
        queries = rules.queries(engine, shape, scratch, lambda: _dictionary(engine, texts))
        gone = queries.block(union([b.given for b in blocks(going)])) if going else None
        before = clauses(program, shape, FULL.of)
        found = Retraction(
            queries,
            before,
            tuple(c for c in before if c in clauses(kept, shape, FULL.of)),
            patterns(program, shape, FULL.of),
            blocks(asserted),
            blocks(derived),
            gone,
            rules.texts,
            options or Options(),
        ).run(algorithm)
        rows = [
            (name, tuple(texts[id] for id in row))
            for name in shape.arities
            for row in relation(engine, shape, list(found.gone), name).collect()
        ]
        assert len(rows) == len(set(rows)), "a fact goes twice"
        return set(rows), found


def _texts(facts: Iterable[Fact], program: Program) -> dict[int, str]:
    terms = {term for _, args in facts for term in args} | program.constants
    return {FULL.of(term): term for term in terms}


def _dictionary(engine: Engine, texts: dict[int, str]):
    if not texts:
        return engine.empty("id BIGINT, term STRING")
    ids, names = pa.array(texts, pa.int64()), pa.array(texts.values(), pa.string())
    return engine.session.createDataFrame(pa.table({"id": ids, "term": names}))


def _frame(engine: Engine, scratch: Scratch, name: str, facts: list[Fact]):
    rows = tuple(tuple(FULL.of(term) for term in args) for one, args in facts if one == name)
    return scratch.table(engine, tuple(f"a{n}" for n in range(len(rows[0]))), rows)


def _fact(row, shape, names, texts) -> Fact:
    name, args = ("triple", row) if shape.only_triples else (names[row[0]], row[1:])
    return name, tuple(texts[id] for id in args if id is not None)
