"""Rules in ids: layouts, rows, and the checks that make derived triples RDF."""

from __future__ import annotations

import pytest

from inferlake.plan.clauses import (
    FILLER,
    Check,
    Clause,
    Layout,
    layout,
    patterns,
    substituted,
    variables,
)
from inferlake.rules.parse import parse
from inferlake.terms import FULL
from tests.unit.plan.made import clause, clauses, id_of

WIDE = Layout({"triple": 3, "edge": 2, "wide": 5})


def test_triples_alone_need_no_column_for_the_relation() -> None:
    shape = Layout({"triple": 3})
    assert shape.columns == ("s", "p", "o")
    assert shape.row("triple", (1, "x", 3)) == (1, "x", 3)
    assert shape.named((1, 2, 3)) == ("triple", (1, 2, 3))
    assert shape.fact([1, 2, 3]) == (1, 2, 3)


def test_other_relations_are_numbers_in_the_first_column() -> None:
    assert WIDE.columns == ("r", "s", "p", "o", "c3", "c4")
    assert [WIDE.number(name) for name in ("edge", "triple", "wide")] == [0, 1, 2]
    assert WIDE.row("edge", (7, "x")) == (0, 7, "x", FILLER, FILLER, FILLER)


@pytest.mark.parametrize("name", ["edge", "triple", "wide"])
def test_facts_come_back_as_they_went(name: str) -> None:
    args = tuple(range(10, 10 + WIDE.arities[name]))
    fact = WIDE.row(name, args)
    assert WIDE.named(fact) == (name, args)  # type: ignore[arg-type]
    # Engines have zeros where the relation ends.
    assert WIDE.fact([slot or 0 for slot in fact]) == fact  # type: ignore[misc]


def test_facts_of_one_relation_need_its_arguments_alone() -> None:
    edges = [WIDE.row("edge", (1, 2)), WIDE.row("edge", ("x", "y"))]
    assert WIDE.shared(edges) == "edge"
    assert WIDE.columns_of("edge") == ("s", "p")
    assert WIDE.shared([*edges, WIDE.row("triple", (1, 2, 3))]) is None
    assert WIDE.shared([(None,) * 6]) is None
    assert WIDE.columns_of(None) == WIDE.columns
    assert Layout({"triple": 3}).shared([(None, 2, None)]) == "triple"
    # A table without columns would have no rows.
    assert Layout({"triple": 3, "yes": 0}).shared([(1, None, None, None)]) is None


def test_a_layout_knows_relations_that_only_have_facts() -> None:
    program = parse("p(?x) :- q(?x, ?x) .")
    assert layout(program, {"triple": 3}).arities == {"triple": 3, "p": 1, "q": 2}
    assert layout(parse("")).only_triples
    assert layout(program).arguments == ("s", "p")


def test_each_head_is_a_clause() -> None:
    found = clauses("[n] p(?x), q(?y, ?x) :- r(?x, ?y) .")
    assert [(one.name, one.head) for one in found] == [
        ("n", (0, "x", None)),
        ("n", (1, "y", "x")),
    ]


def test_repeated_atoms_count_once_and_heads_in_the_body_say_nothing() -> None:
    (one,) = clauses("p(?x), q(?x) :- q(?x), q(?x) .")
    assert one.head == (0, "x") and one.body == ((1, "x"),)
    assert clauses("[?x, :p, ?y] :- [?x, :p, ?y] .") == ()


def test_a_contradiction_has_no_head() -> None:
    assert clause("false :- p(?x) .").head is None


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("[?x, :p, ?y] :- [?x, :q, ?y] .", []),
        ("[?y, :p, ?x] :- [?x, :q, ?y] .", ["is_resource"]),
        ("[?x, ?y, ?x] :- [?x, :q, ?y] .", ["is_iri"]),
        ("[?p, ?p, ?p] :- [?x, ?p, ?y] .", []),
        ("[?x, ?x, ?y] :- [?x, :q, ?y] .", ["is_iri"]),
        ("[?x, :p, ?y] :- edge(?x, ?y) .", ["is_resource"]),
        ("[?x, ?y, ?z] :- wide(?x, ?y, ?z) .", ["is_resource", "is_iri"]),
        ("edge(?y, ?x) :- [?x, :q, ?y] .", []),
        ("[?y, :p, ?x] :- [?x, :q, ?y], [?y, :q, ?x] .", []),
        ("[:a, :b, ?x] :- edge(?x, ?x) .", []),
    ],
)
def test_derived_triples_are_rdf_by_position_or_by_check(text: str, asked: list[str]) -> None:
    assert [check.name for check in clause(text).checks] == asked


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ("1 < 2", True),
        ("1 > 2", False),
        ("1 = 1", True),
        ("1 = 01", False),
        ('"a" != "b"', True),
        ("is_iri(:a)", True),
        ("is_blank(:a)", False),
        ('is_ill_typed("x"^^xsd:integer)', True),
        ("is_ill_typed(1)", False),
        ("has_datatype(1, xsd:integer)", True),
        ("has_datatype(1, xsd:int)", False),
    ],
)
def test_tests_on_constants_are_decided_at_once(test: str, kept: bool) -> None:
    expected = clauses("p(?x) :- q(?x) .") if kept else ()
    assert clauses(f"p(?x) :- q(?x), {test} .") == tuple(
        Clause("line2", one.head, one.body) for one in expected
    )
    assert len(clauses(f"p(1) :- {test} .")) == kept


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        (Check("=", ("x", "x")), True),
        (Check("!=", ("x", "x")), False),
        (Check("=", (1, 1)), True),
        (Check("=", (1, 2)), False),
        (Check("!=", (1, 2)), True),
        (Check("=", ("x", 2)), None),
        (Check("!=", ("x", "y")), None),
        (Check("is_iri", (2,)), True),
        (Check("is_iri", (3,)), False),
        (Check("is_iri", (-2,)), False),
        (Check("is_resource", (3,)), True),
        (Check("is_resource", (-2,)), False),
        (Check("is_literal", (-2,)), True),
        (Check("is_literal", (0,)), False),
        (Check("is_blank", (3,)), True),
        (Check("is_blank", (-3,)), False),
        (Check("is_blank", ("x",)), None),
        (Check("is_ill_typed", (-2,)), None),
        (Check("<", (-2, -2)), None),
        (Check("has_datatype", (-2, 4)), None),
    ],
)
def test_ids_decide_some_checks(check: Check, outcome: bool | None) -> None:
    assert check.decide() is outcome
    assert check.needs_text == (check.name in ("is_ill_typed", "<", "has_datatype"))


def test_binding_replaces_at_once_and_drops_what_is_decided() -> None:
    one = Clause(
        "n", ("x", 1, "y"), (("x", 2, "y"),), (Check("!=", ("x", "y")), Check("is_iri", ("x",)))
    )
    assert one.bound({"x": "y", "y": "x"}) == Clause(
        "n", ("y", 1, "x"), (("y", 2, "x"),), (Check("!=", ("y", "x")), Check("is_iri", ("y",)))
    )
    assert one.bound({"x": 4}) == Clause("n", (4, 1, "y"), ((4, 2, "y"),), (Check("!=", (4, "y")),))
    assert one.bound({"x": 3}) is None
    assert one.bound({"x": "y"}) is None


def test_substitution_leaves_filling_and_unknown_variables() -> None:
    assert substituted((1, "x", None, "z"), {"x": 5, "y": 6}) == (1, 5, None, "z")
    assert list(variables([("b", 1, "a"), (None, "b", "c")])) == ["b", "a", "c"]


def test_schema_patterns_without_a_constant_are_left_out() -> None:
    program = parse("@schema [?x, ?p, ?y], [?x, a, ?y], q(?x), other(?x) . p(?x) :- q(?x) .")
    shape = layout(program, {"triple": 3})
    assert patterns(program, shape, FULL.of) == (
        (2, "x", "p", "y"),  # here the relation itself is one
        (2, "x", id_of("rdf:type"), "y"),
        (1, "x", None, None),
    )
    alone = parse("@schema [?x, ?p, ?y], [?x, a, ?y] .")
    assert patterns(alone, layout(alone), FULL.of) == (("x", id_of("rdf:type"), "y"),)
