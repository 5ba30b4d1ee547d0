"""What must hold of a program before it runs: safety, arities, and heads that are RDF."""

from __future__ import annotations

from collections.abc import Iterator

from inferlake.errors import RuleError
from inferlake.rules.model import AUXILIARY, TRIPLE, Atom, Program, Rule, Term

_TRIPLE_ARITY = 3


def checked(program: Program) -> Program:
    """Return `program`, or raise one `RuleError` that lists everything wrong with it."""
    wrong = complaints(program)
    if wrong:
        raise RuleError.of(wrong)
    return program


def complaints(program: Program) -> list[str]:
    """Return what is wrong with a program, a line each."""
    return [*_unsafe(program), *_arities(program), *_not_rdf(program)]


def _unsafe(program: Program) -> Iterator[str]:
    """A variable that no body atom binds would stand for every term there is."""
    for rule in program.rules:
        bound = {variable for atom in rule.body for variable in atom.variables}
        for head in rule.heads:
            for variable in dict.fromkeys(head.variables):
                if variable not in bound:
                    yield _complaint(
                        "R102", rule, f"head variable {variable} is not bound; use it in the body"
                    )
        for test in rule.tests:
            for variable in dict.fromkeys(test.variables):
                if variable not in bound:
                    yield _complaint(
                        "R103",
                        rule,
                        f"{variable} in {test} is not bound; use it in an atom of the body",
                    )
        if rule.is_constraint and not rule.body:
            yield _complaint("R109", rule, "false without a body; say what must not hold")


def _arities(program: Program) -> Iterator[str]:
    """A relation has one number of arguments; another number is a slip, not another relation."""
    first: dict[str, tuple[int, Rule]] = {TRIPLE: (_TRIPLE_ARITY, Rule(TRIPLE, (), ()))}
    for rule in program.rules:
        for atom in (*rule.heads, *rule.body):
            found = len(atom.args)
            arity, where = first.setdefault(atom.relation, (found, rule))
            if found == 0:
                yield _complaint("R104", rule, f"{atom.relation} has no arguments; give it one")
            elif arity != found:
                place = f" at {where.source}" if where.source.line else ""
                yield _complaint(
                    "R104",
                    rule,
                    f"{atom.relation} has {found} arguments here and {arity}{place};"
                    " use one number everywhere",
                )
    for atom in program.schema:
        found, (arity, where) = len(atom.args), first.get(atom.relation, (len(atom.args), None))
        if arity != found:
            place = f" at {where.source}" if where is not None and where.source.line else ""
            yield (
                f"R104 @schema {atom}: {atom.relation} has {found} arguments here and"
                f" {arity}{place}; use one number everywhere"
            )


def _not_rdf(program: Program) -> Iterator[str]:
    for rule in program.rules:
        for head in rule.heads:
            triple = head.relation == TRIPLE and len(head.args) == _TRIPLE_ARITY
            if triple and (slot := _misplaced(head)) is not None:
                yield _complaint(
                    "R107", rule, f"{slot} cannot stand there in a triple: {head}; swap the terms"
                )


def _misplaced(head: Atom) -> Term | None:
    subject, predicate = head.args[:2]
    if isinstance(subject, Term) and subject.is_literal:
        return subject
    if isinstance(predicate, Term) and not predicate.is_iri:
        return predicate
    return None


def _complaint(code: str, rule: Rule, message: str) -> str:
    return f"{code} {rule.source}: in rule {rule.name}, {message}"


def is_auxiliary(relation: str) -> bool:
    """Tell whether a relation only carries work between rules."""
    return relation.startswith(AUXILIARY)
