"""Rules put together with a schema: by example, and against the rules as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferlake.plan import clauses as clausal
from inferlake.plan.clauses import Check, Clause, Fact, layout
from inferlake.plan.driver import close
from inferlake.plan.specialise import Template, specialise
from inferlake.terms import FULL
from tests.property.programs import ARITIES, facts, programs
from tests.unit.plan.made import decided_by_ids, rows_of, seriously

# Terms are even: IRIs. Classes from 20, properties from 40, others from 60.
TYPE, SUBCLASS, DOMAIN = 2, 4, 6
RDFS9 = Clause("rdfs9", ("x", TYPE, "d"), (("c", SUBCLASS, "d"), ("x", TYPE, "c")))
RDFS11 = Clause("rdfs11", ("c", SUBCLASS, "e"), (("c", SUBCLASS, "d"), ("d", SUBCLASS, "e")))
RDFS2 = Clause("rdfs2", ("x", TYPE, "c"), (("p", DOMAIN, "c"), ("x", "p", "y")))
PATTERNS = (("c", SUBCLASS, "d"), ("p", DOMAIN, "c"))
CHAIN: list[Fact] = [(20, SUBCLASS, 22), (22, SUBCLASS, 24)]


def test_schema_atoms_become_rows_of_parameters() -> None:
    found = specialise([RDFS9, RDFS11, RDFS2], PATTERNS, [*CHAIN, (40, DOMAIN, 20)], 100)
    assert found.schema.all == {*CHAIN, (20, SUBCLASS, 24), (40, DOMAIN, 20)}
    assert found.rows == {
        Template(Clause("rdfs9", ("x", TYPE, "d"), (("x", TYPE, "c"),)), ("c", "d")): {
            (20, 22),
            (22, 24),
            (20, 24),
        },
        Template(Clause("rdfs2", ("x", TYPE, "c"), (("x", "p", "y"),)), ("p", "c")): {(40, 20)},
    }
    assert found.demoted == () and found.besides == set()


def test_rules_whose_schema_is_empty_vanish() -> None:
    assert specialise([RDFS9, RDFS2], PATTERNS, [], 100).rows == {}


def test_facts_that_are_not_schema_are_passed_over() -> None:
    found = specialise([RDFS9], PATTERNS, [(60, TYPE, 20), *CHAIN], 100)
    assert found.schema.all == set(CHAIN)


def test_rules_without_schema_stay_as_they_are() -> None:
    plain = Clause("n", ("x", 40, "z"), (("x", 40, "y"), ("y", 40, "z")))
    assert specialise([plain], PATTERNS, [], 100).rows == {Template(plain): {()}}
    assert specialise([RDFS9], (), CHAIN, 100).rows == {Template(RDFS9): {()}}


def test_variables_that_nothing_else_needs_are_no_parameters() -> None:
    rule = Clause("n", ("x", TYPE, 30), (("p", DOMAIN, "c"), ("x", "p", "y")))
    found = specialise([rule], PATTERNS, [(40, DOMAIN, 20), (40, DOMAIN, 22)], 100)
    assert [(t.parameters, rows) for t, rows in found.rows.items()] == [(("p",), {(40,)})]


def test_constraints_keep_all_their_variables_and_their_body() -> None:
    body = (("p", DOMAIN, "c"), ("x", "p", "y"))
    found = specialise([Clause("n", None, body)], PATTERNS, [(40, DOMAIN, 20)], 100)
    assert found.rows == {
        Template(Clause("n", None, (("x", "p", "y"),)), ("p", "c"), body): {(40, 20)}
    }


def test_a_constraint_over_schema_alone_has_a_row_for_each_way_to_break_it() -> None:
    rule = Clause("n", None, (("c", SUBCLASS, "c"),))
    found = specialise([rule], PATTERNS, [*CHAIN, (26, SUBCLASS, 26)], 100)
    assert list(found.rows.values()) == [{(26,)}]
    assert specialise([rule], PATTERNS, CHAIN, 100).rows == {}


def test_checks_of_schema_variables_are_decided_and_others_stay() -> None:
    checks = (Check("!=", ("c", "d")), Check("is_iri", ("x",)), Check("!=", ("x", "c")))
    rule = Clause("n", RDFS9.head, RDFS9.body, checks)
    found = specialise([rule], PATTERNS, [(20, SUBCLASS, 20), (20, SUBCLASS, 22)], 100)
    ((template, rows),) = found.rows.items()
    assert template.clause.checks == checks[1:] and rows == {(20, 22)}


def test_checks_of_texts_are_left_to_the_engine() -> None:
    check = Check("<", ("x", "c"))
    rule = Clause("n", RDFS9.head, RDFS9.body, (check,))
    ((template, rows),) = specialise([rule], PATTERNS, [(20, SUBCLASS, 22)], 100).rows.items()
    assert template.clause.checks == (check,) and rows == {(20, 22)}
    assert specialise([rule], PATTERNS, [], 100).rows == {}


def test_rules_that_compare_texts_of_the_schema_are_not_specialised() -> None:
    rule = Clause("n", RDFS9.head, RDFS9.body, (Check("<", ("c", "d")),))
    assert specialise([rule], PATTERNS, CHAIN, 100).rows == {Template(rule): {()}}
    of_schema = Clause("n", RDFS11.head, RDFS11.body, (Check("is_ill_typed", ("c",)),))
    assert specialise([of_schema], PATTERNS, CHAIN, 100).rows == {Template(of_schema): {()}}


def test_what_follows_from_schema_without_being_schema_comes_besides() -> None:
    rule = Clause("n", ("c", TYPE, 30), (("c", SUBCLASS, "d"),))
    found = specialise([rule, Clause("f", (1, 2, 3), ())], PATTERNS, CHAIN, 100)
    assert found.besides == {(20, TYPE, 30), (22, TYPE, 30), (1, 2, 3)}
    assert found.rows == {}


def test_a_pattern_with_too_many_facts_becomes_data() -> None:
    long = [(n, SUBCLASS, n + 2) for n in range(20, 60, 2)]
    found = specialise([RDFS9, RDFS11, RDFS2], PATTERNS, [*long, (40, DOMAIN, 20)], 50)
    assert found.demoted == (("c", SUBCLASS, "d"),)
    assert found.schema.all == {(40, DOMAIN, 20)}
    assert {t.clause.name: rows for t, rows in found.rows.items()} == {
        "rdfs9": {()},
        "rdfs11": {()},
        "rdfs2": {(40, 20)},
    }


def test_patterns_of_one_meaning_are_demoted_together() -> None:
    same = (("c", SUBCLASS, "d"), ("x", SUBCLASS, "y"))
    assert specialise([RDFS11], same, CHAIN, 2).demoted == same


def test_too_many_rows_of_parameters_demote_too() -> None:
    pairs = Clause(
        "n", ("x", TYPE, 30), (("c", SUBCLASS, "d"), ("e", SUBCLASS, "f"), ("x", "c", "f"))
    )
    some = [(n, SUBCLASS, n + 2) for n in range(20, 40, 4)]
    assert specialise([pairs], PATTERNS, some, 20).demoted == PATTERNS[:1]


def test_a_driver_that_may_hold_nothing_demotes_everything() -> None:
    found = specialise([RDFS9, RDFS2], PATTERNS, [*CHAIN, (40, DOMAIN, 20)], 0)
    assert set(found.demoted) == set(PATTERNS)
    assert found.rows == {Template(RDFS9): {()}, Template(RDFS2): {()}}


@pytest.mark.parametrize("limit", [0, 2, 100_000])
@seriously(80)
@given(case=st.booleans().flatmap(lambda only: st.tuples(programs(only), facts(only))))
def test_specialised_rules_derive_what_the_rules_do(case: tuple, limit: int) -> None:
    program = decided_by_ids(case[0])
    shape = layout(program, ARITIES)
    rules = clausal.clauses(program, shape, FULL.of)
    patterns = clausal.patterns(program, shape, FULL.of)
    given_facts = rows_of(case[1], shape)
    expected, _ = close(rules, given_facts, limit=100_000)
    known = set(given_facts)
    while True:
        made = specialise(rules, patterns, known, limit)
        special = [
            clause
            for template, rows in made.rows.items()
            for row in rows
            if (clause := template.clause.bound(dict(zip(template.parameters, row, strict=True))))
        ]
        found, _ = close(special, known | made.schema.all | made.besides, limit=100_000)
        if found.all == known:
            break
        known = set(found.all)
    assert known == expected.all
