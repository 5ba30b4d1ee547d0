"""The schema of LUBM is the published one, but for labels, from which nothing follows."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox

from inferlake.generate import lubm_ontology
from inferlake.generate.lubm_schema import axioms

_SAYING_NOTHING = ("label", "comment", "versionInfo")


def graph(text: str) -> set[str]:
    """Return the triples, blank nodes renamed so that equal graphs have equal names."""
    found = ox.Dataset()
    for quad in ox.parse(text.encode(), format=ox.RdfFormat.N_TRIPLES):
        if quad.predicate.value.rpartition("#")[2] not in _SAYING_NOTHING:
            found.add(quad)
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, found))


def test_the_axioms_are_the_published_ones(shared_data: Path) -> None:
    published = graph((shared_data / "lubm" / "univ-bench.nt").read_text())
    assert graph(lubm_ontology()) == published
    assert len(published) == 215


def test_axioms_share_no_blank_nodes() -> None:
    """So a stream may bring one today and the next tomorrow."""
    nodes = [
        {word for line in axiom for word in line.split() if word[:2] == "_:"} for axiom in axioms()
    ]
    assert sum(map(len, nodes)) == len(set[str]().union(*nodes))


def test_every_axiom_is_said_once() -> None:
    lines = [line for axiom in axioms() for line in axiom]
    assert len(lines) == len(set(lines)) == 215
