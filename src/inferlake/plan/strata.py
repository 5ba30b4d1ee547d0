"""In which order groups run: what others need comes first, what needs itself runs together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inferlake.plan.clauses import Row
from inferlake.plan.groups import Group
from inferlake.plan.linear import Entry
from inferlake.plan.patterns import Patterns, RowIndex


def strata(groups: Sequence[Group], entries: Iterable[Entry]) -> list[int]:
    """Return the stratum of each group: it never needs what a later stratum derives.

    A group needs another if some fact that the other derives, or that `entries` make of it, can
    match an atom of its body. Constants decide that, not the names of relations alone.
    """
    return _components(_feeds(groups, _derived(groups, entries)))


@dataclass(frozen=True)
class Part:
    """Groups that alone derive some facts."""

    groups: tuple[Group, ...]
    # What they derive, with what entries make of it.
    facts: Patterns


def parts(groups: Sequence[Group], entries: Iterable[Entry]) -> list[Part]:
    """Divide groups so that what one part derives no other does, nor needs before it comes.

    Facts of earlier parts never depend on later ones: once they are settled, they stay so.
    """
    derived = _derived(groups, entries)
    links = _feeds(groups, derived)
    for i, made in enumerate(derived):
        links[i] += [j for j, other in enumerate(derived) if j != i and made.meet_any(other)]
    found: dict[int, list[int]] = {}
    for i, number in enumerate(_components(links)):
        found.setdefault(number, []).append(i)
    return [
        Part(
            tuple(groups[i] for i in found[number]),
            Patterns(row for i in found[number] for row in derived[i].rows),
        )
        for number in sorted(found)
    ]


def _derived(groups: Sequence[Group], entries: Iterable[Entry]) -> list[Patterns]:
    """Return what each group derives, with what entries make of it."""
    index = RowIndex((entry.body, entry) for entry in entries)
    return [_expanded(group.heads, index) for group in groups]


def _feeds(groups: Sequence[Group], derived: list[Patterns]) -> list[list[int]]:
    """Return, for each group, those that can match what is derived by it."""
    return [
        [j for j, other in enumerate(groups) if any(map(made.meet_any, other.atoms))]
        for made in derived
    ]


def _expanded(heads: Patterns, entries: RowIndex[Entry]) -> Patterns:
    """Return `heads` and all that entries make of them, step by step: they may not be closed."""
    found = dict.fromkeys(heads.rows)
    pending = list(found)
    while pending:
        row = pending.pop()
        for entry in entries.meeting(row):
            made = _made(entry, row)
            if made not in found:
                found[made] = None
                pending.append(made)
    return Patterns(found)


def _made(entry: Entry, row: Row) -> Row:
    """Return what an entry makes of the facts with a row's constants."""
    known = {slot: at for slot, at in zip(entry.body, row, strict=True) if isinstance(at, int)}
    return tuple(slot if isinstance(slot, int) else known.get(slot) for slot in entry.head)


def _components(feeds: list[list[int]]) -> list[int]:
    """Number the strongly connected components so that edges lead to higher or equal numbers.

    Tarjan's algorithm, without recursion; it finds components in the reverse of that order.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    component: dict[int, int] = {}
    stack: list[int] = []
    count = 0
    for root in range(len(feeds)):
        work = [(root, iter(feeds[root]))] if root not in index else []
        while work:
            node, successors = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            following = next((n for n in successors if n not in component), None)
            if following is not None:
                if following not in index:
                    work.append((following, iter(feeds[following])))
                else:
                    low[node] = min(low[node], index[following])
                continue
            work.pop()
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
            if low[node] == index[node]:
                while True:
                    member = stack.pop()
                    component[member] = count
                    if member == node:
                        break
                count += 1
    return [count - 1 - component[node] for node in range(len(feeds))]
