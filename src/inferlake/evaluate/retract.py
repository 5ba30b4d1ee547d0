"""The way into a removal: from facts and rules that go, to the standing that is left.

The schema is closed on the driver, without what goes. The rules put together with it are compared
with those from before: what the lost ones derived is in question together with the removed facts.

Schema that rules derive from data is taken to stay. If some of it comes into question, or a schema
fact which went can still be derived from data, all is done once more with the rules as they are
written; and at once if the schema itself, or the rules, change beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from inferlake.evaluate.blocks import Block, FrameBlock, Without, matching_sql
from inferlake.evaluate.described import Described
from inferlake.evaluate.known import Known
from inferlake.evaluate.queries import Queries, Ranges
from inferlake.evaluate.removal import Removal
from inferlake.evaluate.report import Round
from inferlake.evaluate.schema import SchemaFacts
from inferlake.evaluate.sets import Account, Standing, Work
from inferlake.plan.clauses import Clause, Fact, Row
from inferlake.plan.compile import Options, Plan, compile_plan
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import FactInput, Query, Range, TableInput, add_variant
from inferlake.plan.strata import parts

Algorithm = Literal["bf", "dred", "counting"]


@dataclass(frozen=True)
class Retracted:
    """What no longer follows."""

    gone: tuple[Block, ...]
    work: Work


@dataclass
class Retraction:
    """Facts and rules that go from a closed set of facts."""

    queries: Queries
    # The rules that the facts are closed under, and those of them that stay.
    before: tuple[Clause, ...]
    kept: tuple[Clause, ...]
    patterns: tuple[Row, ...]
    asserted: tuple[Block, ...]
    derived: tuple[Block, ...]
    # Asserted facts that go.
    removed: Block | None
    texts: dict[int, str]
    options: Options = field(default_factory=Options)
    listen: Callable[[Round], None] = lambda done: None

    def run(self, algorithm: Algorithm, most: int | None = None) -> Retracted:
        """Find what is gone; raise `OutOfRounds` if that takes more than `most` rounds."""
        account = Account(self.listen, most)
        patterns = self.patterns if self.options.specialised else ()
        found = self._attempt(algorithm, patterns, account)
        if found is None:
            account.work = Work()
            found = self._attempt(algorithm, (), account)
        assert found is not None
        return found

    def _attempt(
        self, algorithm: Algorithm, patterns: tuple[Row, ...], account: Account
    ) -> Retracted | None:
        """Remove with rules specialised by `patterns`, or return None if their facts change."""
        schema = self._schema(patterns)
        if schema.from_data and schema.after is not schema.before:
            # What the schema says of itself is closed beside the rules: nobody would ask whether a
            # fact that data gave follows from what is left of the schema.
            return None
        seeds = self._seeds(schema)
        if seeds is None:
            return Retracted((), Work())
        removal = Removal(self.queries, self._standing(schema), account)
        run = {"bf": removal.bf, "dred": removal.dred, "counting": removal.counting}[algorithm]
        run(seeds)
        if schema.patterns and self._moved(schema, removal):
            return None
        return Retracted(tuple(removal.gone), account.work)

    # --- The schema ------------------------------------------------------------------------------

    def _schema(self, patterns: tuple[Row, ...]) -> _Schema:
        """Compile the rules for the schema of before, and for what is left of it."""
        queries = self.queries
        known = Known(queries.engine, queries.layout, queries.scratch, queries.type_id)
        finder = SchemaFacts(known, patterns, self.options.driver_facts)
        options = self.options if patterns else replace(self.options, specialised=False)
        while True:
            stated = finder.among(self.asserted)
            everything = stated | finder.among(self.derived)
            gone = finder.among([self.removed] if self.removed is not None else [])
            if finder.patterns != patterns:  # some became data while we looked
                patterns = finder.patterns
                continue
            alone = compile_plan(self.before, patterns, stated, options)
            from_data, left = everything - alone.schema, stated - gone
            before = after = axioms = alone  # mostly: few removals touch the schema
            if from_data:
                before = after = compile_plan(self.before, patterns, everything, options)
            if gone or self.kept != self.before:
                axioms = after = compile_plan(self.kept, patterns, left | from_data, options)
                if from_data:
                    axioms = compile_plan(self.kept, patterns, left, options)
            demoted = {row for plan in (before, alone, after, axioms) for row in plan.demoted}
            if not demoted:
                return _Schema(patterns, before, after, axioms.schema, frozenset(from_data))
            patterns = finder.patterns = tuple(row for row in patterns if row not in demoted)

    def _moved(self, schema: _Schema, removal: Removal) -> bool:
        """Tell whether the removal changed the schema in a way that the plan did not foresee.

        Or may have: rules that are made of a schema fact can prove it in a circle. So one that data
        gave must not have come into question.
        """
        wanted = Patterns(schema.patterns)
        foreseen = {f for f in schema.before.schema - schema.after.schema if wanted.cover(f)}
        if self._among(removal.gone, schema.patterns) != foreseen:
            return True
        in_doubt = schema.from_data and self._among(removal.examined, schema.patterns)
        return bool(in_doubt and in_doubt & schema.from_data)

    def _among(self, blocks: list[Block], patterns: tuple[Row, ...]) -> set[Fact]:
        """Return the schema facts among blocks."""
        frame = self.queries.facts(blocks, Patterns(patterns))
        if frame is None:
            return set()
        layout = self.queries.layout
        return {layout.fact(row) for row in frame.where(matching_sql(patterns, layout)).collect()}

    # --- What goes, and what stays ---------------------------------------------------------------

    def _seeds(self, schema: _Schema) -> Block | None:
        """Return the facts in question: those removed, and those that lost rules derived."""
        queries = self.queries
        if schema.before is schema.after:
            return self.removed
        query = Query(queries.layout, texts=self.texts)
        columns = ", ".join(queries.layout.columns)
        if self.removed is not None:
            everything = Patterns([(None,) * len(queries.layout.columns)])
            removed = query.input(FactInput(Range.ALL, everything, Ranges(all=(self.removed,))))
            query.selects.append(f"SELECT {columns} FROM {removed}")
        axioms = schema.before.schema - schema.after.schema
        if axioms:
            table = query.input(TableInput(queries.layout.columns, _filled(axioms)))
            query.selects.append(f"SELECT {columns} FROM {table}")
        ranges = Ranges(all=(*self.asserted, *self.derived))
        for group in (*schema.before.joins(schema.after), *schema.before.steps(schema.after)):
            places = tuple(Range.ALL for _ in group.clause.body)
            if group.clause.head is not None and ranges.can_join(group, places):
                add_variant(query, group, places, ranges)
        if not query.selects:
            return None
        once = f"SELECT DISTINCT {columns} FROM ({{made}}) made"
        return queries.block(queries.result(query, once))

    def _standing(self, schema: _Schema) -> Standing:
        queries, plan = self.queries, schema.after
        joins = tuple(group for group in plan.joins() if group.clause.head is not None)
        steps = plan.steps()
        removed = (self.removed,) if self.removed is not None else ()
        explicit: tuple[Block, ...] = self.asserted
        if removed:
            explicit = tuple(Without(queries.layout, block, removed) for block in self.asserted)
        axioms = (self._axioms(schema.axioms),) if schema.axioms else ()
        rules = joins if plan.closed else (*joins, *steps)
        return Standing(
            rules=rules,
            steps=steps if plan.closed else (),
            parts=partial(parts, rules, plan.entries if plan.closed else ()),
            known=(*self.asserted, *self.derived),
            explicit=(*explicit, *axioms),
            axioms=axioms,
            implied=(*self.derived, *removed),
            texts=self.texts,
            removed=self.removed,
        )

    def _axioms(self, axioms: frozenset[Fact]) -> Block:
        queries = self.queries
        rows = _filled(axioms)
        frame = queries.scratch.table(queries.engine, queries.layout.columns, rows)
        anything = (None,) * len(queries.layout.columns)
        block = FrameBlock(queries.layout, frame, anything, len(rows))
        return Described(block, Patterns(axioms))


@dataclass(frozen=True)
class _Schema:
    """The plans with the schema of before, and with what is left of it."""

    patterns: tuple[Row, ...]
    before: Plan
    after: Plan
    # What is left of the schema, closed, without what only data says; it needs no proof.
    axioms: frozenset[Fact]
    # What only data says of the schema.
    from_data: frozenset[Fact]


def _filled(facts: Iterable[Fact]) -> tuple[tuple[int, ...], ...]:
    """Return facts as rows of numbers, with zeros for filling."""
    return tuple(tuple(slot or 0 for slot in fact) for fact in sorted(facts, key=str))
