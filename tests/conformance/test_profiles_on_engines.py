"""Every premise of the entailment suites, closed by the engines, equals the reference's closure."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferlake.evaluate.reference import closure, contradictions
from inferlake.plan.compile import Options
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE
from inferlake.session import Engine
from tests.conformance.entailment import SUITES, cases, graph
from tests.property.closing import close

# Spark takes seconds for what takes Sail a fraction of one; plain evaluation has many rounds.
EVERY = {("sail", True): 4, ("sail", False): 30, ("spark", True): 80, ("spark", False): 160}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("specialised", [True, False], ids=["specialised", "plain"])
@pytest.mark.parametrize("suite", SUITES)
def test_an_engine_closes_every_premise_like_the_reference(
    engine: Engine, suite: str, specialised: bool, shared_data: Path
) -> None:
    found = cases(suite, shared_data)
    premises = sorted({(case.premise, case.profile) for case in found})
    assert premises
    # Not the first ones: those of a suite that begin alike would be all that Spark sees.
    every = EVERY[engine.name, specialised]
    for premise, profile in premises[every // 2 :: every]:
        program = compiled(read_rules([profile]))
        facts = [(TRIPLE, triple) for triple in graph(premise)]
        options = Options(specialised=specialised)
        expected = closure(program, facts)
        made = close(engine, program, facts, options=options)
        assert made.facts == expected, premise
        assert made.contradictions == contradictions(program, expected), premise
