"""Until when facts stand: relations of their own beside those of the facts, and the clock.

A fact that expires has a row in the relation named after its own, in the layer it speaks of, whose
last argument is a time: integer milliseconds since 1970. In the asserted layer that is until when
the fact is asserted. In the derived layer it is until when it follows from others; an asserted
fact has such a row only if it follows for longer than it is asserted, be it `FOREVER`. A fact that
stands without a row never expires.

The clock is the time up to which everything that was due has gone. It is the number of an
application transaction, so that the newest version knows it without a look at the history.
"""

from __future__ import annotations

from collections.abc import Mapping

from inferlake.store.table import Snapshot

# The largest number that fits: later than every time.
FOREVER = 2**63 - 1

CLOCK = "inferlake-clock"

# No rule can name such a relation: names have no spaces.
_SUFFIX = " until"


def until(relation: str) -> str:
    """Return the relation that says until when facts of `relation` stand."""
    return relation + _SUFFIX


def is_until(relation: str) -> bool:
    """Tell whether a relation is one of those."""
    return relation.endswith(_SUFFIX)


def of_facts(relation: str) -> str:
    """Return the relation whose facts another one, or the same, speaks of.

    >>> of_facts(until("triple")), of_facts("triple")
    ('triple', 'triple')
    """
    return relation.removesuffix(_SUFFIX)


def with_times(arities: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of arguments of relations, and of those that say until when they stand.

    >>> with_times({"triple": 3})
    {'triple': 3, 'triple until': 4}
    """
    return {**arities, **{until(relation): arity + 1 for relation, arity in arities.items()}}


def has_expiring(snapshot: Snapshot) -> bool:
    """Tell whether some fact of a version expires; files that cancel each other do not count."""
    rows = (
        file.rows * int(file.partition["sign"])
        for file in snapshot.files
        if is_until(file.partition["relation"])
    )
    return sum(rows) > 0


def clock(snapshot: Snapshot) -> int | None:
    """Return the time up to which a version has let facts go, if it ever did."""
    return snapshot.transaction(CLOCK)
