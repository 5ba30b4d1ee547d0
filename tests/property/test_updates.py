"""A store after every change, of facts, schema and rules, equals the reference over what is left.

`bin/test-long` makes the long run.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.evaluate.reference import closure, contradictions
from inferlake.kb import KnowledgeBase
from inferlake.maintain import ALGORITHMS
from inferlake.plan.compile import Options
from inferlake.rules.load import RuleText, compiled, read_rules
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import Engine
from tests.property.programs import chains, owl_triples, programs, triples

EXAMPLES = {"sail": 6, "spark": 1}
PROFILES = ["rdfs", "rdfs-full", "owl-horst", "owl2rl"]

# Blank nodes get the scope of their file, which the reference knows nothing of.
named = triples.filter(lambda fact: not any(term.startswith("_:") for term in fact[1]))


def text_of(program: Program) -> str:
    """Return a program in the rule language."""
    schema = "".join(f"@schema {atom} .\n" for atom in program.schema)
    return schema + "".join(f"{rule}\n" for rule in program.rules)


@st.composite
def made_up(draw) -> tuple[list[RuleText], list]:
    """Draw a pool of rules, one a text so that they can come and go, and facts to begin with."""
    if draw(st.booleans()):
        program, found = draw(chains(only_triples=True))
    else:
        program, found = draw(programs(draw(st.booleans()))), draw(st.lists(named, max_size=12))
    texts = [
        RuleText(f"{n}.dl", text_of(Program((rule,), program.schema)))
        for n, rule in enumerate(program.rules)
    ]
    if draw(st.booleans()):  # what another rule asks for must not be
        (rule,) = draw(programs(only_triples=True)).rules[:1]
        texts.append(RuleText("constraint.dl", text_of(Program((replace(rule, heads=()),)))))
    return texts, [fact for fact in found if not any(t.startswith("_:") for t in fact[1])]


@st.composite
def steps(
    draw, pool: list[RuleText] | None, facts: list, named: st.SearchStrategy = named
) -> list[tuple]:
    """Draw changes: triples that go, triples that come, sometimes other rules, an algorithm."""
    asserted = set(facts)
    found: list[tuple] = [((), facts, None, "auto")]
    for _ in range(draw(st.integers(1, 3))):
        # From a few to nearly all of what is there, and something that is not.
        share = draw(st.sampled_from([4, 2, 1]))
        gone = [fact for fact in sorted(asserted) if draw(st.integers(0, share)) == 0]
        gone += draw(st.lists(named, max_size=1))
        new = draw(st.lists(named, max_size=4)) if draw(st.booleans()) else []
        rules = None
        if pool is not None and draw(st.integers(0, 2)) == 0:
            rules = [text for text in pool if draw(st.booleans())]
        found.append((gone, new, rules, draw(st.sampled_from(ALGORITHMS))))
        asserted = (asserted - set(gone)) | set(new)
    return found


def check(engine: Engine, folder: Path, texts: list, changes: list, options: Options) -> None:
    """Apply changes one after the other, and compare every version with the reference."""
    kb = KnowledgeBase(folder / "kb", engine=engine.name, options=options)
    asserted: set = set()
    before: set = set()
    rules = texts
    for number, (gone, new, other, algorithm) in enumerate(changes):
        rules = rules if other is None else other
        come, go = folder / f"{number}-add.nt", folder / f"{number}-remove.nt"
        come.write_text("".join(f"{' '.join(args)} .\n" for _, args in new))
        go.write_text("".join(f"{' '.join(args)} .\n" for _, args in gone))
        wanted = None if other is None and number else (tuple(rules) or ("none",))
        if number:
            report = kb.update(add=come, remove=go, rules=wanted, algorithm=algorithm)
            assert report.removed == len((asserted & set(gone)) - set(new))
            assert report.added == len(set(new) - asserted)
        else:
            report = kb.load(come, rules=wanted)
        asserted = (asserted - set(gone)) | set(new)
        program = compiled(read_rules(rules or ["none"]))
        expected = closure(program, asserted)
        everything = {args for name, args in expected if name == TRIPLE}
        assert found(kb, "asserted") == {args for _, args in asserted}
        assert found(kb, "derived") == everything - {args for _, args in asserted}
        broken = {(one.rule, one.facts) for one in report.contradictions}
        if report.more_contradictions:
            assert broken < contradictions(program, expected)
        else:
            assert broken == contradictions(program, expected)
        for name in program.arities.keys() - {TRIPLE}:
            rows = [tuple(row)[:-1] for row in kb.relation(name).collect()]
            assert sorted(rows) == sorted(args for one, args in expected if one == name)
        if number:
            told = [(row.change, tuple(row)[1:]) for row in kb.changes()]
            assert len(told) == len(set(told))
            assert {args for change, args in told if change == "added"} == everything - before
            assert {args for change, args in told if change == "removed"} == before - everything
        before = everything
    assert kb.verify().ok


def found(kb: KnowledgeBase, layer) -> set[tuple[str, str, str]]:
    rows = [(row.subject, row.predicate, row.object) for row in kb.facts(layer).collect()]
    assert len(rows) == len(set(rows)), "a triple is there twice"
    return set(rows)


def _examples(engine: Engine) -> int:
    return int(os.environ.get("INFERLAKE_EXAMPLES", EXAMPLES[engine.name]))


OPTIONS = {"specialised": Options(), "plain": Options(specialised=False, lean=False)}


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("how", OPTIONS)
def test_made_up_rules(engine: Engine, how: str) -> None:
    @settings(max_examples=_examples(engine))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        pool, facts = data.draw(made_up())
        changes = data.draw(steps(pool, facts))
        with tempfile.TemporaryDirectory() as folder:
            check(engine, Path(folder), pool, changes, OPTIONS[how])

    run()


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("profile", PROFILES)
def test_profiles(engine: Engine, profile: str) -> None:
    if engine.name == "spark" and profile in ("rdfs-full", "owl2rl"):
        pytest.skip("minutes on Spark; the plans are those of the other profiles")

    # Few facts of OWL go a long way: the reference takes a minute for what follows from a dozen.
    some, most = (
        (named, 12) if profile.startswith("rdfs") else (named | owl_triples | owl_triples, 8)
    )

    @settings(max_examples=max(1, _examples(engine) // 4))
    @given(st.lists(some, max_size=most).flatmap(lambda facts: steps(None, facts, some)))
    def run(changes: list) -> None:
        with tempfile.TemporaryDirectory() as folder:
            check(engine, Path(folder), list(read_rules([profile])), changes, Options())

    run()
