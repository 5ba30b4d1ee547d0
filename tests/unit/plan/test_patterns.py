"""Patterns against all facts of a small world."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from inferlake.plan.clauses import Fact, Row
from inferlake.plan.patterns import Patterns, RowIndex
from tests.unit.plan.made import FRESH, IDS, rows, seriously

FACTS: list[Fact] = list(itertools.product((*IDS, FRESH), repeat=3))
some_rows = st.lists(rows, max_size=6)


def matching(row: Row, *, repeated: bool = True) -> set[Fact]:
    """Return the facts that match a row, with or without regard to repeated variables."""
    found = set()
    for fact in FACTS:
        bindings: dict = {}
        for place, (slot, value) in enumerate(zip(row, fact, strict=True)):
            name = slot if repeated else (slot, place)
            if (
                (slot != value)
                if isinstance(slot, int)
                else (bindings.setdefault(name, value) != value)
            ):
                break
        else:
            found.add(fact)
    return found


def all_matching(rows: list[Row]) -> set[Fact]:
    return {fact for row in rows for fact in matching(row, repeated=False)}


@seriously(300)
@given(some_rows, rows)
def test_covering_is_matching_all(many: list[Row], row: Row) -> None:
    # One id is in no pattern, so patterns cannot cover a row by listing what may stand there.
    assert Patterns(many).cover(row) == (matching(row) <= all_matching(many))


@seriously(300)
@given(some_rows, rows)
def test_meeting_is_matching_some_but_for_repeated_variables(many: list[Row], row: Row) -> None:
    patterns = Patterns(many)
    assert patterns.meet(row) == bool(matching(row, repeated=False) & all_matching(many))
    assert patterns.meet(row) or not matching(row) & all_matching(many)


@seriously(300)
@given(some_rows, some_rows)
def test_sets_of_patterns_meet_if_a_fact_may_be_in_both(one: list[Row], other: list[Row]) -> None:
    expected = bool(all_matching(one) & all_matching(other))
    assert Patterns(one).meet_any(Patterns(other)) == expected
    assert Patterns(other).meet_any(Patterns(one)) == expected


@seriously(200)
@given(some_rows, rows)
def test_an_index_finds_every_row_that_meets_once(many: list[Row], row: Row) -> None:
    index = RowIndex((one, place) for place, one in enumerate(many))
    expected = [
        place
        for place, one in enumerate(many)
        if matching(one, repeated=False) & matching(row, repeated=False)
    ]
    assert sorted(index.meeting(row)) == expected
    assert sorted(index.meeting(row)) == expected  # and again, from what it has kept


def test_values_are_known_if_every_pattern_has_one() -> None:
    patterns = Patterns([(1, 5, "x"), (2, 5, "y"), (2, 5, 9)])
    assert patterns.values(0, 2) == {1, 2}
    assert patterns.values(0, 1) is None
    assert patterns.values(1, 1) == {5}
    assert patterns.values(2, 9) is None


def test_no_patterns_cover_and_meet_nothing() -> None:
    none = Patterns([])
    assert not none.cover((1, 2, 3)) and not none.meet(("x", "y", "z"))
    assert not none.meet_any(Patterns([("x", "y", "z")]))
    assert none.values(0, 9) == frozenset()


def test_filling_matches_filling() -> None:
    patterns = Patterns([(1, "x", None)])
    assert patterns.cover((1, 7, None)) and not patterns.meet((0, 7, None))
