"""Every way of removing equals the reference evaluator without what was removed.

`bin/test-long` makes the long run.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.evaluate.reference import closure
from inferlake.evaluate.retract import Algorithm
from inferlake.plan.compile import Options
from inferlake.rules.model import Program
from inferlake.session import Engine
from tests.property.closing import retract
from tests.property.programs import chains, facts, programs

OPTIONS = [Options(), Options(specialised=False), Options(driver_facts=2)]
EXAMPLES = {"sail": 20, "spark": 1}


@st.composite
def removals(draw) -> tuple[Program, Program, list, list]:
    """A program, what is left of it, facts, and those that go."""
    only_triples = draw(st.booleans())
    if draw(st.booleans()):
        program, found = draw(chains(only_triples))
    else:
        program, found = draw(programs(only_triples)), draw(facts(only_triples))
    gone = [fact for fact in found if draw(st.integers(0, 3)) == 0]
    rules = program.rules
    if draw(st.integers(0, 3)) == 0:
        rules = tuple(rule for rule in rules if draw(st.booleans()))
    return program, Program(rules, program.schema), found, gone


@pytest.mark.timeout(0)
@pytest.mark.parametrize("options", OPTIONS, ids=["specialised", "plain", "demoted"])
@pytest.mark.parametrize("algorithm", ["bf", "dred", "counting"])
def test_what_is_gone_equals_the_reference(
    engine: Engine, algorithm: Algorithm, options: Options
) -> None:
    @settings(max_examples=int(os.environ.get("INFERLAKE_EXAMPLES", EXAMPLES[engine.name])))
    @given(removals())
    def check(case: tuple[Program, Program, list, list]) -> None:
        program, kept, given_facts, removed = case
        left = closure(kept, set(given_facts) - set(removed))
        expected = closure(program, given_facts) - left
        gone, _ = retract(engine, program, kept, given_facts, removed, algorithm, options=options)
        assert gone == expected

    check()
