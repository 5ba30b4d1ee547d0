"""A program and a schema to what runs: an expander, groups of joining rules, and constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from inferlake.plan.clauses import Clause, Fact, Row
from inferlake.plan.groups import Group, grouped
from inferlake.plan.linear import Entry, TooManyEntries, entry, expander
from inferlake.plan.patterns import Patterns
from inferlake.plan.specialise import DRIVER_FACTS, Parameters, Specialised, Template, specialise


@dataclass(frozen=True)
class Options:
    """How to compile. The result of an evaluation never depends on it."""

    # Put schema facts into the rules, and compose rules with one atom.
    specialised: bool = True
    # Leave out applications of rules that can only repeat what is known.
    lean: bool = True
    driver_facts: int = DRIVER_FACTS
    # Count what each round derives before repetitions are dropped: one more query a round.
    counted: bool = False


@dataclass(frozen=True)
class Plan:
    """What to run."""

    patterns: Patterns
    demoted: tuple[Row, ...]
    # What the schema says and what follows from it alone: facts that need no engine.
    schema: frozenset[Fact]
    rows: Mapping[Template, set[Parameters]]
    entries: frozenset[Entry]
    entry_names: tuple[str, ...]
    # Whether the entries hold their own compositions; if not, they run until nothing is new.
    closed: bool

    def joins(self, before: Plan | None = None) -> tuple[Group, ...]:
        """Return the groups of rules that join, without those that `before` had already."""
        known = before.rows if before is not None else {}
        fresh = {
            template: left
            for template, rows in self.rows.items()
            if not _is_linear(template) and (left := rows - known.get(template, set()))
        }
        return grouped(fresh)

    def steps(self, before: Plan | None = None) -> tuple[Group, ...]:
        """Return the entries as groups of rules, without those that `before` had already."""
        entries = self.entries - (before.entries if before is not None else frozenset())
        return grouped(
            {Template(Clause("", one.head, (one.body,), one.checks)): {()} for one in entries}
        )

    def constraints(self) -> tuple[Group, ...]:
        """Return the rules that say what must not be."""
        return tuple(group for group in self.joins() if group.clause.head is None)


def compile_plan(
    clauses: Iterable[Clause], patterns: Iterable[Row], schema: Iterable[Fact], options: Options
) -> Plan:
    """Return the plan for `clauses` over data in which `schema` are the facts of the patterns."""
    rules, facts = tuple(clauses), frozenset(schema)
    rows = tuple(patterns) if options.specialised else ()
    if len(facts) > _REMEMBERED_FACTS:
        return _compiled(rules, rows, facts, options)
    return _remembered(rules, rows, facts, options)


def _compiled(
    rules: tuple[Clause, ...], rows: tuple[Row, ...], schema: frozenset[Fact], options: Options
) -> Plan:
    found = specialise(rules, rows, schema, options.driver_facts)
    kept = tuple(row for row in rows if row not in found.demoted)
    entries, names, closed = _expander(found, options)
    return Plan(
        Patterns(kept),
        found.demoted,
        frozenset(found.schema.all | found.besides),
        found.rows,
        frozenset(entries),
        names,
        closed,
    )


# Changes come one after the other, and most leave rules and schema as they are.
_remembered = lru_cache(maxsize=8)(_compiled)
_REMEMBERED_FACTS = 20_000


def _is_linear(template: Template) -> bool:
    clause = template.clause
    return (
        clause.head is not None
        and len(clause.body) == 1
        and not any(check.needs_text for check in clause.checks)
    )


def _expander(found: Specialised, options: Options) -> tuple[set[Entry], tuple[str, ...], bool]:
    linear = {t: rows for t, rows in found.rows.items() if _is_linear(t)}
    clauses = [
        clause
        for template, rows in linear.items()
        for values in rows
        if (clause := template.clause.bound(dict(zip(template.parameters, values, strict=True))))
    ]
    base = {made for clause in clauses if (made := entry(clause)) is not None}
    names = tuple(dict.fromkeys(template.clause.name for template in linear))
    if not options.specialised:
        return base, names, False
    try:
        return expander(base), names, True
    except TooManyEntries:
        return base, names, False
