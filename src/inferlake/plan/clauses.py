"""Rules in ids: every fact is a row of one wide relation, and every rule one head over such rows.

The name of a relation is the first column of a row, so that rules which differ only in relations
and constants differ only in numbers. A program that knows no relation but `triple` needs no such
column. The rows of narrow relations are filled up; nobody looks at the filling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from inferlake.rules.model import TRIPLE, Atom, Comparison, Kind, Program, Rule, Term
from inferlake.rules.model import Slot as RuleSlot
from inferlake.rules.values import holds
from inferlake.terms.ids import is_iri, is_resource

# A constant's id, a variable's name, or filling.
Slot = int | str | None
Row = tuple[Slot, ...]
# A row without variables.
Fact = tuple[int | None, ...]
FILLER = None

_TRIPLE_COLUMNS = ("s", "p", "o")


@dataclass(frozen=True)
class Layout:
    """The columns of rows, and the number that stands for each relation."""

    arities: dict[str, int]

    @property
    def only_triples(self) -> bool:
        return set(self.arities) == {TRIPLE}

    @property
    def width(self) -> int:
        """The number of arguments of the widest relation."""
        return max(self.arities.values())

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns that hold terms: s, p, o as in the store, then c3, c4 and so on."""
        more = tuple(f"c{n}" for n in range(len(_TRIPLE_COLUMNS), self.width))
        return _TRIPLE_COLUMNS[: self.width] + more

    @property
    def columns(self) -> tuple[str, ...]:
        return self.arguments if self.only_triples else ("r", *self.arguments)

    def columns_of(self, relation: str | None) -> tuple[str, ...]:
        """Return the columns that facts of one relation need, or those of all."""
        return self.columns if relation is None else self.arguments[: self.arities[relation]]

    def shared(self, rows: Iterable[Row]) -> str | None:
        """Return the relation that all of some rows are of, if it has arguments."""
        if self.only_triples:
            return TRIPLE
        found = {row[0] for row in rows}
        number = found.pop() if len(found) == 1 else None
        relation = self.names[number] if isinstance(number, int) else None
        return relation if relation is not None and self.arities[relation] else None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The relations, in the order of their numbers."""
        return tuple(sorted(self.arities))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def number(self, relation: str) -> int:
        """Return what stands for `relation` in column r."""
        return self._numbers[relation]

    def row(self, relation: str, args: Iterable[Slot]) -> Row:
        """Return a fact, or an atom, as a row."""
        found = tuple(args)
        filled = found + (FILLER,) * (self.width - len(found))
        return filled if self.only_triples else (self.number(relation), *filled)

    def named(self, fact: Fact) -> tuple[str, tuple[int, ...]]:
        """Return the relation of a fact, and its arguments."""
        if self.only_triples:
            return TRIPLE, fact  # type: ignore[return-value]  # no filling in triples
        relation = self.names[fact[0] or 0]
        return relation, fact[1 : self.arities[relation] + 1]  # type: ignore[return-value]

    def fact(self, values: Sequence[int]) -> Fact:
        """Return what an engine gave back as a fact, with filling where the relation ends."""
        if self.only_triples:
            return tuple(values)
        relation = self.names[values[0]]
        width = self.arities[relation] + 1
        return (*values[:width], *(FILLER for _ in values[width:]))


def layout(program: Program, relations: dict[str, int] | None = None) -> Layout:
    """Return the layout for a program, and for `relations` that have facts besides."""
    arities = {**(relations or {}), **program.arities}
    return Layout(arities or {TRIPLE: 3})


@dataclass(frozen=True, slots=True)
class Check:
    """A test in a clause: a comparison's operator or a kind's name, and its arguments."""

    name: str
    args: Row

    @property
    def variables(self) -> Iterator[str]:
        return (arg for arg in self.args if isinstance(arg, str))

    @property
    def needs_text(self) -> bool:
        """Whether ids do not decide it."""
        return self.name not in _BY_ID

    def decide(self) -> bool | None:
        """Return the outcome if the ids say it, and None if a variable or a text is needed."""
        if self.name in ("=", "!="):
            one, other = self.args
            if one == other:
                return self.name == "="
            if isinstance(one, int) and isinstance(other, int):
                return self.name == "!="
            return None
        arg = self.args[0]
        if not isinstance(arg, int) or self.needs_text:
            return None
        return _BY_ID[self.name](arg)


_BY_ID: dict[str, Callable[[int], bool]] = {
    "=": bool,  # decided above; here so that it counts as decided by ids
    "!=": bool,
    "is_resource": is_resource,
    "is_iri": is_iri,
    "is_literal": lambda id: not is_resource(id),
    "is_blank": lambda id: is_resource(id) and not is_iri(id),
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One head, or none for a contradiction, over rows."""

    name: str
    head: Row | None
    body: tuple[Row, ...]
    checks: tuple[Check, ...] = ()

    def bound(self, bindings: dict[str, Slot]) -> Clause | None:
        """Return the clause with variables replaced, or None if a check then fails."""
        checks: list[Check] = []
        for check in self.checks:
            found = replace(check, args=substituted(check.args, bindings))
            outcome = found.decide()
            if outcome is False:
                return None
            if outcome is None and found not in checks:
                checks.append(found)
        return Clause(
            self.name,
            None if self.head is None else substituted(self.head, bindings),
            tuple(substituted(atom, bindings) for atom in self.body),
            tuple(checks),
        )


def substituted(row: Row, bindings: dict[str, Slot]) -> Row:
    """Return `row` with the variables that `bindings` knows replaced."""
    return tuple([bindings.get(slot, slot) if isinstance(slot, str) else slot for slot in row])


def variables(rows: Iterable[Row]) -> dict[str, None]:
    """Return the variables of `rows`, in order."""
    return {slot: None for row in rows for slot in row if isinstance(slot, str)}


def clauses(program: Program, shape: Layout, id_of: Callable[[str], int]) -> tuple[Clause, ...]:
    """Return the program's rules, one clause for each head, without repeated or empty ones."""
    found = (clause for rule in program.rules for clause in _clauses(rule, shape, id_of))
    return tuple(dict.fromkeys(found))


def patterns(program: Program, shape: Layout, id_of: Callable[[str], int]) -> tuple[Row, ...]:
    """Return the program's schema patterns as rows."""
    known = (atom for atom in program.schema if atom.relation in shape.arities)
    rows = dict.fromkeys(_row(atom, shape, id_of) for atom in known)
    # Without a constant, a pattern would make schema of all there is.
    return tuple(row for row in rows if any(isinstance(slot, int) for slot in row))


def _clauses(rule: Rule, shape: Layout, id_of: Callable[[str], int]) -> Iterator[Clause]:
    # A test on constants alone says by itself whether there is a rule.
    if not all(holds(test, *texts) for test in rule.tests if (texts := _texts(test)) is not None):
        return
    body = tuple(dict.fromkeys(_row(atom, shape, id_of) for atom in rule.body))
    checks = tuple(_check(test, id_of) for test in rule.tests if _texts(test) is None)
    for head in rule.heads or (None,):
        row = None if head is None else _row(head, shape, id_of)
        if row in body:
            continue  # says nothing new
        sound = () if head is None else _soundness(head, rule)
        clause = Clause(rule.name, row, body, checks + tuple(sound)).bound({})
        if clause is not None:
            yield clause


def _soundness(head: Atom, rule: Rule) -> Iterator[Check]:
    """A derived triple is RDF: ask what the positions in the body do not already say."""
    if head.relation != TRIPLE:
        return
    triples = [atom.args for atom in rule.body if atom.relation == TRIPLE]
    iris = {args[1] for args in triples}
    resources = iris | {args[0] for args in triples}
    subject, predicate = head.args[:2]
    if not isinstance(subject, Term) and subject not in resources:
        yield Check("is_resource", (subject.name,))
    if not isinstance(predicate, Term) and predicate not in iris:
        yield Check("is_iri", (predicate.name,))


def _row(atom: Atom, shape: Layout, id_of: Callable[[str], int]) -> Row:
    return shape.row(atom.relation, (_slot(arg, id_of) for arg in atom.args))


def _texts(test: Comparison | Kind) -> tuple[str, ...] | None:
    """Return the terms that a test is about, or None if some are not known yet."""
    found = tuple(arg.text for arg in test.args if isinstance(arg, Term))
    return found if len(found) == len(test.args) else None


def _check(test: Comparison | Kind, id_of: Callable[[str], int]) -> Check:
    if isinstance(test, Kind):
        return Check(test.name, tuple(_slot(arg, id_of) for arg in test.args))
    return Check(test.operator, (_slot(test.left, id_of), _slot(test.right, id_of)))


def _slot(slot: RuleSlot, id_of: Callable[[str], int]) -> Slot:
    return id_of(slot.text) if isinstance(slot, Term) else slot.name
