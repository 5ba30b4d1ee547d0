"""What a rule is: atoms over relations of any arity, RDF being the relation `triple/3`.

Terms are kept as their canonical N-Triples form, as everywhere; ids come in with the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

TRIPLE = "triple"

# Relations that only carry one rule's work to another begin with this: they are kept in a store,
# because maintenance needs them, and are not part of what a user asked for.
AUXILIARY = "_"

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
IDENTITY: tuple[Operator, ...] = ("=", "!=")


@dataclass(frozen=True, slots=True)
class Var:
    """A variable of one rule."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Term:
    """A constant, in canonical N-Triples form."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_literal(self) -> bool:
        return self.text.startswith('"')

    @property
    def is_iri(self) -> bool:
        return self.text.startswith("<")


Slot = Var | Term


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation and its arguments."""

    relation: str
    args: tuple[Slot, ...]

    @property
    def variables(self) -> Iterator[Var]:
        """The variables, in order, with repetitions."""
        return (arg for arg in self.args if isinstance(arg, Var))

    def __str__(self) -> str:
        args = ", ".join(map(str, self.args))
        return f"[{args}]" if self.relation == TRIPLE else f"{self.relation}({args})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test on terms: `=` and `!=` ask whether they are the same, the others compare values."""

    left: Slot
    operator: Operator
    right: Slot

    @property
    def args(self) -> tuple[Slot, Slot]:
        return self.left, self.right

    @property
    def variables(self) -> Iterator[Var]:
        return (arg for arg in self.args if isinstance(arg, Var))

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


# What may be asked of a term by itself, with the number of arguments: of its kind, of a literal's
# text, and whether a literal (first) has a datatype (second).
KINDS = {"is_literal": 1, "is_iri": 1, "is_blank": 1, "is_ill_typed": 1, "has_datatype": 2}


@dataclass(frozen=True, slots=True)
class Kind:
    """A test on what a term is, by its form alone."""

    name: str
    args: tuple[Slot, ...]

    @property
    def variables(self) -> Iterator[Var]:
        return (arg for arg in self.args if isinstance(arg, Var))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"


Test = Comparison | Kind


@dataclass(frozen=True, slots=True)
class Source:
    """Where something stands in a rule file."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Rule:
    """If all of `body` and `tests` hold, so do all `heads`; without heads it is a contradiction.

    Rules that say the same are the same, whatever their names: one that has none is called after
    its line, which moves with every comment before it.
    """

    name: str = field(compare=False)
    heads: tuple[Atom, ...]
    body: tuple[Atom, ...]
    tests: tuple[Test, ...] = ()
    source: Source = field(default=Source("", 0, 0), compare=False)

    @property
    def is_constraint(self) -> bool:
        """Whether the rule says what must not be."""
        return not self.heads

    def __str__(self) -> str:
        heads = ", ".join(map(str, self.heads)) or "false"
        body = ", ".join(map(str, (*self.body, *self.tests)))
        return f"[{self.name}] {heads} :- {body} ." if body else f"[{self.name}] {heads} ."


@dataclass(frozen=True)
class Program:
    """Rules, and the patterns of the facts that say how the others are to be understood.

    Facts that match a `schema` pattern are expected to be few; rules are specialised with them.
    That is a matter of speed only: the patterns never change what follows.
    """

    rules: tuple[Rule, ...] = ()
    schema: tuple[Atom, ...] = ()

    def __add__(self, other: Program) -> Program:
        """Return both programs as one; what they share counts once."""
        return Program(
            tuple(dict.fromkeys(self.rules + other.rules)),
            tuple(dict.fromkeys(self.schema + other.schema)),
        )

    @property
    def arities(self) -> dict[str, int]:
        """The number of arguments of each relation."""
        atoms = (atom for rule in self.rules for atom in (*rule.heads, *rule.body))
        return {atom.relation: len(atom.args) for atom in atoms}

    @property
    def constants(self) -> set[str]:
        """The terms that rules mention: derived facts may bring them into the dictionary."""
        parts = (part for rule in self.rules for part in (*rule.heads, *rule.body, *rule.tests))
        return {arg.text for part in parts for arg in part.args if isinstance(arg, Term)}
