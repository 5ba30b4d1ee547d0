"""The order of groups: what others need comes first."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from inferlake.plan.clauses import Clause, Fact
from inferlake.plan.driver import bound
from inferlake.plan.groups import Group, grouped
from inferlake.plan.linear import Entry, entry
from inferlake.plan.specialise import Template
from inferlake.plan.strata import _components, strata
from tests.unit.plan.made import FRESH, IDS, clauses, random_clauses, seriously


def alone(clause: Clause) -> Group:
    (group,) = grouped({Template(clause): {()}})
    return group


def order(*rules: Clause, entries: tuple[Entry, ...] = ()) -> list[int]:
    return strata([alone(rule) for rule in rules], entries)


def written(text: str) -> list[int]:
    return order(*clauses(text))


def test_nothing_has_no_strata() -> None:
    assert strata([], []) == []


def test_what_is_needed_comes_first_however_it_is_written() -> None:
    chain = (
        "[?x, :c, ?y] :- [?x, :b, ?y], [?y, :b, ?x] . [?x, :b, ?y] :- [?x, :a, ?y], [?y, :a, ?x] ."
    )
    assert written(chain) == [1, 0]


def test_constants_tell_rules_over_one_relation_apart() -> None:
    first, second = written(
        "[?x, a, :B] :- [?x, a, :A], [?x, :p, ?y] . [?x, a, :C] :- [?x, a, :B], [?x, :p, ?y] ."
    )
    assert first < second


def test_a_recursive_pair_shares_a_stratum() -> None:
    found = written(
        "[?x, :a, ?y] :- [?x, :b, ?y], [?y, :b, ?x] ."
        "[?x, :b, ?y] :- [?x, :a, ?y], [?y, :a, ?x] ."
        "[?x, :c, ?y] :- [?x, :a, ?y], [?y, :a, ?x] ."
    )
    assert found[0] == found[1] < found[2]


def test_a_variable_predicate_needs_everything() -> None:
    found = written(
        "[?x, ?p, ?z] :- [?x, ?p, ?y], [?y, :same, ?z] ."
        "[?x, :a, ?y] :- [?x, :b, ?y], [?y, :b, ?x] ."
    )
    assert found[0] == found[1]


def test_what_entries_make_of_a_fact_feeds_too() -> None:
    makes = Clause("a", ("x", 2, "y"), (("x", 4, "y"), ("y", 4, "x")))
    takes = Clause("b", ("x", 10, "y"), (("x", 8, "y"), ("y", 8, "x")))
    up = [Entry(("v0", n, "v2"), ("v0", n + 2, "v2")) for n in (2, 4, 6)]
    assert order(takes, makes, entries=(up[0], up[1], up[2])) == [1, 0]
    # Entries need not be closed: here the second step leads from the one to the other and back.
    back = Entry(("v0", 10, "v2"), ("v0", 4, "v2"))
    assert order(takes, makes, entries=(*up, back)) == [0, 0]


def test_entries_that_guard_an_object_do_not_pass_others() -> None:
    makes = Clause("a", ("x", 2, 20), (("x", 4, "y"), ("y", 4, "x")))
    takes = Clause("b", ("x", 4, 30), (("x", 8, "y"), ("y", 8, "x")))
    keep = Entry(("v0", 2, "v2"), ("v0", 6, "v2"))
    wrong = Entry(("v0", 6, 22), ("v0", 8, "v2"))
    assert order(makes, takes, entries=(keep, wrong)) == [1, 0]


def test_long_chains_do_not_recurse() -> None:
    last = 20_000
    chain = [[n + 1] if n < last else [] for n in range(last + 1)]
    assert _components(chain) == list(range(last + 1))
    chain[last] = [0]
    assert set(_components(chain)) == {0}


WORLD = list(itertools.product((*IDS, FRESH), repeat=3))


def feeds(one: Clause, other: Clause, entries: list[Entry]) -> bool:
    """Tell by trying all facts whether what `one` derives, and what entries make of it, fits."""
    assert one.head is not None
    made: set[Fact] = {fact for fact in WORLD if bound(one.head, fact, {}) is not None}
    while True:
        more = {
            tuple(bindings.get(slot, slot) if isinstance(slot, str) else slot for slot in step.head)
            for step in entries
            for fact in made
            if (bindings := bound(step.body, fact, {})) is not None
        }
        if more <= made:
            break
        made |= more  # type: ignore[arg-type]  # every variable is bound
    return any(bound(row, fact, {}) is not None for row in other.body for fact in made)


@seriously(60)
@given(
    st.lists(random_clauses(), min_size=2, max_size=4),
    st.lists(random_clauses(most_atoms=1, with_checks=False), max_size=3),
)
def test_a_group_that_feeds_another_never_comes_later(rules: list, linear: list) -> None:
    entries = [made for clause in linear if (made := entry(clause)) is not None]
    kept = [made for rule in rules if (made := rule.bound({})) is not None]
    found = strata([alone(rule) for rule in kept], entries)
    for (one, first), (other, second) in itertools.permutations(zip(kept, found, strict=True), 2):
        assert first <= second or not feeds(one, other, entries)
