"""The reference evaluator: what follows from facts and rules, as plainly as it can be said.

It defines what is right; everything else is compared with it. It applies every rule to all facts,
again and again, until nothing is new. It is slow, and must stay obvious.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inferlake.rules.model import TRIPLE, Atom, Program, Rule, Slot, Var
from inferlake.rules.values import holds

Fact = tuple[str, tuple[str, ...]]
Bindings = dict[Var, str]


def closure(program: Program, facts: Iterable[Fact]) -> set[Fact]:
    """Return `facts` and all that follows from them: relation and terms, in canonical form."""
    known = set(facts)
    while True:
        relations = _by_relation(known)
        new = {head for rule in program.rules for head in _conclusions(rule, relations)} - known
        if not new:
            return known
        known |= new


def contradictions(program: Program, closed: Iterable[Fact]) -> set[tuple[str, tuple[Fact, ...]]]:
    """Return each constraint that a closure breaks, by name, with the facts that break it."""
    relations = _by_relation(closed)
    return {
        (rule.name, tuple((atom.relation, _args(atom, found)) for atom in dict.fromkeys(rule.body)))
        for rule in program.rules
        if rule.is_constraint
        for found in _matches(rule, relations)
    }


def _by_relation(facts: Iterable[Fact]) -> dict[str, set[tuple[str, ...]]]:
    relations: dict[str, set[tuple[str, ...]]] = {}
    for relation, args in facts:
        relations.setdefault(relation, set()).add(args)
    return relations


def _conclusions(rule: Rule, relations: dict[str, set[tuple[str, ...]]]) -> Iterator[Fact]:
    for found in _matches(rule, relations) if rule.heads else ():
        for head in rule.heads:
            fact = (head.relation, _args(head, found))
            if is_sound(fact):
                yield fact


def is_sound(fact: Fact) -> bool:
    """Tell whether a fact is RDF: no literal as subject, nothing but an IRI as predicate."""
    relation, args = fact
    return relation != TRIPLE or (not args[0].startswith('"') and args[1].startswith("<"))


def _matches(rule: Rule, relations: dict[str, set[tuple[str, ...]]]) -> list[Bindings]:
    found: list[Bindings] = [{}]
    for atom in rule.body:
        found = [
            wider
            for bindings in found
            for args in relations.get(atom.relation, ())
            if (wider := _extended(bindings, atom, args)) is not None
        ]
    return [
        bindings
        for bindings in found
        if all(holds(test, *(_value(arg, bindings) for arg in test.args)) for test in rule.tests)
    ]


def _extended(bindings: Bindings, atom: Atom, args: tuple[str, ...]) -> Bindings | None:
    wider = dict(bindings)
    for slot, term in zip(atom.args, args, strict=True):
        expected = wider.setdefault(slot, term) if isinstance(slot, Var) else slot.text
        if expected != term:
            return None
    return wider


def _value(slot: Slot, bindings: Bindings) -> str:
    return bindings[slot] if isinstance(slot, Var) else slot.text


def _args(atom: Atom, bindings: Bindings) -> tuple[str, ...]:
    return tuple(_value(slot, bindings) for slot in atom.args)
