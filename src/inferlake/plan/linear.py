"""The expander: rules with one atom, composed until nothing new appears.

A rule with one body atom takes a fact that meets a guard to another fact. Two such rules in a row
are again such a rule. The closure of all of them under composition takes a fact straight to
everything that follows from it alone, whatever the depth of the hierarchy, and is found without
looking at any data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from inferlake.plan.clauses import Check, Clause, Row, Slot, variables
from inferlake.plan.patterns import RowIndex

# So many guards and heads that the driver should leave their composition to the rounds.
MOST_ENTRIES = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A linear rule: a fact that matches `body` gives `head`. Variables are named by place."""

    body: Row
    head: Row
    checks: tuple[Check, ...] = ()

    @property
    def guard(self) -> tuple[int, ...]:
        """The places where the body has a constant."""
        return tuple(i for i, slot in enumerate(self.body) if isinstance(slot, int))


def entry(clause: Clause) -> Entry | None:
    """Return a clause with one atom as an entry, or None if it says nothing new."""
    assert clause.head is not None and len(clause.body) == 1
    (body,) = clause.body
    names: dict[str, Slot] = {}
    for place, slot in enumerate(body):
        if isinstance(slot, str):
            names.setdefault(slot, f"v{place}")
    renamed = clause.bound(names)
    if renamed is None or renamed.head is None or renamed.head == renamed.body[0]:
        return None
    checks = tuple(sorted(renamed.checks, key=str))
    return Entry(renamed.body[0], renamed.head, checks)


def composed(first: Entry, second: Entry) -> Entry | None:
    """Return what `second` makes of what `first` makes of a fact, or None if they do not meet.

    >>> up = Entry(("v0", 1, "v2"), ("v0", 2, "v2"))
    >>> composed(up, Entry(("v0", 2, "v2"), ("v2", 3, "v0")))
    Entry(body=('v0', 1, 'v2'), head=('v2', 3, 'v0'), checks=())
    """
    outer: dict[str, Slot] = {}  # variables of the first, made more special by the second's guard
    inner: dict[str, Slot] = {}  # variables of the second
    for made, asked in zip(first.head, second.body, strict=True):
        value = _resolved(made, outer)
        if isinstance(asked, str):
            previous = inner.setdefault(asked, value)
            asked = _resolved(previous, outer)
        if asked == value:
            continue
        if isinstance(value, str):
            outer[value] = asked
        elif isinstance(asked, str):
            outer[asked] = value
        else:
            return None
    bindings = {name: _resolved(slot, outer) for name, slot in inner.items()}
    outer = {name: _resolved(name, outer) for name in variables((first.body,))}
    one = Clause("", first.head, (first.body,), first.checks).bound(outer)
    other = Clause("", second.head, (second.body,), second.checks).bound(bindings)
    if one is None or other is None:
        return None
    return entry(Clause("", other.head, one.body, one.checks + other.checks))


def _resolved(slot: Slot, bindings: dict[str, Slot]) -> Slot:
    while isinstance(slot, str) and slot in bindings:
        slot = bindings[slot]
    return slot


class TooManyEntries(Exception):
    """The composition is larger than what a driver should hold."""


def expander(base: Iterable[Entry], limit: int = MOST_ENTRIES) -> set[Entry]:
    """Return all compositions of `base` entries, of any length; raise beyond `limit` of them."""
    found = set(base)
    steps = RowIndex((one.body, one) for one in found)
    pending = list(found)
    while pending:
        first = pending.pop()
        for second in steps.meeting(first.head):
            made = composed(first, second)
            if made is not None and made not in found:
                found.add(made)
                pending.append(made)
        if len(found) > limit:
            raise TooManyEntries
    return found
