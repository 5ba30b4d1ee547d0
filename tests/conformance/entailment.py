"""The entailment suites: what each test asks, and whether it holds of a closure."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pyoxigraph as ox

from inferlake.evaluate.reference import Fact, closure, contradictions
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE, Program

Triple = tuple[str, str, str]
Kind = Literal["entails", "does not entail", "consistent", "inconsistent"]

SUITES = ("rdf-mt", "owl2-cases", "rdfbased-owl2rl", "rdfbased-rdfs")
RDFS = "rdfs-full"
OWL = "owl2rl"

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
# Stands for the folder of a manifest while it is read.
_HERE = "http://suite.invalid/"


@dataclass(frozen=True)
class Case:
    """One question: does the premise entail the conclusion, or is it consistent by itself?"""

    suite: str
    name: str
    kind: Kind
    profile: str
    premise: Path
    conclusion: Path | None = None


def closed(triples: Iterable[Triple], profile: str) -> tuple[set[Triple], list[str]]:
    """Return the closure of `triples` and the names of the constraints that it breaks."""
    program = _program(profile)
    facts = closure(program, _axioms(profile) | {(TRIPLE, triple) for triple in triples})
    found = {args for relation, args in facts if relation == TRIPLE}
    return found, sorted({name for name, _ in contradictions(program, facts)})  # type: ignore[return-value]


@cache
def _program(profile: str) -> Program:
    return compiled(read_rules([profile]))


@cache
def _axioms(profile: str) -> set[Fact]:
    """What follows from nothing also follows from something: to start there saves time."""
    return closure(_program(profile), ())


@cache
def _closed_file(file: Path, profile: str) -> tuple[set[Triple], list[str]]:
    return closed(graph(file), profile)


def flaw(case: Case) -> str | None:
    """Run one test; return what is wrong, or None."""
    found, broken = _closed_file(case.premise, case.profile)
    match case.kind:
        case "consistent":
            return f"contradictions: {broken}" if broken else None
        case "inconsistent":
            return None if broken else "no contradiction found"
    assert case.conclusion is not None, case.name
    # From a contradiction, everything follows.
    holds = bool(broken) or entails(found, graph(case.conclusion))
    if case.kind == "entails":
        return None if holds else "the conclusion does not follow"
    return f"the conclusion follows; contradictions: {broken}" if holds else None


def graph(file: Path) -> set[Triple]:
    """Return the triples of a file, in canonical form."""
    format = ox.RdfFormat.from_extension(file.suffix[1:])
    assert format is not None, file
    quads = ox.parse(file.read_bytes(), format=format, base_iri=f"{_HERE}{file.name}")
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads}


def entails(known: set[Triple], conclusion: set[Triple]) -> bool:
    """Tell whether `conclusion`, its blank nodes being variables, maps into `known`.

    >>> known = {("<a:a>", "<p:p>", "<b:b>")}
    >>> entails(known, {("_:x", "<p:p>", "_:y")}), entails(known, {("_:x", "<p:p>", "_:x")})
    (True, False)
    """
    return _maps(sorted(conclusion, key=lambda triple: "_:" in "".join(triple)), known, {})


def _maps(rest: list[Triple], known: set[Triple], bindings: dict[str, str]) -> bool:
    if not rest:
        return True
    # Those with most known terms first: fewest triples match them.
    rest = sorted(rest, key=lambda triple: sum(_is_open(term, bindings) for term in triple))
    wanted = tuple(bindings.get(term, term) for term in rest[0])
    if not any(_is_open(term, {}) for term in rest[0]):
        return wanted in known and _maps(rest[1:], known, bindings)
    return any(
        _maps(rest[1:], known, wider)
        for triple in known
        if (wider := _bound(rest[0], triple, bindings)) is not None
    )


def _is_open(term: str, bindings: dict[str, str]) -> bool:
    return term.startswith("_:") and term not in bindings


def _bound(wanted: Triple, triple: Triple, bindings: dict[str, str]) -> dict[str, str] | None:
    wider = dict(bindings)
    for term, value in zip(wanted, triple, strict=True):
        if (wider.setdefault(term, value) if term.startswith("_:") else term) != value:
            return None
    return wider


def cases(suite: str, data: Path) -> list[Case]:
    """Return the tests of a suite; `data` is the folder of all public data."""
    match suite:
        case "rdf-mt":
            return list(_rdf_mt(data / "w3c" / "rdf-mt"))
        case "owl2-cases":
            return list(_owl2_cases(data / "owl2" / "cases"))
        case "rdfbased-owl2rl":
            return list(_rdfbased(suite, data / "owl2" / "rdfbased" / "owl2rl", OWL))
        case "rdfbased-rdfs":
            return list(_rdfbased(suite, data / "owl2" / "rdfbased" / "rdfs", RDFS))
    raise ValueError(suite)


def _rdf_mt(folder: Path) -> Iterator[Case]:
    """The tests that the manifest lists; others in it were withdrawn."""
    text = (folder / "manifest.ttl").read_bytes()
    about: dict[str, dict[str, str]] = {}
    for quad in ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=f"{_HERE}manifest.ttl"):
        known = about.setdefault(str(quad.subject), {})
        known[quad.predicate.value] = str(quad.object)
    entry = about[f"<{_HERE}manifest.ttl>"][f"{_MF}entries"]
    while entry != f"<{_RDF}nil>":
        node = about[entry][f"{_RDF}first"]
        entry = about[entry][f"{_RDF}rest"]
        known = about[node]
        name = known[f"{_MF}name"].strip('"')
        positive = known[f"{_RDF}type"] == f"<{_MF}PositiveEntailmentTest>"
        premise, result = known[f"{_MF}action"], known[f"{_MF}result"]
        if result.startswith('"false"'):
            kind: Kind = "inconsistent" if positive else "consistent"
            yield Case(folder.name, name, kind, RDFS, _local(folder, premise))
        else:
            kind = "entails" if positive else "does not entail"
            yield Case(
                folder.name, name, kind, RDFS, _local(folder, premise), _local(folder, result)
            )


def _local(folder: Path, iri: str) -> Path:
    return folder / iri[1:-1].removeprefix(_HERE)


def _owl2_cases(folder: Path) -> Iterator[Case]:
    """A case of the index is a test for each of its types; identifying profiles is not ours."""
    kinds: dict[str, tuple[Kind, str | None]] = {
        "ConsistencyTest": ("consistent", None),
        "InconsistencyTest": ("inconsistent", None),
        "PositiveEntailmentTest": ("entails", "conclusion.nt"),
        "NegativeEntailmentTest": ("does not entail", "nonconclusion.nt"),
    }
    with (folder / "index.tsv").open(encoding="utf-8") as index:
        for row in csv.DictReader(index, delimiter="\t", quoting=csv.QUOTE_NONE):
            here = folder / row["id"]
            for kind, file in (kinds[t] for t in row["types"].split(",") if t in kinds):
                name = f"{row['id']} {kind}"
                conclusion = here / file if file else None
                yield Case("owl2-cases", name, kind, OWL, here / "premise.nt", conclusion)


def _rdfbased(suite: str, folder: Path, profile: str) -> Iterator[Case]:
    for here in sorted(folder.iterdir()):
        name = here.name
        about = (here / f"{name}.metadata.properties").read_text()
        found = re.search(r'"testcase\.type">(\w+)<', about)
        assert found is not None, here
        if found[1] == "INCONSISTENCY":
            yield Case(suite, name, "inconsistent", profile, here / f"{name}.graph.ttl")
        else:
            assert found[1] == "POSITIVE_ENTAILMENT", here
            premise, conclusion = (here / f"{name}.{p}graph.ttl" for p in ("premise", "conclusion"))
            yield Case(suite, name, "entails", profile, premise, conclusion)


def excluded(suite: str) -> dict[str, str]:
    """Return the tests of `suite` that we do not pass, with the reasons, from the ledger."""
    ledger = tomllib.loads((Path(__file__).parent / "entailment-ledger.toml").read_text())
    return ledger.get(suite, {})
