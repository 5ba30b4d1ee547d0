"""What must hold of a program: all that is wrong is said at once, and nothing else."""

from __future__ import annotations

import pytest

from inferlake.errors import RuleError
from inferlake.rules.check import checked, is_auxiliary
from inferlake.rules.model import Program
from inferlake.rules.parse import parse


def complaints(text: str) -> list[str]:
    try:
        checked(parse(text, "f.dl"))
    except RuleError as exc:
        return [line.split(":")[0].split()[0] for line in str(exc).splitlines()]
    return []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p(1) .",
        "p(?x) :- q(?x, ?y), ?x = ?y, ?y < 3 .",
        "p(?x) :- q(?x, 1) . q(?x, ?y) :- p(?x), p(?y) .",
        "[?x, ?y, ?z] :- [?z, ?y, ?x] .",
        '[?x, a, "literal"] :- ["literal", 1, ?x] .',
        "false :- p(?x) .",
        "@schema p(?x, ?y), [?x, a, ?y], unused(1, 2, 3) . q(?x) :- p(?x, ?x) .",
        "p(1) :- 1 < 2 .",
    ],
)
def test_a_sound_program_is_returned_as_it_is(text: str) -> None:
    program = parse(text)
    assert checked(program) is program


def test_everything_wrong_is_listed_at_once() -> None:
    text = (
        "p(?x, ?y, ?x) :- q(?z) .\n"  # two variables, each said once
        "q(?x) :- p(?x), ?u < ?v, is_iri(?u) .\n"
        '["s", "p", 1] .\n'
        "false .\n"
    )
    assert complaints(text) == ["R102"] * 2 + ["R103"] * 3 + ["R109", "R104", "R107"]


def test_a_test_does_not_bind() -> None:
    assert complaints("p(?x) :- ?x = 1 .") == ["R102", "R103"]


def test_the_first_use_of_a_relation_decides_its_arity() -> None:
    assert complaints("p(1) . p(1, 2) . p(1, 2) . p(2) .") == ["R104", "R104"]


def test_an_arity_is_counted_in_bodies_and_in_contradictions() -> None:
    assert complaints("p(1) . false :- p(?x, ?y) .") == ["R104"]
    assert complaints("p(1) . q(?x) :- p(?x, ?x, ?x) .") == ["R104"]


def test_a_triple_of_too_few_terms_is_no_reason_to_fall_over() -> None:
    assert complaints("triple(1) .") == ["R104"]
    assert complaints("triple(?x, ?x) :- p(?x) .") == ["R104"]


def test_literals_are_refused_where_rdf_has_none() -> None:
    assert complaints('["a", a, 1] .') == ["R107"]
    assert complaints("[?x, true, ?x] :- p(?x) .") == ["R107"]
    assert complaints("p(1) :- [1, 1, 1] .") == []  # matches nothing, and says nothing


def test_programs_are_checked_together() -> None:
    one, other = parse("p(1) .", "one.dl"), parse("p(1, 2) .", "other.dl")
    with pytest.raises(RuleError, match=r"R104 other\.dl:1:1: .* 1 at one\.dl:1:1"):
        checked(one + other)


def test_no_program_at_all_is_sound() -> None:
    assert checked(Program()) == Program()


def test_auxiliary_relations_begin_with_an_underscore() -> None:
    assert is_auxiliary("_list") and not is_auxiliary("list") and not is_auxiliary("a_b")
