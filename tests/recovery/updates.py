"""Updates made by chance, and what a store must hold after them, by the reference evaluator."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferlake.evaluate.reference import closure
from inferlake.kb import KnowledgeBase
from inferlake.maintain import ALGORITHMS
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE

from .processes import Loader

Triple = tuple[str, str, str]

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUBCLASS, SUBPROPERTY, DOMAIN, RANGE = (
    f"<{_RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")
)

# Recursive through a relation of its own, with a way back into the triples.
_REACH = """
@prefix : <http://example.org/> .
[step]  reach(?x, ?y) :- [?x, :p0, ?y] .
[far]   reach(?x, ?z) :- reach(?x, ?y), [?y, :p0, ?z] .
[known] [?x, :p1, ?y] :- reach(?x, ?y), [?x, a, :C0] .
"""


def ex(local: object) -> str:
    """Return an IRI of ours."""
    return f"<http://example.org/{local}>"


def reach_rules(folder: Path) -> str:
    """Write the made-up rules, and return the name by which stores know them."""
    file = folder / "reach.dl"
    file.write_text(_REACH)
    return str(file)


@dataclass(frozen=True)
class State:
    """What a version was asked to hold: the test's own copy."""

    asserted: frozenset[Triple] = frozenset()
    rules: tuple[str, ...] = ("rdfs",)


@dataclass(frozen=True)
class Update:
    """Triples that go, triples that come, perhaps other rules; and how to say and do it."""

    add: tuple[Triple, ...] = ()
    remove: tuple[Triple, ...] = ()
    rules: tuple[str, ...] | None = None
    algorithm: str = "auto"
    as_patch: bool = False

    def after(self, state: State) -> State:
        """Return the state that follows upon `state`."""
        asserted = (state.asserted - set(self.remove)) | set(self.add)
        return State(asserted, state.rules if self.rules is None else self.rules)

    def options(self, folder: Path, name: str) -> dict[str, Any]:
        """Write the files of the update, and return what `KnowledgeBase.update` is to be told."""
        options: dict[str, Any] = {"algorithm": self.algorithm}
        if self.rules is not None:
            options["rules"] = self.rules
        if self.as_patch:
            changes = [
                (verb, t) for verb, some in (("D", self.remove), ("A", self.add)) for t in some
            ]
            options["patch"] = folder / f"{name}.rdfp"
            options["patch"].write_text("".join(f"{verb} {line(t)}" for verb, t in changes))
        else:
            for side, triples in (("add", self.add), ("remove", self.remove)):
                if triples:
                    options[side] = write(folder / f"{name}-{side}.nt", triples)
        return options

    def send(self, loader: Loader, kb: Path, name: str, **interruptions: Any) -> None:
        """Ask a process for this update."""
        loader.send(kb, "update", **self.options(kb.parent, name), **interruptions)


def line(triple: Triple) -> str:
    """Return a triple as a line of N-Triples."""
    return f"{' '.join(triple)} .\n"


def write(file: Path, triples: Iterable[Triple]) -> Path:
    """Write triples as N-Triples."""
    file.write_text("".join(map(line, triples)))
    return file


def loaded(kb: Path, state: State) -> KnowledgeBase:
    """Create a store in a state, as its version 1."""
    opened = KnowledgeBase(kb, engine="sail")
    opened.load(write(kb.with_name("start.nt"), state.asserted), rules=state.rules)
    return opened


# --- By chance -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chance:
    """Draws updates of a small graph: instances, classes, properties, and schema about them."""

    source: random.Random
    rule_sets: tuple[tuple[str, ...], ...] = ()
    # How many instances there are; the more, the more terms are new.
    instances: int = 8

    def triple(self) -> Triple:
        """Draw a triple; more than a third are schema."""
        one, other = (ex(f"i{self.source.randrange(self.instances)}") for _ in range(2))
        p, q = (ex(f"p{self.source.randrange(4)}") for _ in range(2))
        c, d = (ex(f"C{self.source.randrange(5)}") for _ in range(2))
        plain = [(one, TYPE, c), (one, p, other), (one, p, other), (one, p, f'"{c[-2]}"')]
        schema = [(c, SUBCLASS, d), (p, SUBPROPERTY, q), (p, DOMAIN, c), (p, RANGE, c)]
        return self.source.choice(plain * 2 + schema + [(c, SUBCLASS, d)])

    def triples(self, most: int) -> tuple[Triple, ...]:
        """Draw up to so many triples, at least one."""
        return tuple(self.triple() for _ in range(self.source.randint(1, most)))

    def update(self, asserted: Iterable[Triple]) -> Update:
        """Draw an update of a store: some of what is there goes, now and then nearly half."""
        there = sorted(asserted)
        most = len(there) // self.source.choice([2, 5, 5])
        gone = self.source.sample(there, self.source.randint(1, max(1, most)))
        other_rules = self.rule_sets and self.source.random() < 0.25
        return Update(
            self.triples(6),
            (*gone, self.triple()),
            self.source.choice(self.rule_sets) if other_rules else None,
            self.source.choice(ALGORITHMS),
            as_patch=self.source.random() < 0.3,
        )

    def among(self, instances: int) -> Chance:
        """Return the same chance for more instances."""
        return replace(self, instances=instances)


# --- What must be there --------------------------------------------------------------------------


def assert_closed(kb: KnowledgeBase, state: State) -> None:
    """Check that a version holds what was asserted and all that follows, each fact once."""
    assert (kb.rules() or ("none",)) == state.rules
    program = compiled(read_rules(state.rules))
    everything = closure(program, {(TRIPLE, triple) for triple in state.asserted})
    follows = {args for name, args in everything if name == TRIPLE} - state.asserted
    rows = [(row.layer, (row.subject, row.predicate, row.object)) for row in kb.facts().collect()]
    assert sorted(t for layer, t in rows if layer == "asserted") == sorted(state.asserted)
    assert sorted(t for layer, t in rows if layer == "derived") == sorted(follows)
    for relation in program.arities.keys() - {TRIPLE}:
        found = [tuple(row)[:-1] for row in kb.relation(relation).collect()]
        assert sorted(found) == sorted(args for name, args in everything if name == relation)


def assert_history(kb: Path, states: Iterable[State]) -> None:
    """Check every version after the empty one: they are in these states, in this order."""
    opened = KnowledgeBase(kb, engine="sail")
    expected = list(states)
    assert opened.version == len(expected)
    for version, state in enumerate(expected, 1):
        assert_closed(opened.at(version), state)
