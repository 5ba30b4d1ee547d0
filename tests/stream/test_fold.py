"""Folding keeps the facts of every version, whatever comes and goes meanwhile."""

from __future__ import annotations

import random
from contextlib import contextmanager
from pathlib import Path

import pytest

from inferlake.kb import KnowledgeBase
from inferlake.session import Engine
from inferlake.store.fold import fold_facts, fold_terms

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
# What only the log decides is the same on either engine.
on_sail = pytest.mark.parametrize("engine", ["sail"], indirect=True)

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def _line(n: int) -> str:
    if n % 10 == 9:
        return f"<http://e/C{n % 7}> <{_RDFS}subClassOf> <http://e/C{n % 7 + 1}> ."
    return f"<http://e/i{n}> {_TYPE} <http://e/C{n % 7}> ."


@pytest.fixture
def closed(engine: Engine, tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="rdfs")


def _update(kb: KnowledgeBase, folder: Path, add: set[int], remove: set[int]) -> None:
    for name, numbers in (("add", add), ("remove", remove)):
        (folder / f"{name}.nt").write_text("".join(f"{_line(n)}\n" for n in sorted(numbers)))
    kb.update(add=folder / "add.nt", remove=folder / "remove.nt")


def _facts(kb: KnowledgeBase) -> set[tuple]:
    return {tuple(row) for row in kb.facts().collect()}


def _fold(kb: KnowledgeBase, engine: Engine, due: int = 2, **options):
    return fold_facts(engine, kb._store.facts, kb._arities, due=due, **options)


def test_a_fold_changes_nothing_but_files(closed: KnowledgeBase, engine: Engine, tmp_path: Path):
    """Facts come, go and come back over many versions; folds of a few versions lie between."""
    dice = random.Random(7)
    asserted: set[int] = set()
    steps = 14 if engine.name == "sail" else 3
    (tmp_path / "first.nt").write_text("".join(f"{_line(n)}\n" for n in range(40)))
    closed.load(tmp_path / "first.nt")
    asserted |= set(range(40))
    folds = 0
    for step in range(steps):
        remove = set(dice.sample(sorted(asserted), 8))
        add = set(dice.sample(range(60), 10)) - remove
        _update(closed, tmp_path, add, remove)
        asserted = (asserted - remove) | add
        if step % 3 == 2:
            before, version = _facts(closed), closed.version
            done = _fold(closed, engine, due=dice.choice((2, 3)))
            assert done is not None and done.files_after < done.files_before
            folds += 1
            assert _facts(closed) == before
            assert not list(closed.changes(version, done.version))
            assert closed.verify().ok
    assert folds
    expected = {tuple(_line(n)[:-2].split(" ")) for n in asserted}
    assert {row[:3] for row in _facts(closed) if row[3] == "asserted"} == expected
    before = _facts(closed)
    closed.compact()
    assert _facts(closed) == before


@on_sail
def test_a_fold_is_overtaken_by_a_change(closed: KnowledgeBase, engine: Engine, tmp_path: Path):
    """What is removed between the reading and the commit of a fold stays removed."""
    for n in range(3):
        _update_or_load(closed, tmp_path, {n, n + 10})

    @contextmanager
    def overtaken():
        _update(closed, tmp_path, {50}, {0, 11})
        yield

    done = _fold(closed, engine, alone=overtaken)
    assert done is not None and done.version == closed.version
    assert {row[0] for row in _facts(closed) if row[3] == "asserted"} == {
        f"<http://e/i{n}>" for n in (1, 2, 10, 12, 50)
    }
    assert closed.verify().ok


@on_sail
def test_a_fold_that_comes_second_changes_nothing(
    closed: KnowledgeBase, engine: Engine, tmp_path: Path
):
    for n in range(3):
        _update_or_load(closed, tmp_path, {n})

    @contextmanager
    def compacted():
        closed.compact()
        yield

    before = _facts(closed)
    folder = tmp_path / "kb" / "facts"
    assert _fold(closed, engine, alone=compacted) is None
    assert _facts(closed) == before
    named = {Path(uri).name for uri in closed._store.facts.table.snapshot()._table.file_uris()}
    left = {path.name for path in folder.rglob("*.parquet")}
    assert named <= left and len(left) == len(named) + 3, "what the fold wrote is deleted"


@on_sail
def test_terms_fold_too(closed: KnowledgeBase, engine: Engine, tmp_path: Path):
    for n in range(4):
        _update_or_load(closed, tmp_path, {n})
    before = _facts(closed)
    done = fold_terms(engine, closed._store.terms, due=3)
    assert done is not None and done.files_after == 1
    assert _facts(closed) == before
    assert fold_terms(engine, closed._store.terms, due=3) is None


def _update_or_load(kb: KnowledgeBase, folder: Path, add: set[int]) -> None:
    (folder / "load.nt").write_text("".join(f"{_line(n)}\n" for n in sorted(add)))
    kb.load(folder / "load.nt")
