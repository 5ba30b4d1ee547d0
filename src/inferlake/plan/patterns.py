"""Which facts can meet which atoms, by their constants alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from inferlake.plan.clauses import Row

T = TypeVar("T")


class RowIndex(Generic[T]):
    """Things under rows, found by a row whose constants do not contradict theirs."""

    def __init__(self, items: Iterable[tuple[Row, T]]) -> None:
        self._by_guard: dict[tuple[int, ...], list[tuple[Row, T]]] = defaultdict(list)
        for row, item in items:
            self._by_guard[_guard(row)].append((row, item))
        # For each guard, by those of its places that a question has constants in.
        self._indexes: dict[tuple, dict[tuple, list[T]]] = {}

    def meeting(self, row: Row) -> Iterator[T]:
        """Yield what stands under a row that some fact matching `row` could match too."""
        for guard, items in self._by_guard.items():
            known = tuple(i for i in guard if isinstance(row[i], int))
            index = self._indexes.get((guard, known))
            if index is None:
                index = self._indexes[guard, known] = defaultdict(list)
                for other, item in items:
                    index[tuple(other[i] for i in known)].append(item)
            yield from index.get(tuple(row[i] for i in known), ())


def _guard(row: Row) -> tuple[int, ...]:
    return tuple(i for i, slot in enumerate(row) if isinstance(slot, int))


class Patterns:
    """A set of rows, each standing for all facts that have its constants.

    Beyond that, `limits` may say which values alone are of use in some places.
    """

    def __init__(
        self, rows: Iterable[Row], limits: Mapping[int, frozenset[int]] | None = None
    ) -> None:
        self._limits = limits or {}
        abstract = (tuple(s if isinstance(s, int) else None for s in row) for row in rows)
        self.rows: tuple[Row, ...] = tuple(dict.fromkeys(abstract))

    @cached_property
    def _index(self) -> RowIndex[Row]:
        return RowIndex((row, row) for row in self.rows)

    @cached_property
    def _constants(self) -> dict[tuple[int, ...], set[Row]]:
        found: dict[tuple[int, ...], set[Row]] = defaultdict(set)
        for row in self.rows:
            guard = _guard(row)
            found[guard].add(tuple([row[i] for i in guard]))
        return found

    def cover(self, row: Row) -> bool:
        """Tell whether every fact that matches `row` matches one of these."""
        # A loop, because a driver asks this of every fact that it derives.
        for guard, known in self._constants.items():
            if tuple([row[i] for i in guard]) in known:
                return True
        return False

    def meet(self, row: Row) -> bool:
        """Tell whether some fact that matches `row` may match one of these."""
        return next(self._index.meeting(row), None) is not None

    def meet_any(self, others: Patterns) -> bool:
        """Tell whether some fact may match one of these and one of `others`."""
        fewer, more = sorted((self, others), key=lambda patterns: len(patterns.rows))
        return any(more.meet(row) for row in fewer.rows)

    def limited(self, limits: Mapping[int, frozenset[int]]) -> Patterns:
        """Return the same patterns, of which only facts with some values are of use."""
        return Patterns(self.rows, limits) if limits else self

    def values(self, place: int, most: int) -> frozenset[int] | None:
        """Return the constants in one place, or None if any can be there or they are too many."""
        found = {row[place] for row in self.rows}
        if not all(isinstance(value, int) for value in found):
            limit = self._limits.get(place)
            return limit if limit is not None and len(limit) <= most else None
        if len(found) > most:
            return None
        return frozenset(found)  # type: ignore[arg-type]
