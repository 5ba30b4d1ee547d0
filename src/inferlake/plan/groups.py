"""Rules that differ only in constants are one plan, joined with a table of those constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from inferlake.plan.clauses import Check, Clause, Row, Slot, substituted
from inferlake.plan.patterns import Patterns
from inferlake.plan.specialise import Parameters, Template


@dataclass(frozen=True)
class Group:
    """Clauses of one shape: `clause` has parameters where they differ, and `rows` their values."""

    names: tuple[str, ...]
    clause: Clause
    parameters: tuple[str, ...] = ()
    rows: frozenset[Parameters] = frozenset({()})
    # For constraints, the whole body: the facts to show.
    origin: tuple[Row, ...] = ()

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """Each of the clauses by itself."""
        return tuple(found for row in self.rows if (found := self._bound(row)) is not None)

    @cached_property
    def heads(self) -> Patterns:
        """What the group can derive."""
        return Patterns(self._rows(self.clause.head or ()))

    @cached_property
    def atoms(self) -> tuple[Patterns, ...]:
        """What each atom of the body can match."""
        return tuple(Patterns(self._rows(atom)) for atom in self.clause.body)

    def meeting(self, place: int, facts: Patterns) -> Group | None:
        """Return those of the clauses whose atom in one place may match some facts, or None."""
        if not self.parameters:
            return self if self.atoms[place].meet_any(facts) else None
        atom = self.clause.body[place]
        near = frozenset(
            values for values in self.rows if facts.meet(self._bound_row(atom, values))
        )
        if len(near) == len(self.rows):
            return self
        return replace(self, rows=near) if near else None

    def _bound_row(self, row: Row, values: Parameters) -> Row:
        return substituted(row, dict(zip(self.parameters, values, strict=True)))

    def _rows(self, row: Row) -> Iterator[Row]:
        return (self._bound_row(row, values) for values in self.rows)

    def _bound(self, values: Parameters) -> Clause | None:
        return self.clause.bound(dict(zip(self.parameters, values, strict=True)))


def grouped(templates: Mapping[Template, set[Parameters]]) -> tuple[Group, ...]:
    """Return templates of one shape as one group each, with the fewest parameters that tell them.

    Constraints stay apart: each is reported by its name, with its facts.
    """
    shapes: dict[Clause, tuple[dict[str, None], set[Parameters]]] = {}
    apart: list[Group] = []
    for template, rows in templates.items():
        clause = template.clause
        if clause.head is None:
            made = (template.parameters, frozenset(rows), template.origin)
            apart.append(Group((clause.name,), clause, *made))
            continue
        shape, values = _shape(template)
        names, found = shapes.setdefault(shape, ({}, set()))
        names[clause.name] = None
        places = [_source(value, template.parameters) for value in values]
        found.update(tuple(row[at] if at >= 0 else one for at, one in places) for row in rows)
    merged = (_simplest(tuple(names), shape, rows) for shape, (names, rows) in shapes.items())
    return (*merged, *apart)


def _source(value: Slot, parameters: tuple[str, ...]) -> tuple[int, int | None]:
    """Return where a shape's parameter comes from: a place in a template's rows, or a constant."""
    return (parameters.index(value), None) if isinstance(value, str) else (-1, value)


def _shape(template: Template) -> tuple[Clause, list[Slot]]:
    """Return a clause with a parameter for every constant, and what they stand for.

    One constant is one parameter wherever it stands: a transitive rule keeps its shape to itself.
    """
    values: list[Slot] = []
    names: dict[str, str] = {}

    def general(row: Row) -> Row:
        made: list[Slot] = []
        for slot in row:
            if isinstance(slot, int) or slot in template.parameters:
                if slot not in values:
                    values.append(slot)
                made.append(f"k{values.index(slot)}")
            else:
                made.append(slot and names.setdefault(slot, f"x{len(names)}"))
        return tuple(made)

    clause = template.clause
    body = tuple(general(row) for row in clause.body)
    head = general(clause.head or ())
    checks = tuple(Check(check.name, general(check.args)) for check in clause.checks)
    return Clause("", head, body, checks), values


def _simplest(names: tuple[str, ...], shape: Clause, rows: set[Parameters]) -> Group:
    """Put constants back where all rows have one value, and let equal columns be one."""
    bindings: dict[str, Slot] = {}
    kept: dict[Parameters, int] = {}
    for number, column in enumerate(zip(*rows, strict=True)):
        alike = len(set(column)) == 1
        bindings[f"k{number}"] = column[0] if alike else f"k{kept.setdefault(column, number)}"
    clause = shape.bound(bindings)
    assert clause is not None  # every row met the checks when it was made
    slim = frozenset(tuple(row[i] for i in kept.values()) for row in rows)
    return Group(names, clause, tuple(f"k{number}" for number in kept.values()), slim)
