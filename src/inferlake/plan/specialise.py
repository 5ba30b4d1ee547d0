"""Schema first: close the facts that say how others are to be read, and put them into the rules.

Body atoms over schema patterns are looked up on the driver. What is left of a rule is a template,
and each way to look them up is a row of parameters: `[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d],
[?x, a, ?c]` becomes `[?x, a, ?d] :- [?x, a, ?c]` with the parameters c and d, and a row for each
pair of a class and one above it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from inferlake.plan.clauses import Clause, Fact, Row, variables
from inferlake.plan.driver import Facts, TooManyFacts, close, matches
from inferlake.plan.patterns import Patterns

# Beyond this, a pattern's facts are data like others, and the engine joins them.
DRIVER_FACTS = 100_000


@dataclass(frozen=True)
class Template:
    """A clause without its schema atoms, and the variables that rows of parameters replace."""

    clause: Clause
    parameters: tuple[str, ...] = ()
    # The whole body, for telling which facts break a constraint.
    origin: tuple[Row, ...] = ()


Parameters = tuple[int | None, ...]


@dataclass(frozen=True)
class Specialised:
    """Rules put together with a schema."""

    # The schema facts, closed, and what follows from them alone without being schema.
    schema: Facts
    besides: set[Fact]
    rows: dict[Template, set[Parameters]]
    # The patterns that turned out to be too large for the driver.
    demoted: tuple[Row, ...] = ()


def specialise(
    clauses: Iterable[Clause], patterns: tuple[Row, ...], facts: Iterable[Fact], limit: int
) -> Specialised:
    """Close the schema among `facts` and return the rules put together with it.

    If that is too much for the driver, the pattern with most facts becomes data like others, and
    the next attempt has less to do.
    """
    rules, given = tuple(clauses), tuple(facts)
    demoted: list[Row] = []
    while True:
        schema = Patterns(tuple(row for row in patterns if row not in demoted))
        try:
            found = _specialised(rules, schema, filter(schema.cover, given), limit)
        except _Overfull as exc:
            demoted += [row for row in patterns if Patterns([row]).rows == (exc.largest,)]
            continue
        return Specialised(found.schema, found.besides, found.rows, tuple(demoted))


class _Overfull(Exception):
    def __init__(self, largest: Row) -> None:
        self.largest = largest


def _specialised(
    rules: tuple[Clause, ...], schema: Patterns, facts: Iterable[Fact], limit: int
) -> Specialised:
    of_schema = [rule for rule in rules if rule.head is not None and _is_schema_rule(rule, schema)]
    given = list(facts)
    try:
        closed, besides = close(of_schema, given, limit=limit, keep=schema.cover)
        rows = {
            template: found
            for rule in rules
            if rule.head is None or not _is_schema_rule(rule, schema)
            for template, found in (_rows(rule, schema, closed, limit),)
            if found
        }
    except TooManyFacts:
        raise _Overfull(_largest(schema, given)) from None
    return Specialised(closed, besides, rows)


def _is_schema_rule(rule: Clause, schema: Patterns) -> bool:
    return all(map(schema.cover, rule.body)) and not _needs_text(rule)


def _needs_text(rule: Clause) -> bool:
    return any(check.needs_text for check in rule.checks)


def _rows(
    rule: Clause, schema: Patterns, facts: Facts, limit: int
) -> tuple[Template, set[Parameters]]:
    """Return what is left of a rule without its schema atoms, and the rows that replace them."""
    inner = looked_up(rule, schema)
    outer = tuple(row for row in rule.body if row not in inner)
    of_outer = variables((*outer, *(check.args for check in rule.checks), rule.head or ()))
    # A constraint names the facts that break it, so it keeps all it knows of them.
    wanted = [v for v in variables(inner) if v in of_outer or rule.head is None]
    local = [check for check in rule.checks if set(check.variables) <= set(variables(inner))]
    rest = tuple(check for check in rule.checks if check not in local)
    inside = Clause(rule.name, None, (), tuple(local))
    found: set[Parameters] = set()
    for bindings in matches(inner, facts):
        if inside.bound(bindings) is not None:
            found.add(tuple(bindings[name] for name in wanted))  # type: ignore[misc]
            if inner and len(found) > limit:
                raise TooManyFacts
    clause = Clause(rule.name, rule.head, outer, rest)
    return Template(clause, tuple(wanted), rule.body if rule.head is None else ()), found


def looked_up(rule: Clause, schema: Patterns) -> tuple[Row, ...]:
    """Return the atoms of a rule that the driver looks up.

    None, if it would then have to tell by itself what texts mean.
    """
    inner = tuple(row for row in rule.body if schema.cover(row))
    known = set(variables(inner))
    by_text = [check for check in rule.checks if check.needs_text]
    if any(set(check.variables) <= known for check in by_text):
        return ()
    return inner


def _largest(schema: Patterns, facts: list[Fact]) -> Row:
    """Return the pattern that most facts match: it is the one that grows when it is closed."""
    counts = Counter(
        row
        for fact in facts
        for row in schema.rows
        if all(not isinstance(slot, int) or slot == at for slot, at in zip(row, fact, strict=True))
    )
    return counts.most_common(1)[0][0] if counts else schema.rows[0]
