"""Clauses from rule texts, and small strategies of clauses in ids, for the tests of plans."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from inferlake.plan import clauses as clausal
from inferlake.plan.clauses import Check, Clause, Fact, Layout, Row, Slot, layout
from inferlake.rules.check import checked
from inferlake.rules.model import Comparison, Program
from inferlake.rules.parse import PREFIXES, parse
from inferlake.terms import FULL

PREFIX = "@prefix : <e:> .\n"
BY_ID = ("=", "!=", "is_resource", "is_iri", "is_literal", "is_blank")


def seriously(examples: int) -> settings:
    """Return the settings of a property: the same examples on every run, however slow to make."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
        ],
    )


def id_of(name: str) -> int:
    """Return the id of a prefixed name, such as `:a` or `rdf:type`."""
    prefix, _, local = name.partition(":")
    return FULL.of(f"<{PREFIXES.get(prefix, 'e:')}{local}>")


def clauses(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a rule text with the prefix `:`."""
    program = checked(parse(PREFIX + text))
    return clausal.clauses(program, layout(program), FULL.of)


def clause(text: str) -> Clause:
    (found,) = clauses(text)
    return found


def triple(text: str) -> Fact:
    """Return a triple of three prefixed names."""
    return tuple(id_of(name) for name in text.split())


def decided_by_ids(program: Program) -> Program:
    """Return the rules whose tests need no texts."""
    names = (*BY_ID, "=", "!=")
    kept = tuple(
        rule
        for rule in program.rules
        if all(
            (test.operator if isinstance(test, Comparison) else test.name) in names
            for test in rule.tests
        )
    )
    return Program(kept, program.schema)


def canonical(one: Clause) -> tuple:
    """Return a clause without its name, its variables named by their order."""
    rows: list[Row] = [*one.body, one.head or (), *(check.args for check in one.checks)]
    names: dict[str, Slot] = {}
    for row in rows:
        for slot in row:
            if isinstance(slot, str):
                names.setdefault(slot, f"x{len(names)}")
    same = one.bound(names)
    assert same is not None
    return same.body, same.head, frozenset(same.checks)


def rows_of(facts: list, shape: Layout) -> list[Fact]:
    """Return facts in terms as facts in ids."""
    return [
        shape.row(name, [FULL.of(term) for term in args])  # type: ignore[misc]
        for name, args in facts
    ]


# --- Random clauses over triples of a few ids --------------------------------------------------

# IRIs are even, blank nodes odd, literals negative.
IDS = (2, 4, 6, 3, -8)
FRESH = 10
NAMES = ("a", "b", "c")

slots = st.sampled_from([*NAMES, *NAMES, *IDS])
rows = st.tuples(slots, slots, slots)


@st.composite
def checks(draw, among: list[str]) -> Check:
    name = draw(st.sampled_from(BY_ID))
    one = draw(st.sampled_from(among))
    if name not in ("=", "!="):
        return Check(name, (one,))
    return Check(name, (one, draw(st.sampled_from([*among, *IDS]))))


@st.composite
def random_clauses(draw, most_atoms: int = 2, with_checks: bool = True) -> Clause:
    body = tuple(draw(st.lists(rows, min_size=1, max_size=most_atoms, unique=True)))
    bound = sorted({slot for row in body for slot in row if isinstance(slot, str)})
    pool = st.sampled_from([*bound, *bound, *IDS])
    head = draw(st.tuples(pool, pool, pool))
    some = draw(st.lists(checks(bound), max_size=1)) if bound and with_checks else []
    return Clause("r", head, body, tuple(some))
