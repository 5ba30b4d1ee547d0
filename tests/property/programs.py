"""Strategies for programs and facts: small, and rich in accidents."""

from __future__ import annotations

from hypothesis import strategies as st

from inferlake.rules.model import KINDS, TRIPLE, Atom, Comparison, Kind, Program, Rule, Term, Var

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
VOCABULARY = [
    f"<{_RDF}type>",
    *(f"<{_RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")),
]
IRIS = [f"<e:{name}>" for name in "abcd"] + VOCABULARY
LITERALS = ['"a"', '"b"@en', *(f'"{text}"^^<{_XSD}integer>' for text in ("1", "02", "x"))]
TERMS = [*IRIS, "_:f0000000000000000_b", *LITERALS]
ARITIES = {TRIPLE: 3, "edge": 2, "node": 1, "wide": 4}

subjects = st.sampled_from([term for term in TERMS if not term.startswith('"')])
predicates = st.sampled_from(IRIS)
objects = st.sampled_from(TERMS)
triples = st.tuples(st.just(TRIPLE), st.tuples(subjects, predicates, objects))
variables = st.sampled_from([Var(name) for name in "xyz"])


def _others(arity: int) -> st.SearchStrategy:
    return st.tuples(*[objects] * arity)


other_facts = st.sampled_from([name for name in ARITIES if name != TRIPLE]).flatmap(
    lambda name: st.tuples(st.just(name), _others(ARITIES[name]))
)


def facts(only_triples: bool) -> st.SearchStrategy[list]:
    """Return a strategy for sets of facts."""
    one = triples if only_triples else triples | other_facts
    return st.lists(one, max_size=14, unique=True)


@st.composite
def atoms(draw, only_triples: bool, among: list[Var] | None = None) -> Atom:
    """Draw an atom with variables anywhere; in heads, only those that are bound."""
    names = [TRIPLE] if only_triples else list(ARITIES)
    name = draw(st.sampled_from(names))
    bound = variables if among is None else (st.sampled_from(among) if among else st.nothing())
    args = []
    for place in range(ARITIES[name]):
        pool = objects
        if name == TRIPLE and place < 2:
            pool = predicates if place else subjects.filter(lambda term: term[0] == "<")
        # Rules are written with IRIs and literals; a blank node has no name outside its file.
        constants = pool.filter(lambda term: term[0] != "_").map(Term)
        args.append(draw(bound | bound | constants))
    return Atom(name, tuple(args))


@st.composite
def rules(draw, only_triples: bool) -> Rule:
    """Draw a safe rule of one to three atoms."""
    body = tuple(draw(st.lists(atoms(only_triples), min_size=1, max_size=3)))
    bound = sorted({v for atom in body for v in atom.variables}, key=str)
    heads = tuple(draw(st.lists(atoms(only_triples, bound), min_size=1, max_size=2)))
    tests = ()
    if bound and draw(st.integers(0, 3)) == 0:
        tests = (draw(_tests(bound)),)
    return Rule(f"r{draw(st.integers(0, 99))}", heads, body, tests)


def _tests(bound: list[Var]) -> st.SearchStrategy:
    slots = st.sampled_from(bound) | objects.filter(lambda term: term[0] != "_").map(Term)
    operators = st.sampled_from(["=", "!=", "!=", "<", "<=", ">", ">="])
    comparisons = st.builds(Comparison, st.sampled_from(bound), operators, slots)
    kinds = st.sampled_from(sorted(KINDS)).flatmap(
        lambda name: st.builds(
            Kind, st.just(name), st.tuples(*[st.sampled_from(bound)] * KINDS[name])
        )
    )
    return comparisons | kinds


@st.composite
def programs(draw, only_triples: bool) -> Program:
    """Draw rules, and schema patterns which may or may not be what their atoms ask for."""
    some = draw(st.lists(rules(only_triples), min_size=1, max_size=4))
    used = [
        atom for rule in some for atom in rule.body if any(isinstance(a, Term) for a in atom.args)
    ]
    schema = draw(st.lists(st.sampled_from(used), max_size=3)) if used else []
    return Program(tuple(some), tuple(schema))
