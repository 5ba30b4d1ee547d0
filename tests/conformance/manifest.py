"""The W3C's manifests: which tests a suite has, and what each expects."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox

SUITES = ("rdf-n-triples", "rdf-n-quads", "rdf-turtle", "rdf-trig", "rdf-xml")

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_RDFT = "http://www.w3.org/ns/rdftest#"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
# Stands for the folder of a manifest while it is read.
_HERE = "http://suite.invalid/"


@dataclass(frozen=True)
class Case:
    """One test: a file that is valid or not and, for some, the graph that it means."""

    suite: str
    name: str
    valid: bool
    file: Path
    result: Path | None
    # The suite's own address, which its relative IRIs are resolved against.
    home: str | None


def cases(folder: Path) -> list[Case]:
    """Return the tests of the suite in `folder`, in the order of its manifest."""
    text = (folder / "manifest.ttl").read_bytes()
    about: dict[str, dict[str, str]] = {}
    for quad in ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=f"{_HERE}manifest.ttl"):
        if isinstance(quad.subject, ox.NamedNode) and not isinstance(quad.object, ox.Triple):
            about.setdefault(quad.subject.value, {})[quad.predicate.value] = quad.object.value
    home = about[f"{_HERE}manifest.ttl"].get(f"{_MF}assumedTestBase")

    def local(address: str | None) -> Path | None:
        return folder / address.removeprefix(_HERE) if address else None

    found = []
    for node, known in about.items():
        kind = known.get(_TYPE, "").removeprefix(_RDFT)
        file = local(known.get(f"{_MF}action"))
        if kind.startswith("Test") and file is not None:
            valid, result = "Negative" not in kind, local(known.get(f"{_MF}result"))
            found.append(Case(folder.name, node.partition("#")[2], valid, file, result, home))
    return found


def excluded(suite: str) -> dict[str, str]:
    """Return the tests of `suite` that we do not pass, with the reasons, from the ledger."""
    ledger = tomllib.loads((Path(__file__).parent / "ledger.toml").read_text())
    return ledger.get(suite, {})
