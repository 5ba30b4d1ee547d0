"""Every way of evaluating equals the reference evaluator, on programs that nobody would write."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.evaluate.reference import closure, contradictions
from inferlake.plan.compile import Options
from inferlake.rules.model import Program
from inferlake.session import Engine
from tests.property.closing import close
from tests.property.programs import FORMS, chains, facts, form_rule, programs

# Specialised, plain, with a driver that can hold almost no schema, and without leaving idle out.
OPTIONS = [
    Options(),
    Options(specialised=False),
    Options(driver_facts=2),
    Options(lean=False),
]
EXAMPLES = {"sail": 60, "spark": 4}


@st.composite
def cases(draw) -> tuple[Program, list, int]:
    only_triples = draw(st.booleans())
    if draw(st.booleans()):
        program, found = draw(chains(only_triples))
    else:
        program, found = draw(programs(only_triples)), draw(facts(only_triples))
    return program, found, draw(st.integers(0, len(found)))


@pytest.mark.parametrize("options", OPTIONS, ids=["specialised", "plain", "demoted", "thorough"])
def test_a_closure_equals_the_reference(engine: Engine, options: Options) -> None:
    @settings(max_examples=EXAMPLES[engine.name])
    @given(cases())
    def check(case: tuple[Program, list, int]) -> None:
        program, given_facts, split = case
        expected = closure(program, given_facts)
        assert close(engine, program, given_facts, options=options).facts == expected
        # The same in two steps: what was closed before is not derived again.
        old = closure(program, given_facts[:split])
        new = [fact for fact in given_facts[split:] if fact not in old]
        assert close(engine, program, new, closed=old, options=options).facts == expected

    check()


@pytest.mark.parametrize("first", range(len(FORMS)), ids=[body for _, body in FORMS])
def test_every_pair_of_common_rules_equals_the_reference(engine: Engine, first: int) -> None:
    """The second rule feeds on what the first derives: both must be done, and no step be missed."""
    nodes = [f"<e:{n}>" for n in range(7)]
    graph = [("triple", (one, "<e:p>", other)) for one, other in itertools.pairwise(nodes)]
    graph.append(("triple", (nodes[1], "<e:q>", nodes[4])))
    seconds = FORMS if engine.name == "sail" else FORMS[7:8]
    for second in seconds:
        lower = form_rule(FORMS[first], ["<e:p>", "<e:p>", "<e:q>"], only_triples=True)
        upper = form_rule(second, ["<e:r>", "<e:p>", "<e:p>"], only_triples=True)
        program = Program((lower, upper))
        assert close(engine, program, graph).facts == closure(program, graph)


def test_contradictions_equal_the_reference(engine: Engine) -> None:
    @settings(max_examples=EXAMPLES[engine.name])
    @given(cases())
    def check(case: tuple[Program, list, int]) -> None:
        program, given_facts, _ = case
        first, *others = program.rules
        constrained = Program((replace(first, heads=()), *others), program.schema)
        expected = contradictions(constrained, closure(constrained, given_facts))
        assert close(engine, constrained, given_facts).contradictions == expected

    check()
