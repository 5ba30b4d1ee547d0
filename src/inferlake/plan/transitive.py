"""Transitive rules, told by their shape: `p(x, z) :- p(x, y), p(y, z)`, whatever p is."""

from __future__ import annotations

from dataclasses import dataclass

from inferlake.plan.clauses import Clause, Layout
from inferlake.plan.groups import Group


@dataclass(frozen=True)
class Edges:
    """Which columns of a transitive relation's facts are an edge's ends, and which its colour."""

    start: str
    end: str
    colour: tuple[str, ...]
    # Whether edges from a node to itself are left out, unless they were given.
    irreflexive: bool

    def compose(self, left: str, right: str) -> str:
        """Return FROM and WHERE clauses for edges of `left`, as a, followed by `right`, as b."""
        same = [f"a.{self.end} = b.{self.start}", *(f"a.{c} = b.{c}" for c in self.colour)]
        where = f" WHERE a.{self.start} <> b.{self.end}" if self.irreflexive else ""
        return f"FROM {left} a JOIN {right} b ON {' AND '.join(same)}{where}"

    def columns(self, layout: Layout) -> str:
        """Return the SELECT list of such a composition."""
        return ", ".join(
            f"b.{name} AS {name}" if name == self.end else f"a.{name} AS {name}"
            for name in layout.columns
        )


def transitive(group: Group, layout: Layout) -> Edges | None:
    """Return how facts of a group are edges, if all its rules say that they are transitive."""
    clause = group.clause
    if clause.head is None or len(clause.body) != 2 or clause.head in clause.body:
        return None
    ends = _ends(clause)
    if ends is None:
        return None
    start, end = ends
    first, second = clause.body
    # A parameter is a constant by another name: edges must be free to lead anywhere.
    if {first[start], first[end], second[end]} & set(group.parameters):
        return None
    for place, slots in enumerate(zip(clause.head, first, second, strict=True)):
        constant = len(set(slots)) == 1 and (
            not isinstance(slots[0], str) or slots[0] in group.parameters
        )
        if not constant and place not in ends:
            return None
    checks = {(check.name, frozenset(check.args)) for check in clause.checks}
    apart = ("!=", frozenset((clause.head[start], clause.head[end])))
    if checks - {apart}:
        return None
    columns = layout.columns
    colour = tuple(
        name
        for place, name in enumerate(columns)
        if place not in ends and clause.head[place] is not None
    )
    return Edges(columns[start], columns[end], colour, bool(checks))


def _ends(clause: Clause) -> tuple[int, int] | None:
    """Return the places of x and z in the head, if the body is a path from x to z over y."""
    first, second = clause.body
    head = clause.head or ()
    moved = [
        place for place in range(len(head)) if not head[place] == first[place] == second[place]
    ]
    if len(moved) != 2:
        return None
    for start, end in (moved, moved[::-1]):
        x, y, z = head[start], first[end], head[end]
        path = (first[start], second[start], second[end]) == (x, y, z)
        if path and len({x, y, z}) == 3 and all(isinstance(slot, str) for slot in (x, y, z)):
            return start, end
    return None
