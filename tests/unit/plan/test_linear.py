"""The expander: by example, and against the repeated application of what it is made of."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inferlake.plan.clauses import Check, Clause, Fact
from inferlake.plan.linear import Entry, TooManyEntries, composed, entry, expander
from inferlake.terms.ids import is_iri, is_resource
from tests.unit.plan.made import FRESH, IDS, random_clauses, seriously

TYPE, P, Q, R = 2, 4, 6, 8
A, B, C = 20, 22, 24


def subclass(one: int, other: int) -> Entry:
    return Entry(("v0", TYPE, one), ("v0", TYPE, other))


def inverse(one: int, other: int) -> Entry:
    return Entry(("v0", one, "v2"), ("v2", other, "v0"))


UP = Entry(("v0", P, "v2"), ("v0", Q, "v2"))


# --- One entry ----------------------------------------------------------------------------------


def test_variables_are_named_by_place() -> None:
    clause = Clause("n", ("z", Q, "x"), (("x", P, "z"),), (Check("!=", ("z", "x")),))
    assert entry(clause) == Entry(("v0", P, "v2"), ("v2", Q, "v0"), (Check("!=", ("v2", "v0")),))


def test_a_repeated_variable_is_named_by_its_first_place() -> None:
    assert entry(Clause("n", ("x", Q, "y"), (("x", "y", "x"),))) == Entry(
        ("v0", "v1", "v0"), ("v0", Q, "v1")
    )


def test_names_that_look_like_places_are_renamed_at_once() -> None:
    assert entry(Clause("n", ("v2", Q, "v0"), (("v2", P, "v0"),))) == UP


def test_what_gives_the_fact_itself_is_no_entry() -> None:
    assert entry(Clause("n", ("x", P, "y"), (("x", P, "y"),))) is None
    assert entry(Clause("n", ("y", P, "x"), (("x", P, "x"),), (Check("!=", ("x", "x")),))) is None


def test_filling_stays() -> None:
    clause = Clause("n", (1, "x", None), ((0, "x", "y"),))
    assert entry(clause) == Entry((0, "v1", "v2"), (1, "v1", None))


def test_a_guard_is_where_the_constants_are() -> None:
    assert subclass(A, B).guard == (1, 2) and UP.guard == (1,)
    assert Entry(("v0", "v1", "v2"), ("v2", P, "v0")).guard == ()


# --- Two entries --------------------------------------------------------------------------------


def test_two_steps_up_are_one() -> None:
    assert composed(subclass(A, B), subclass(B, C)) == subclass(A, C)
    assert composed(subclass(B, C), subclass(A, B)) is None


def test_an_inverse_of_an_inverse_is_the_fact_itself() -> None:
    assert composed(inverse(P, Q), inverse(Q, P)) is None
    assert composed(inverse(P, P), inverse(P, P)) is None
    assert expander([inverse(P, Q), inverse(Q, P)]) == {inverse(P, Q), inverse(Q, P)}
    assert expander([inverse(P, P)]) == {inverse(P, P)}


def test_a_guard_on_an_object_guards_what_led_there() -> None:
    domain = Entry(("v0", Q, A), ("v0", TYPE, B))
    assert composed(UP, domain) == Entry(("v0", P, A), ("v0", TYPE, B))
    assert composed(inverse(P, Q), domain) == Entry((A, P, "v2"), ("v2", TYPE, B))
    assert composed(Entry(("v0", P, "v2"), ("v0", Q, C)), domain) is None


def test_a_second_repeated_variable_makes_the_first_repeat() -> None:
    loop = Entry(("v0", Q, "v0"), ("v0", TYPE, A))
    assert composed(UP, loop) == Entry(("v0", P, "v0"), ("v0", TYPE, A))
    assert composed(Entry(("v0", P, "v2"), (B, Q, "v2")), loop) == Entry(("v0", P, B), (B, TYPE, A))
    assert composed(Entry(("v0", P, "v2"), (B, Q, C)), loop) is None


def test_a_first_repeated_variable_repeats_in_the_head() -> None:
    loop = Entry(("v0", P, "v0"), ("v0", Q, "v0"))
    assert composed(loop, Entry(("v0", Q, "v2"), ("v2", R, "v0"))) == Entry(
        ("v0", P, "v0"), ("v0", R, "v0")
    )
    assert composed(loop, Entry(("v0", Q, A), ("v0", R, B))) == Entry((A, P, A), (A, R, B))


def test_variables_join_through_predicates_too() -> None:
    any_to_type = Entry(("v0", "v1", "v2"), ("v1", TYPE, A))
    diagonal = Entry(("v0", "v1", "v0"), ("v0", "v1", B))
    assert composed(any_to_type, diagonal) == Entry(("v0", A, "v2"), (A, TYPE, B))


def test_checks_come_along_and_are_decided() -> None:
    literal = Check("is_literal", ("v2",))
    checked = Entry(("v0", Q, "v2"), ("v0", R, "v2"), (literal,))
    assert composed(UP, checked) == Entry(("v0", P, "v2"), ("v0", R, "v2"), (literal,))
    assert composed(Entry(("v0", P, "v2"), ("v0", Q, A)), checked) is None  # A is an IRI
    resource = Entry(("v0", P, "v2"), ("v2", Q, "v0"), (Check("is_resource", ("v2",)),))
    swapped = Entry(("v0", Q, "v2"), ("v2", R, "v0"), (Check("is_resource", ("v2",)),))
    both = composed(resource, swapped)
    assert both is not None and both.head == ("v0", R, "v2")
    assert set(both.checks) == {Check("is_resource", ("v0",)), Check("is_resource", ("v2",))}


def test_equal_checks_of_both_count_once() -> None:
    check = Check("!=", ("v0", "v2"))
    one, other = Entry(UP.body, UP.head, (check,)), Entry(UP.head, ("v0", R, "v2"), (check,))
    assert composed(one, other) == Entry(("v0", P, "v2"), ("v0", R, "v2"), (check,))


# --- All of them --------------------------------------------------------------------------------


def test_a_hierarchy_of_classes_is_closed() -> None:
    steps = [subclass(n, n + 2) for n in range(100, 140, 2)]
    assert expander(steps) == {
        subclass(n, m) for n in range(100, 142, 2) for m in range(n + 2, 142, 2)
    }


def test_cycles_end() -> None:
    found = expander([subclass(A, B), subclass(B, C), subclass(C, A)])
    assert found == {subclass(*pair) for pair in itertools.permutations((A, B, C), 2)}


def test_properties_reach_the_classes_of_their_domains_and_ranges() -> None:
    domain = Entry(("v0", Q, "v2"), ("v0", TYPE, A))
    range_ = Entry(("v0", Q, "v2"), ("v2", TYPE, B), (Check("is_resource", ("v2",)),))
    found = expander([UP, domain, range_, subclass(A, C)])
    from_p = {(one.head, one.checks) for one in found if one.body == UP.body}
    assert from_p == {
        (UP.head, ()),
        (("v0", TYPE, A), ()),
        (("v0", TYPE, C), ()),
        (("v2", TYPE, B), range_.checks),
    }


def test_too_many_compositions_are_given_up() -> None:
    steps = [subclass(n, n + 2) for n in range(100, 140, 2)]
    assert len(expander(steps, limit=210)) == 210
    with pytest.raises(TooManyEntries):
        expander(steps, limit=209)


def holds(check: Check, bindings: dict) -> bool:
    args = [bindings.get(arg, arg) for arg in check.args]
    match check.name:
        case "=":
            return args[0] == args[1]
        case "!=":
            return args[0] != args[1]
        case "is_resource":
            return is_resource(args[0])
        case "is_iri":
            return is_iri(args[0])
        case "is_literal":
            return not is_resource(args[0])
    return is_resource(args[0]) and not is_iri(args[0])


def applied(one: Entry, fact: Fact) -> Fact | None:
    """Return what an entry makes of a fact, said as plainly as possible."""
    bindings: dict = {}
    for slot, value in zip(one.body, fact, strict=True):
        if isinstance(slot, str):
            if bindings.setdefault(slot, value) != value:
                return None
        elif slot != value:
            return None
    if not all(holds(check, bindings) for check in one.checks):
        return None
    return tuple(bindings.get(slot, slot) for slot in one.head)


def step(entries: set[Entry], facts: set[Fact]) -> set[Fact]:
    return {made for one in entries for fact in facts if (made := applied(one, fact)) is not None}


FACTS = list(itertools.product((*IDS, FRESH), repeat=3))


@seriously(200)
@given(
    st.lists(random_clauses(most_atoms=1), min_size=1, max_size=5),
    st.lists(st.sampled_from(FACTS), min_size=8, max_size=8),
)
def test_one_expansion_is_all_that_base_entries_ever_make(clauses: list, facts: list) -> None:
    base = {made for clause in clauses if (made := entry(clause)) is not None}
    try:
        closed = expander(base, limit=2_000)
    except TooManyEntries:
        assume(False)
        return
    for fact in facts:
        reached = {fact}
        while new := step(base, reached) - reached:
            reached |= new
        assert {fact} | step(closed, {fact}) == reached
