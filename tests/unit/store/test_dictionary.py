"""Ids for displaced terms: from the term alone, and never one that is taken."""

from __future__ import annotations

from collections.abc import Iterable

from inferlake.store.dictionary import _housed, _other_id

TERMS = [f"<http://example.org/{n}>" for n in range(20)] + [f'"{n}"' for n in range(20)]


def nobody(ids: Iterable[int]) -> set[int]:
    return set()


def test_every_term_gets_an_id_of_its_own_kind() -> None:
    found = _housed(TERMS, nobody)
    assert set(found) == set(TERMS)
    assert len(set(found.values())) == len(TERMS)
    assert all((id < 0) == term.startswith('"') for term, id in found.items())


def test_an_id_does_not_depend_on_the_other_terms() -> None:
    together = _housed(TERMS, nobody)
    assert all(_housed([term], nobody) == {term: together[term]} for term in TERMS)


def test_ids_that_are_taken_are_passed_over() -> None:
    first = {_other_id(term, 1) for term in TERMS}
    found = _housed(TERMS, lambda ids: first & set(ids))
    assert found == {term: _other_id(term, 2) for term in TERMS}


def test_no_term_needs_nothing() -> None:
    assert _housed([], nobody) == {}
