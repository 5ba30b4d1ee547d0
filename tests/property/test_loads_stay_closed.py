"""A store after every load, whatever comes when, equals the reference over all that was loaded."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.evaluate.reference import closure
from inferlake.kb import KnowledgeBase
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE
from inferlake.session import Engine
from tests.property.programs import triples

EXAMPLES = {"sail": 4, "spark": 1}
PROFILES = ["rdfs", "rdfs-full", "owl-horst", "owl2rl"]

# Blank nodes get the scope of their file, which the reference knows nothing of.
loads = st.lists(
    st.lists(
        triples.filter(lambda fact: not any(term.startswith("_:") for term in fact[1])), max_size=6
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_version_is_closed(engine: Engine, profile: str) -> None:
    if engine.name == "spark" and profile in ("rdfs-full", "owl2rl"):
        pytest.skip("minutes on Spark; the plans are those of the other profiles")
    program = compiled(read_rules([profile]))

    @settings(max_examples=EXAMPLES[engine.name])
    @given(loads)
    def check(batches: list) -> None:
        with tempfile.TemporaryDirectory() as folder:
            kb = KnowledgeBase(Path(folder, "kb"), engine=engine.name, rules=profile)
            asserted: set = set()
            for number, batch in enumerate(batches):
                file = Path(folder, f"{number}.nt")
                file.write_text("".join(f"{' '.join(args)} .\n" for _, args in batch))
                kb.load(file)
                asserted |= set(batch)
                expected = closure(program, asserted)
                everything = {args for name, args in expected if name == TRIPLE}
                assert _triples(kb, "all") == everything
                assert _triples(kb, "asserted") == {args for _, args in asserted}
                assert _triples(kb, "derived") == everything - {args for _, args in asserted}
            assert kb.verify().ok and kb.verify(plain=True).ok

    check()


def _triples(kb: KnowledgeBase, layer) -> set[tuple[str, str, str]]:
    rows = [(row.subject, row.predicate, row.object) for row in kb.facts(layer).collect()]
    assert len(rows) == len(set(rows)), "a triple is there twice"
    return set(rows)


def test_other_rules_derive_everything_anew(engine: Engine, tmp_path: Path) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="none")
    (tmp_path / "a.nt").write_text(
        "<e:c> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <e:d> .\n"
        "<e:x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <e:c> .\n"
        "<e:x> <e:p> <e:y> .\n<e:y> <e:p> <e:z> .\n"
    )
    (tmp_path / "nothing.nt").write_text("")
    (tmp_path / "path.dl").write_text(
        "path(?x, ?y) :- [?x, <e:p>, ?y] .\npath(?x, ?z) :- path(?x, ?y), path(?y, ?z) .\n"
    )
    kb.load(tmp_path / "a.nt")
    assert kb.stats().derived == 0
    kb.load(tmp_path / "nothing.nt", rules="rdfs")
    assert (kb.stats().derived, kb.rules()) == (1, ("rdfs",))
    report = kb.load(tmp_path / "nothing.nt", rules=str(tmp_path / "path.dl"))
    assert (kb.stats().derived, report.derived) == (0, 3)
    assert kb.relation("path").count() == 3
    kb.compact()
    assert kb.relation("path").count() == 3
    assert kb.verify().ok
    kb.load(tmp_path / "nothing.nt", rules=["none"])
    assert (kb.stats().derived, kb.rules()) == (0, ())
    assert kb.at(2).verify().ok and kb.at(2).rules() == ("rdfs",)
