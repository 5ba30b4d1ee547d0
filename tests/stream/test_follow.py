"""Following a knowledge base: each version's changes, once, from wherever one left off."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from inferlake.errors import VersionNotFound
from inferlake.kb import KnowledgeBase

from .conftest import SUB_CLASS, TYPE, facts, line, name, put


@pytest.fixture
def told(tmp_path: Path) -> KnowledgeBase:
    """Three versions of facts, and two that only arrange them."""
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="rdfs")
    item = (name("i"), TYPE, name("C"))
    kb.load(put(tmp_path / "a.nt", [line(item)]))
    kb.compact()
    kb.load(put(tmp_path / "b.nt", [line((name("C"), SUB_CLASS, name("D")))]))
    kb.vacuum()
    kb.update(remove=put(tmp_path / "c.nt", [line(item)]))
    return kb


def _changes(found) -> set[tuple[str, str]]:
    return {(row.change, row.object) for row in found}


def test_versions_in_their_order(told: KnowledgeBase):
    found = list(told.follow(0, until=lambda: True))
    assert [one.later for one in found] == [1, 3, 5]
    assert [_changes(one) for one in found] == [
        {("added", name("C"))},
        {("added", name("D"))} | {("added", name("D"))},
        {("removed", name("C")), ("removed", name("D"))},
    ]
    assert [one.later for one in told.follow(found[1].later, until=lambda: True)] == [5]
    assert not list(told.follow(until=lambda: True))
    with pytest.raises(VersionNotFound):
        list(told.follow(99, until=lambda: True))


def test_versions_that_come_while_one_waits(told: KnowledgeBase, tmp_path: Path):
    seen: list[int] = []
    enough = threading.Event()

    def read() -> None:
        for one in told.follow(until=enough.is_set, poll=0.02):
            seen.append(one.later)

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(2):
        told.load(put(tmp_path / f"{n}.nt", [line((name(n), name("p"), name("o")))]))
    enough.set()
    reader.join(60)
    assert seen == [6, 7]


def test_patches_make_the_same_knowledge_base(told: KnowledgeBase, tmp_path: Path, capfdbinary):
    """What is followed, applied elsewhere without rules, is the same set of triples."""
    reports = list(told.follow_patches(0, until=lambda: True))
    text = capfdbinary.readouterr().out.decode()
    assert [one.triples for one in reports] == [1, 2, 2]
    headers = [one for one in text.splitlines() if one.startswith("H")]
    assert headers == [f'H version "{n}" .' for n in (1, 3, 5)]
    assert text.count("TX .") == text.count("TC .") == 3
    (tmp_path / "all.rdfp").write_text(text)
    other = KnowledgeBase(tmp_path / "other", engine="sail", rules="none")
    other.load(put(tmp_path / "x.nt", []))
    other.update(patch=tmp_path / "all.rdfp")
    assert facts(other) == facts(told)
