"""Strategies for programs and facts: small, and rich in accidents."""

from __future__ import annotations

from dataclasses import replace

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
# What OWL's rules ask for: chance alone would hardly put such words together.
_OWL = "http://www.w3.org/2002/07/owl#"
_OF_PROPERTIES = ("Transitive", "Symmetric", "Functional", "InverseFunctional")
_KINDS = [f"<{_OWL}{name}Property>" for name in _OF_PROPERTIES]
_BETWEEN = [
    f"<{_OWL}{name}>"
    for name in (
        *("inverseOf", "equivalentProperty", "equivalentClass", "sameAs", "differentFrom"),
        *("onProperty", "someValuesFrom", "allValuesFrom", "hasValue", "disjointWith"),
    )
]
_names = st.sampled_from(IRIS[:4])
owl_triples = st.tuples(
    st.just(TRIPLE),
    st.tuples(_names, st.just(VOCABULARY[0]), st.sampled_from(_KINDS))
    | st.tuples(_names, st.sampled_from(_BETWEEN), _names)
    | st.tuples(_names, _names, _names)
    | st.tuples(_names, st.just(VOCABULARY[0]), _names),
)
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


# Rules as people write them, over edges of a few colours: they join, recurse and feed each other.
FORMS = [
    ("{0}(x, y)", "{1}(x, y)"),
    ("{0}(y, x)", "{1}(x, y)"),
    ("{0}(x, z)", "{1}(x, y) {2}(y, z)"),
    ("{0}(x, z)", "{1}(x, y) {1}(y, z)"),
    ("{0}(x, z)", "{0}(x, y) {0}(y, z)"),
    ("{0}(x, z)", "{0}(x, y) {1}(y, z)"),
    ("{0}(y, z)", "{1}(x, y) {2}(x, z)"),
    ("{0}(x, w)", "{1}(x, y) {2}(y, z) {1}(z, w)"),
    ("{0}(x, x)", "{1}(x, y) {2}(y, x)"),
    ("{0}(x, y)", "{1}(x, y) {2}(x, y)"),
]
_COLOURS = ["<e:p>", "<e:q>"]
_NODES = [f"<e:{n}>" for n in range(5)]


def form_rule(form: tuple[str, str], names: list[str], only_triples: bool) -> Rule:
    """Return a rule of one form over edges of the colours `names`."""

    def atom(text: str) -> Atom:
        colour, _, args = text.format(*names).partition("(")
        one, other = (Var(name.strip()) for name in args.split(","))
        if only_triples:
            return Atom(TRIPLE, (one, Term(colour), other))
        return Atom(colour[3], (one, other))

    head, *body = (atom(text.strip()) for text in " ".join(form).split(")") if text)
    return Rule("form", (head,), tuple(body))


@st.composite
def chains(draw, only_triples: bool) -> tuple[Program, list]:
    """Draw a program of such rules, with a graph for it."""
    colours = st.sampled_from(_COLOURS)
    rules = [
        form_rule(draw(st.sampled_from(FORMS)), [draw(colours) for _ in range(3)], only_triples)
        for _ in range(draw(st.integers(1, 4)))
    ]
    # Some say that a node has no edge to itself, unless one was given.
    apart = (Comparison(Var("x"), "!=", Var("z")),)
    rules = [
        replace(rule, tests=apart)
        if {Var("x"), Var("z")} <= set(rule.heads[0].variables) and draw(st.integers(0, 3)) == 0
        else rule
        for rule in rules
    ]
    # A path of one colour gives rules something to recurse over; the rest are accidents.
    path = draw(st.integers(0, len(_NODES) - 1))
    colour = draw(colours)
    graph = [(_NODES[n], colour, _NODES[n + 1]) for n in range(path)]
    edges = st.tuples(st.sampled_from(_NODES), colours, st.sampled_from(_NODES))
    graph = list(dict.fromkeys(graph + draw(st.lists(edges, max_size=3))))
    found = [(TRIPLE, edge) if only_triples else (edge[1][3], edge[::2]) for edge in graph]
    some = [Atom(TRIPLE, (Var("s"), Term(one), Var("o"))) for one in _COLOURS]
    schema = draw(st.lists(st.sampled_from(some), max_size=1)) if only_triples else []
    return Program(tuple(rules), tuple(schema)), found


@st.composite
def programs(draw, only_triples: bool) -> Program:
    """Draw rules, and schema patterns which may or may not be what their atoms ask for."""
    some = draw(st.lists(rules(only_triples), min_size=1, max_size=4))
    used = [
        atom for rule in some for atom in rule.body if any(isinstance(a, Term) for a in atom.args)
    ]
    schema = draw(st.lists(st.sampled_from(used), max_size=3)) if used else []
    return Program(tuple(some), tuple(schema))
