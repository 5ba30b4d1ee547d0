"""The profiles: that they are sound as programs, explained, and right where no suite looks."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyoxigraph as ox
import pytest

from inferlake.evaluate.reference import closure, contradictions
from inferlake.rules.load import PROFILES, compiled, read_rules
from inferlake.rules.model import TRIPLE, Comparison, Program, Term

DOCS = Path(__file__).resolve().parents[3] / "docs" / "profiles.md"
EX = "http://example.org/"
PREFIXES = f"""
@prefix : <{EX}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SAME = "<http://www.w3.org/2002/07/owl#sameAs>"

Triple = tuple[str, ...]


@cache
def program(profile: str) -> Program:
    return compiled(read_rules([profile]))


def triples(turtle: str) -> set[Triple]:
    quads = ox.parse(PREFIXES + turtle, format=ox.RdfFormat.TURTLE)
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads}


def closed(turtle: str, rules: Program) -> tuple[set[Triple], set[str]]:
    """Return the closure, and the names of the constraints that it breaks."""
    facts = closure(rules, ((TRIPLE, triple) for triple in triples(turtle)))
    found = {args for relation, args in facts if relation == TRIPLE}
    return found, {name for name, _ in contradictions(rules, facts)}


def owl(turtle: str) -> tuple[set[Triple], set[str]]:
    return closed(turtle, program("owl2rl"))


@pytest.mark.parametrize("profile", PROFILES)
def test_every_rule_has_a_name_that_the_documentation_explains(profile: str) -> None:
    names = {rule.name for rule in program(profile).rules}
    assert names and not {name for name in names if re.fullmatch(r"line\d+", name)}
    section = DOCS.read_text(encoding="utf-8").split(f"\n## {profile}\n")[1].split("\n## ")[0]
    assert {name for name in names if f"`{name}`" not in section} == set()


@pytest.mark.parametrize("profile", PROFILES)
def test_only_relations_with_an_underscore_stand_beside_triples(profile: str) -> None:
    relations = set(program(profile).arities) - {TRIPLE}
    assert all(relation.startswith("_") for relation in relations)
    assert {atom.relation for atom in program(profile).schema} <= relations | {TRIPLE}


def test_the_rules_of_rdfs_are_the_same_in_owl_horst() -> None:
    assert set(program("rdfs").rules) <= set(program("owl-horst").rules)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_chains_of_any_length(length: int) -> None:
    steps = " ".join(f":p{n}" for n in range(length))
    data = " ".join(f":x{n} :p{n} :x{n + 1} ." for n in range(length))
    found, _ = owl(f":p owl:propertyChainAxiom ({steps}) . {data}")
    pairs = {(s, o) for s, p, o in found if p == f"<{EX}p>"}
    assert pairs == {(f"<{EX}x0>", f"<{EX}x{length}>")}


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_intersections_of_any_length(length: int) -> None:
    classes = [f":C{n}" for n in range(length)]
    found, _ = owl(
        f":C owl:intersectionOf ({' '.join(classes)}) ."
        f":all a {', '.join(classes)} . :most a :Other, {', '.join(classes[1:] or [':Other'])} ."
    )
    assert {s for s, p, o in found if o == f"<{EX}C>" and p.endswith("#type>")} == {f"<{EX}all>"}


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_keys_of_any_length(length: int) -> None:
    keys = [f":p{n}" for n in range(length)]

    def has(**values: str) -> str:
        return "; ".join(f"{key} {values.get(key[1:], ':v')}" for key in keys)

    found, _ = owl(
        f":C owl:hasKey ({' '.join(keys)}) . :a a :C; {has()} . :b a :C; {has()} ."
        f":other a :C; {has(p0=':w')} . :late a :C; {has(**{f'p{length - 1}': ':u'})} ."
        f":stranger {has()} ."
    )
    same = {frozenset((s, o)) for s, p, o in found if p == SAME}
    assert same == {frozenset((f"<{EX}a>", f"<{EX}b>"))}


@pytest.mark.parametrize(
    ("turtle", "name"),
    [
        (":z a owl:AllDifferent; owl:members (:a :b :c) . :a owl:sameAs :c .", "eq-diff2"),
        (":z a owl:AllDifferent; owl:members (:a :b :a) .", "eq-diff2"),
        (":z a owl:AllDifferent; owl:distinctMembers (:a :b :c) . :b owl:sameAs :a .", "eq-diff3"),
        (":z a owl:AllDisjointClasses; owl:members (:A :B :C) . :x a :A, :C .", "cax-adc"),
        (":z a owl:AllDisjointProperties; owl:members (:p :q :r) . :x :p :y; :r :y .", "prp-adp"),
        (":a owl:differentFrom :a .", "eq-diff1"),
        (":p a owl:FunctionalProperty . :x :p 1, 2.5 .", "dt-diff"),
        (':p a owl:FunctionalProperty . :x :p "a", "b" .', "dt-diff"),
        (':p a owl:FunctionalProperty . :x :p "a", 1 .', "dt-diff"),
        (":p a owl:FunctionalProperty . :x :p true, false .", "dt-diff"),
        (":p rdfs:range xsd:string . :x :p 1 .", "dt-not-type"),
        (':x :p "one"^^xsd:integer .', "dt-not-type"),
        (
            ':C owl:onProperty :p; owl:maxCardinality "0"^^xsd:int . :x a :C; :p 1 .',
            "cls-maxc1",
        ),
    ],
)
def test_contradictions(turtle: str, name: str) -> None:
    assert name in owl(turtle)[1]


@pytest.mark.parametrize(
    "turtle",
    [
        # An equal class stands in the same cell, and is not disjoint with the other in it.
        ":z a owl:AllDisjointClasses; owl:members (:A :B) . :A owl:sameAs :A2 . :x a :A .",
        ":z a owl:AllDifferent; owl:members (:a :b) . :a owl:sameAs :c .",
        # One value, or perhaps one, in two texts.
        ":p a owl:FunctionalProperty . :x :p 1, 1.0, 01 .",
        ':p a owl:FunctionalProperty . :x :p true, "1"^^xsd:boolean .',
        ':p a owl:FunctionalProperty . :x :p "12:00:00Z"^^xsd:time, "12:00:00+00:00"^^xsd:time .',
        ":p rdfs:range xsd:byte . :x :p 1 .",
    ],
)
def test_no_contradictions(turtle: str) -> None:
    assert owl(turtle)[1] == set()


def test_an_inverse_without_a_name() -> None:
    found, _ = owl(
        ":Child owl:someValuesFrom :Person; owl:onProperty [ owl:inverseOf :parentOf ] ."
        ":ann :parentOf :bob; a :Person ."
        "[ owl:inverseOf :parentOf ] rdfs:subPropertyOf :descendantOf ."
    )
    assert triples(":bob a :Child; :descendantOf :ann .") <= found


def test_a_literal_that_a_resource_is() -> None:
    found, _ = owl(":a owl:sameAs 7 . :b owl:sameAs 7 . :c owl:sameAs 007 . :s :p 7 .")
    assert triples(":a owl:sameAs :b, :c . :b owl:sameAs :c . :s :p :a, :b .") <= found


@pytest.mark.parametrize("profile", ["owl-horst", "owl2rl"])
def test_guards_only_save_work(profile: str) -> None:
    """Without the guards there are more derivations, and more of what is equal to itself."""
    guarded = program(profile)
    unguarded = Program(tuple(replace(r, tests=_without_guards(r.tests)) for r in guarded.rules))
    data = (
        ":a owl:sameAs :b . :b owl:sameAs :c . :a :p :b . :q owl:sameAs :p ."
        ":p a owl:TransitiveProperty, owl:ObjectProperty . :C a owl:Class; rdfs:subClassOf :D ."
        ":D rdfs:subClassOf :C . :c a :C . :f a owl:FunctionalProperty . :a :f :u, :v ."
    )
    few, many = closed(data, guarded)[0], closed(data, unguarded)[0]
    assert few == {(s, p, o) for s, p, o in many if not (p == SAME and s == o)}


def _without_guards(tests: tuple) -> tuple:
    """Leave the tests on what a term is, and `!=` between cells of lists and datatypes."""
    kept = {"j", "k", "q", "r", "v", "w", "l", "m"}
    return tuple(
        test
        for test in tests
        if not (isinstance(test, Comparison) and test.operator == "!=")
        or (not isinstance(test.right, Term) and {v.name for v in test.variables} <= kept)
    )
