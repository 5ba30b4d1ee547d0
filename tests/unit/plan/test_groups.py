"""Rules of one shape are one group, and no rule is lost or made by that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferlake.plan import clauses as clausal
from inferlake.plan.clauses import Check, Clause, layout
from inferlake.plan.groups import Group, grouped
from inferlake.plan.specialise import Template, specialise
from inferlake.terms import FULL
from tests.property.programs import ARITIES, facts, programs
from tests.unit.plan.made import canonical, random_clauses, rows_of, seriously


def groups(*clauses: Clause) -> tuple[Group, ...]:
    return grouped({Template(clause): {()} for clause in clauses})


def test_thousands_of_rules_of_few_shapes_are_few_groups() -> None:
    # As DBpedia has them: a class of what has a property and a class, in relations of their own.
    joins = [
        Clause(f"j{n}", (n, "a", None), ((n + 1, "a", "b"), (n + 2, "b", None)))
        for n in range(0, 6000, 3)
    ]
    chains = [
        Clause(f"c{n}", (n, "x", "z"), ((n, "x", "y"), (n, "y", "z"))) for n in range(0, 6000, 3)
    ]
    found = groups(*joins, *chains)
    assert sorted((len(group.parameters), len(group.rows)) for group in found) == [
        (1, 2000),
        (3, 2000),
    ]
    assert {name for group in found for name in group.names} == {
        clause.name for clause in (*joins, *chains)
    }


def test_what_all_rules_of_a_group_share_is_no_parameter() -> None:
    (group,) = groups(
        Clause("a", ("x", 1, 5), (("x", 2, "y"), ("y", 1, 7))),
        Clause("b", ("u", 1, 6), (("u", 3, "v"), ("v", 1, 7))),
    )
    assert group.names == ("a", "b")
    assert group.clause.head is not None
    assert group.clause.head[1] == 1 and group.clause.body[1][1:] == (1, 7)
    assert len(group.parameters) == 2 and len(group.rows) == 2


def test_equal_columns_of_constants_are_one() -> None:
    (group,) = groups(*(Clause("t", ("x", n, "z"), (("x", n, "y"), ("y", n, "z"))) for n in (4, 6)))
    (name,) = group.parameters
    assert group.clause.body == (("x0", name, "x1"), ("x1", name, "x2"))
    assert group.rows == {(4,), (6,)}


@pytest.mark.parametrize(
    "other",
    [
        Clause("n", ("x", 5, "y"), (("x", 1, "y"), ("x", 2, "y"))),  # another join
        Clause("n", ("x", 5, "z"), (("x", 1, "y"), ("y", 2, 9))),  # a constant for a variable
        Clause("n", ("z", 5, "x"), (("x", 1, "y"), ("y", 2, "z"))),  # another head
        Clause("n", ("x", 5, "z"), (("x", 1, "y"), ("y", 2, "z")), (Check("!=", ("x", "z")),)),
        Clause("n", ("x", 5, "z"), (("x", 1, "y"),)),
    ],
)
def test_rules_of_other_shapes_stay_apart(other: Clause) -> None:
    one = Clause("n", ("x", 5, "z"), (("x", 1, "y"), ("y", 2, "z")))
    assert len(groups(one, other)) == 2


def test_names_of_variables_make_no_shape() -> None:
    one = Clause("n", ("x", 5, "z"), (("x", 1, "y"), ("y", 2, "z")))
    other = Clause("m", ("b", 5, "a"), (("b", 1, "k0"), ("k0", 2, "a")))
    (group,) = groups(one, other)
    assert group.rows == {()} and group.parameters == () and group.names == ("n", "m")


def test_constants_in_checks_are_parameters_too() -> None:
    (group,) = groups(
        *(
            Clause("n", ("x", 5, "y"), (("x", 1, "y"), ("y", 1, "x")), (Check("<", ("y", n)),))
            for n in (-2, -4)
        )
    )
    assert group.rows == {(-2,), (-4,)}
    assert group.clause.checks == (Check("<", ("x1", group.parameters[0])),)


def test_constraints_stay_apart_with_their_facts() -> None:
    body = (("c", 4, "d"), ("x", 2, "c"))
    template = Template(Clause("one", None, body[1:]), ("c", "d"), body)
    other = Template(Clause("two", None, body[1:]), ("c", "d"), body)
    found = grouped({template: {(1, 2), (3, 4)}, other: {(1, 2)}})
    assert [group.names for group in found] == [("one",), ("two",)]
    assert found[0].origin == body and found[0].rows == {(1, 2), (3, 4)}


def test_a_group_knows_what_it_derives_and_reads() -> None:
    (group,) = groups(*(Clause("t", ("x", n, "z"), (("x", n, "y"), ("y", 8, "z"))) for n in (4, 6)))
    assert set(group.heads.rows) == {(None, 4, None), (None, 6, None)}
    assert set(group.atoms[0].rows) == {(None, 4, None), (None, 6, None)}
    assert group.atoms[1].rows == ((None, 8, None),)
    assert len(group.clauses) == 2


@seriously(200)
@given(st.lists(random_clauses(), max_size=8))
def test_grouping_keeps_every_clause_and_makes_none(clauses: list[Clause]) -> None:
    given_clauses = [made for one in clauses if (made := one.bound({})) is not None]
    found = {canonical(one) for group in groups(*given_clauses) for one in group.clauses}
    assert found == {canonical(one) for one in given_clauses}


@seriously(100)
@given(st.booleans().flatmap(lambda only: st.tuples(programs(only), facts(only))))
def test_grouping_keeps_every_row_of_specialised_rules(case: tuple) -> None:
    program, some = case
    shape = layout(program, ARITIES)
    rules = clausal.clauses(program, shape, FULL.of)
    patterns = clausal.patterns(program, shape, FULL.of)
    templates = specialise(rules, patterns, rows_of(some, shape), 1000).rows
    expected = {
        canonical(clause)
        for template, rows in templates.items()
        for row in rows
        if (clause := template.clause.bound(dict(zip(template.parameters, row, strict=True))))
    }
    assert {canonical(one) for group in grouped(templates) for one in group.clauses} == expected
