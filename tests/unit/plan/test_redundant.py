"""Applications that only repeat: the VLog paper's examples, and lean closures against full ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from inferlake.plan.clauses import Check, Clause, Fact, substituted
from inferlake.plan.driver import Bindings, bound, close
from inferlake.plan.groups import Group, grouped
from inferlake.plan.redundant import only_repeats, resolvent
from inferlake.plan.specialise import Template
from inferlake.plan.strata import strata
from tests.unit.plan.made import clause, seriously, triple

TRANSITIVE = clause("[?x, :hasPart, ?z] :- [?x, :hasPart, ?y], [?y, :hasPart, ?z] .")
DOMAIN = clause("[?x, a, :Compound] :- [?x, :hasPart, ?y], [?x, :known, ?k] .")
# Rules (4) and (5) of the paper, the inverse properties being data.
TO_INVERSE = clause("t(?y, ?w, ?x) :- inverse(?v, ?w), t(?x, ?v, ?y) .")
FROM_INVERSE = clause("t(?y, ?v, ?x) :- inverse(?v, ?w), t(?x, ?w, ?y) .")
RDFS9 = clause("[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .")
RDFS11 = clause(
    "[?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] ."
)
SYMMETRIC = clause("t(?y, ?p, ?x) :- symmetric(?p, ?p), t(?x, ?p, ?y) .")


# --- The resolvent ------------------------------------------------------------------------------


def test_a_resolvent_speaks_of_the_facts_behind() -> None:
    found = resolvent(DOMAIN, 0, TRANSITIVE)
    assert found is not None and len(found.body) == 3
    (one, _, _), (_, _, last), (known, _, _) = found.body
    assert found.head is not None and found.head[0] == one == known
    assert last != "y"  # the maker's own variables are others than the taker's


def test_a_resolvent_of_what_does_not_meet_is_none() -> None:
    assert resolvent(RDFS9, 0, DOMAIN) is None
    assert resolvent(RDFS9, 1, RDFS11) is None
    assert only_repeats([RDFS9], 0, [DOMAIN], [])


def test_a_resolvent_whose_check_fails_is_none() -> None:
    maker = Clause("m", ("x", 2, 20), (("x", 4, "y"), ("y", 4, "x")))
    taker = Clause(
        "t", ("x", 6, "y"), (("x", 2, "y"), ("y", 4, "x")), (Check("is_literal", ("y",)),)
    )
    assert resolvent(taker, 0, maker) is None


# --- Examples -----------------------------------------------------------------------------------


def test_a_domain_is_not_asked_of_what_transitivity_derived() -> None:
    assert only_repeats([DOMAIN], 0, [TRANSITIVE], [])


def test_a_range_is_not_asked_of_what_transitivity_derived() -> None:
    range_ = clause("[?y, a, :Part] :- [?x, :hasPart, ?y], [?y, :known, ?k] .")
    assert only_repeats([range_], 0, [TRANSITIVE], [])


def test_an_inverse_of_an_inverse_repeats_only_if_the_data_say_so() -> None:
    # The paper's own example: not redundant by the rules alone, for v may have two inverses.
    assert not only_repeats([FROM_INVERSE], 1, [TO_INVERSE], [])
    # With the inverses in the rules it is.
    there = clause("t(?y, :partOf, ?x) :- t(?x, :hasPart, ?y), ok(?x, ?x) .")
    back = clause("t(?y, :hasPart, ?x) :- t(?x, :partOf, ?y), ok(?y, ?y) .")
    assert only_repeats([back], 0, [there], []) and only_repeats([there], 0, [back], [])


def test_symmetry_applied_to_itself_repeats() -> None:
    assert only_repeats([SYMMETRIC], 1, [SYMMETRIC], [])


def test_classes_of_classes_repeat_once_their_hierarchy_is_closed() -> None:
    assert only_repeats([RDFS9], 1, [RDFS9], [RDFS11])
    assert not only_repeats([RDFS9], 1, [RDFS9], [])


@pytest.mark.parametrize("place", [0, 1])
def test_transitivity_itself_is_not_redundant_in_both_places(place: int) -> None:
    assert not (
        only_repeats([TRANSITIVE], place, [TRANSITIVE], [])
        and only_repeats([TRANSITIVE], 1 - place, [TRANSITIVE], [])
    )


@pytest.mark.parametrize("place", [0, 1])
def test_transitivity_is_not_redundant_where_new_facts_meet(place: int) -> None:
    # x-y-z-u: the new fact x-z and z-u are replaced by x-y and y-u, which has yet to be derived.
    assert not only_repeats([TRANSITIVE], place, [TRANSITIVE], [])


def test_another_relation_is_not_repeated() -> None:
    other = clause("[?x, a, :Compound] :- [?x, :partOf, ?y], [?x, :known, ?k] .")
    maker = clause("[?y, :partOf, ?x] :- [?x, :hasPart, ?y], [?y, :known, ?k] .")
    assert not only_repeats([other], 0, [maker], [])


def test_whether_two_are_the_same_is_looked_at_case_by_case() -> None:
    # If x is its own part first, then what transitivity derived was there before.
    checked = Clause(DOMAIN.name, DOMAIN.head, DOMAIN.body, (Check("!=", ("x", "y")),))
    assert only_repeats([checked], 0, [TRANSITIVE], [])
    # If c and e are one class, then x was in it before.
    settled = Clause(RDFS11.name, RDFS11.head, RDFS11.body, (Check("!=", ("c", "e")),))
    assert only_repeats([RDFS9], 1, [RDFS9], [settled])


@pytest.mark.parametrize(
    "check", [Check("<", ("x", "y")), Check("is_iri", ("y",)), Check("is_ill_typed", ("y",))]
)
def test_a_check_that_the_other_application_may_fail_keeps_both(check: Check) -> None:
    checked = Clause(DOMAIN.name, DOMAIN.head, DOMAIN.body, (check,))
    assert not only_repeats([checked], 0, [TRANSITIVE], [])


def test_settled_rules_with_checks_of_kind_settle_nothing() -> None:
    checked = Clause(RDFS11.name, RDFS11.head, RDFS11.body, (Check("is_iri", ("e",)),))
    assert not only_repeats([RDFS9], 1, [RDFS9], [checked])


def test_checks_of_what_is_left_out_do_not_matter() -> None:
    checked = Clause(DOMAIN.name, DOMAIN.head, DOMAIN.body, (Check("!=", ("x", "y")),))
    assert only_repeats([checked, DOMAIN], 0, [TRANSITIVE], [])


def test_every_pair_must_repeat() -> None:
    other = clause("[?x, :hasPart, ?y] :- [?x, :made, ?y], [?y, :known, ?k] .")
    assert not only_repeats([DOMAIN], 0, [TRANSITIVE, other], [])
    both = clause("[?y, a, :Compound] :- [?x, :hasPart, ?y], [?x, :known, ?k] .")
    assert not only_repeats([DOMAIN, both], 0, [TRANSITIVE], [])


def test_a_fact_may_be_used_only_as_often_as_in_what_is_left_out() -> None:
    # q(x, y) and the new p(y) stand for p(x) and p(y), of which there is one: no replacement.
    taker = Clause("t", (1, "x", "y"), ((2, "x", "x"), (3, "x", "y")))
    maker = Clause("m", (2, "x", "x"), ((3, "x", "y"), (3, "y", "x")))
    assert not only_repeats([taker], 0, [maker], [])


def test_a_group_of_many_rules_is_not_looked_through() -> None:
    many = [Clause("n", ("x", n, "z"), (("x", n, "y"), ("y", n, "z"))) for n in range(50)]
    domains = [Clause("d", ("x", 100, n), (("x", n, "y"), ("x", 101, "k"))) for n in range(50)]
    assert not only_repeats(domains, 0, many, [])
    assert only_repeats(domains[:40], 0, many[:40], [])


# --- A lean evaluation, said plainly ------------------------------------------------------------


@dataclass
class Task:
    group: Group
    stratum: int
    seen: int = 0


def joined(body: tuple, ranges: list[set[Fact]], bindings: Bindings) -> Iterable[Bindings]:
    if not body:
        yield bindings
        return
    for fact in ranges[0]:
        wider = bound(body[0], fact, bindings)
        if wider is not None:
            yield from joined(body[1:], ranges[1:], wider)


def lean(rules: list[Clause], facts: list[Fact], last: bool = False) -> tuple[set[Fact], int]:
    """Return a semi-naive closure, and how often something was left out of it.

    A group leaves out applications at one place of its body: the first, or the `last`. Rules of
    earlier strata have been applied to all facts whenever a group runs.
    """
    groups = grouped({Template(rule): {()} for rule in rules})
    tasks = [Task(*pair) for pair in zip(groups, strata(groups, ()), strict=True)]
    blocks: list[tuple[set[Fact], list[Task]]] = [(set(facts), [])]
    left_out = 0

    def idle(task: Task, place: int, makers: list[Task]) -> bool:
        if not makers or place != (len(task.group.clause.body) - 1 if last else 0):
            return False
        settled = [c for t in tasks if t.stratum < task.stratum for c in t.group.clauses]
        producers = [c for maker in makers for c in maker.group.clauses]
        return only_repeats(task.group.clauses, place, producers, settled)

    def made_by(task: Task) -> set[Fact]:
        nonlocal left_out
        found: set[Fact] = set()
        old = {fact for facts, _ in blocks[: task.seen] for fact in facts}
        everything = {fact for facts, _ in blocks for fact in facts}
        for rule in task.group.clauses:
            for place in range(len(rule.body)):
                new: set[Fact] = set()
                for block, makers in blocks[task.seen :]:
                    if idle(task, place, makers):
                        left_out += 1
                    else:
                        new |= block
                rest = len(rule.body) - place - 1
                ranges = [old] * place + [new] + [everything] * rest
                for bindings in joined(rule.body, ranges, {}):
                    head = rule.bound(bindings)
                    if head is not None and not head.checks:
                        found.add(substituted(rule.head or (), bindings))  # type: ignore[arg-type]
        return found - everything

    while True:
        for stratum in sorted({task.stratum for task in tasks}):
            ran = [t for t in tasks if t.stratum == stratum and t.seen < len(blocks)]
            new = {fact for task in ran for fact in made_by(task)}
            for task in ran:
                task.seen = len(blocks)
            if new:
                blocks.append((new, ran))
                break
        else:
            return {fact for facts, _ in blocks for fact in facts}, left_out


# Few relations and variables, so that rules feed and repeat each other.
_relations, _names = st.sampled_from([0, 2, 4]), st.sampled_from(["x", "y", "z"])
_atoms = st.tuples(_relations, _names, _names)
_values = st.sampled_from([10, 12, 14, 16])
_facts = st.lists(st.tuples(_relations, _values, _values), min_size=3, max_size=9, unique=True)


@st.composite
def _rules(draw) -> Clause:
    body = tuple(draw(st.lists(_atoms, min_size=1, max_size=2, unique=True)))
    names = st.sampled_from(sorted({slot for row in body for slot in row[1:]}))
    head = (draw(_relations), draw(names), draw(names))
    check = (Check("!=", (draw(names), draw(names))),) if draw(st.integers(0, 5)) == 0 else ()
    return Clause("r", head, body, check)


@seriously(400)
@given(st.lists(_rules(), min_size=1, max_size=4), _facts, st.booleans())
def test_a_lean_closure_is_the_closure(rules: list[Clause], facts: list[Fact], last: bool) -> None:
    kept = [made for rule in rules if (made := rule.bound({})) and made.head not in made.body]
    expected, _ = close(kept, facts, limit=10_000)
    found, left_out = lean(kept, facts, last)
    event(f"left something out: {left_out > 0}")
    assert found == expected.all


def test_a_rule_over_what_an_earlier_stratum_made_is_applied() -> None:
    path = clause("[?x, :p, ?z] :- [?x, :e, ?y], [?y, :e, ?z] .")
    use = clause("[?x, :q, ?z] :- [?x, :p, ?z], [?x, :n, ?w] .")
    facts = [triple(text) for text in (":a :e :b", ":b :e :c", ":a :n :w")]
    found, _ = lean([path, use], facts)
    assert found == close([path, use], facts, limit=100)[0].all
    assert len(found) == 5
    # That settled rules find the derived fact again is no reason to leave it out.
    assert not only_repeats([use], 0, [path], [path])


def test_what_is_left_out_saves_work() -> None:
    chain: list[Fact] = [(n, TRANSITIVE.body[0][1], n + 2) for n in range(10, 30, 2)]  # type: ignore[misc]
    known: list[Fact] = [(n, DOMAIN.body[1][1], 1) for n in range(10, 30, 2)]  # type: ignore[misc]
    found, left_out = lean([TRANSITIVE, DOMAIN], [*chain, *known])
    assert found == close([TRANSITIVE, DOMAIN], [*chain, *known], limit=1000)[0].all
    assert left_out > 0
