"""Closures on the driver equal the reference evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferlake.evaluate.reference import closure
from inferlake.plan import clauses as clausal
from inferlake.plan.clauses import Check, Clause, layout
from inferlake.plan.driver import Facts, TooManyFacts, bound, close, matches
from inferlake.terms import FULL
from tests.property.programs import ARITIES, TERMS, facts, programs
from tests.unit.plan.made import decided_by_ids, rows_of, seriously

TRANSITIVE = Clause("t", ("x", 5, "z"), (("x", 5, "y"), ("y", 5, "z")))
NAMES = {FULL.of(term): term for term in TERMS}


@seriously(200)
@given(st.booleans().flatmap(lambda only: st.tuples(programs(only), facts(only))))
def test_a_closure_equals_the_reference(case: tuple) -> None:
    program, given_facts = decided_by_ids(case[0]), case[1]
    shape = layout(program, ARITIES)
    rules = clausal.clauses(program, shape, FULL.of)
    known, besides = close(rules, rows_of(given_facts, shape), limit=100_000)
    found = {(name, tuple(NAMES[id] for id in args)) for name, args in map(shape.named, known.all)}
    assert found == closure(program, given_facts) and besides == set()


def test_a_chain_is_closed() -> None:
    known, _ = close([TRANSITIVE], [(n, 5, n + 1) for n in range(10)], limit=100)
    assert known.all == {(n, 5, m) for n in range(11) for m in range(n + 1, 11)}


def test_more_facts_than_the_limit_are_too_many() -> None:
    chain = [(n, 5, n + 1) for n in range(10)]
    assert len(close([TRANSITIVE], chain, limit=55)[0]) == 55
    with pytest.raises(TooManyFacts):
        close([TRANSITIVE], chain, limit=54)
    with pytest.raises(TooManyFacts):
        close([], chain, limit=9)


def test_facts_that_are_not_kept_count_and_derive_nothing() -> None:
    rules = [
        Clause("a", ("x", 6, "y"), (("x", 5, "y"),)),
        Clause("b", ("x", 5, 9), (("x", 6, "y"),)),
    ]
    known, besides = close(rules, [(1, 5, 2)], limit=2, keep=lambda fact: fact[1] == 5)
    assert (known.all, besides) == ({(1, 5, 2)}, {(1, 6, 2)})
    with pytest.raises(TooManyFacts):
        close(rules, [(1, 5, 2)], limit=1, keep=lambda fact: fact[1] == 5)


def test_rules_without_a_body_are_facts_that_rules_use() -> None:
    fact = Clause("f", (1, 5, 2), ())
    assert close([fact, TRANSITIVE], [(2, 5, 3)], limit=9)[0].all >= {(1, 5, 2), (1, 5, 3)}
    failing = Clause("f", (1, 5, 2), (), (Check("=", (1, 2)),))
    assert close([failing], [], limit=9)[0].all == set()


def test_rules_with_undecided_checks_derive_nothing() -> None:
    rule = Clause("n", ("x", 6, "y"), (("x", 5, "y"),), (Check("<", ("x", "y")),))
    assert close([rule], [(1, 5, 2)], limit=9)[0].all == {(1, 5, 2)}


def test_repeated_variables_and_filling_must_agree() -> None:
    assert bound(("x", "x", None), (1, 1, None), {}) == {"x": 1}
    assert bound(("x", "x", None), (1, 2, None), {}) is None
    assert bound(("x", 2), (1, 2), {"x": 3}) is None
    assert bound(("x", 2), (1, 3), {}) is None


def test_facts_are_found_by_any_of_their_places_also_when_added_later() -> None:
    some = Facts([(1, 5, 2), (1, 6, 2)])
    assert sorted(some.matching((1, "p", "o"))) == [(1, 5, 2), (1, 6, 2)]
    some.add((1, 5, 3))
    some.add((1, 5, 3))
    assert sorted(some.matching((1, 5, "o"))) == [(1, 5, 2), (1, 5, 3)]
    assert sorted(some.matching((1, "p", "o"))) == [(1, 5, 2), (1, 5, 3), (1, 6, 2)]
    assert some.matching((9, "p", "o")) == [] and (1, 5, 3) in some and len(some) == 3


def test_matches_are_all_ways_to_find_a_body() -> None:
    some = Facts([(1, 5, 2), (2, 5, 3), (2, 5, 4)])
    found = [sorted(one.items()) for one in matches(TRANSITIVE.body, some)]
    assert sorted(found) == [[("x", 1), ("y", 2), ("z", 3)], [("x", 1), ("y", 2), ("z", 4)]]
    assert list(matches((), some)) == [{}]
    assert list(matches(TRANSITIVE.body, Facts())) == []
