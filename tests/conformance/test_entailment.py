"""The entailment suites of RDF and OWL 2 RL, every test, against our profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from .entailment import SUITES, cases, entails, excluded, flaw

# How many tests each suite has, so that an index read wrongly cannot pass for a suite passed. The
# 86 cases of OWL 2 are 119 tests: many ask for consistency and for an entailment, one for neither.
TESTS = {"rdf-mt": 48, "owl2-cases": 119, "rdfbased-owl2rl": 137, "rdfbased-rdfs": 27}


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_every_test_of_the_suite_passes_but_those_in_the_ledger(
    suite: str, shared_data: Path
) -> None:
    run = cases(suite, shared_data)
    assert len(run) == TESTS[suite]
    flaws = {case.name: found for case in run if (found := flaw(case)) is not None}
    assert set(flaws) == set(excluded(suite)), flaws


@pytest.mark.parametrize("suite", SUITES)
def test_the_ledger_names_only_tests_there_are(suite: str, shared_data: Path) -> None:
    names = {case.name for case in cases(suite, shared_data)}
    assert set(excluded(suite)) <= names
    assert all(excluded(suite).values())


def test_blank_nodes_of_a_conclusion_are_variables() -> None:
    known = {("<a:a>", "<p:p>", "<b:b>"), ("<b:b>", "<p:p>", '"c"'), ("_:k", "<p:p>", "_:k")}
    assert entails(known, set())
    assert entails(known, {("_:x", "<p:p>", "_:y"), ("_:y", "<p:p>", '"c"')})
    assert entails(known, {("_:x", "<p:p>", "_:x")})
    assert not entails(known - {("_:k", "<p:p>", "_:k")}, {("_:x", "<p:p>", "_:x")})
    assert not entails(known, {("<a:a>", "<p:p>", "_:x"), ("_:x", "<q:q>", "_:y")})
