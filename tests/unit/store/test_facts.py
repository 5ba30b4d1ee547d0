"""Candidates: which files a change can meet, by the statistics in the log alone."""

from __future__ import annotations

import pytest

from inferlake.store.facts import ANY, Candidates
from inferlake.store.table import LiveFile


def file(s: tuple[int, int], p: tuple[int, int], o: tuple[int, int]) -> LiveFile:
    bounds = {"s": s, "p": p, "o": o}
    mins = {name: low for name, (low, _) in bounds.items()}
    maxs = {name: high for name, (_, high) in bounds.items()}
    return LiveFile("part.parquet", 1, 1, {"layer": "asserted", "sign": 1}, mins, maxs)


FILE = file(s=(10, 20), p=(5, 5), o=(-100, -50))


def test_without_candidates_every_file_counts() -> None:
    assert ANY.may_be_in(FILE)
    assert ANY.may_be_in(LiveFile("no-statistics.parquet", 1, 1, {}, {}, {}))


@pytest.mark.parametrize(("predicates", "met"), [({5}, True), ({4, 6}, False), ({4, 5, 6}, True)])
def test_predicates_choose_files(predicates: set[int], met: bool) -> None:
    assert Candidates({"p": frozenset(predicates)}).may_be_in(FILE) == met


def test_no_candidate_is_in_no_file() -> None:
    assert not Candidates({"p": frozenset()}).may_be_in(FILE)
    assert not Candidates(points=frozenset()).may_be_in(FILE)


@pytest.mark.parametrize(
    ("point", "met"),
    [
        ((10, 5, -100), True),
        ((20, 5, -50), True),
        ((15, 5, -75), True),
        ((9, 5, -75), False),
        ((21, 5, -75), False),
        ((15, 4, -75), False),
        ((15, 5, -101), False),
        ((15, 5, 75), False),
    ],
)
def test_a_fact_is_looked_for_where_all_three_ids_fit(
    point: tuple[int, int, int], met: bool
) -> None:
    assert Candidates(points=frozenset([point])).may_be_in(FILE) == met


def test_ids_of_different_facts_are_not_mixed() -> None:
    points = frozenset([(15, 4, -75), (9, 5, -75)])
    assert not Candidates(points=points).may_be_in(FILE)
    assert Candidates(points=points | {(15, 5, -75)}).may_be_in(FILE)


def test_a_file_without_statistics_may_hold_anything() -> None:
    unknown = LiveFile("part.parquet", 1, 1, {}, {"p": 5}, {"p": 5})
    assert Candidates(points=frozenset([(1, 5, 2)])).may_be_in(unknown)
    assert not Candidates(points=frozenset([(1, 6, 2)])).may_be_in(unknown)
