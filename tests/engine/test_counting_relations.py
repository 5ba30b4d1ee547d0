"""Counting under rules with a relation of their own: facts of one part are not those of another."""

from __future__ import annotations

from pathlib import Path

from inferlake.kb import KnowledgeBase
from inferlake.session import Engine

RULES = """
@prefix : <http://example.org/> .
reach(?x, ?y) :- [?x, :p, ?y] .
reach(?x, ?z) :- reach(?x, ?y), [?y, :p, ?z] .
"""
STEPS = [
    f"<http://example.org/{n}> <http://example.org/p> <http://example.org/{n + 1}> .\n"
    for n in range(6)
]


def test_a_relation_loses_what_triples_no_longer_support(engine: Engine, tmp_path: Path) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name)
    files = {name: tmp_path / f"{name}.nt" for name in ("start", "gone")}
    files["start"].write_text("".join(STEPS))
    files["gone"].write_text(STEPS[3])
    (tmp_path / "reach.dl").write_text(RULES)
    kb.load(files["start"], rules=str(tmp_path / "reach.dl"))
    assert kb.relation("reach").count() == 6 * 7 // 2
    kb.update(remove=files["gone"], algorithm="counting")
    # Three steps before the gap, and two after it.
    assert kb.relation("reach").count() == 3 * 4 // 2 + 2 * 3 // 2
    assert kb.verify().ok
