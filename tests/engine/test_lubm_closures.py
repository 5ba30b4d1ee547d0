"""LUBM(1), closed: equal to what other programs derive, and right for the benchmark's queries."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import pyoxigraph as ox
import pytest

from inferlake.kb import KnowledgeBase
from inferlake.session import Engine

# The answers that the benchmark gives for one university, by query.
OFFICIAL = [4, 0, 6, 34, 719, 7790, 67, 7790, 208, 4, 224, 15, 1, 5916]

# Blank nodes carry the scope of their file in front of their label.
_SCOPE = re.compile(r"_:f[0-9a-f]{16}_")


def _loaded(engine: Engine, data: Path, folder: Path, rules: str) -> KnowledgeBase:
    kb = KnowledgeBase(folder / "kb", engine=engine.name, rules=rules)
    kb.load(data / "lubm" / "lubm-1.nt.gz", data / "lubm" / "univ-bench.nt")
    return kb


def test_the_rdfs_closure_equals_that_of_two_other_programs(
    engine: Engine, shared_data: Path, tmp_path: Path
) -> None:
    kb = _loaded(engine, shared_data, tmp_path, "rdfs")
    kb.export(tmp_path / "closure.nt")
    found = {_SCOPE.sub("_:", line) for line in (tmp_path / "closure.nt").open()}
    with gzip.open(shared_data / "lubm" / "closures" / "lubm1.rdfs.nt.gz", "rt") as lines:
        expected = set(lines)
    assert len(expected) == 126_760
    assert found == expected
    rounds = kb.history()[0].info["rounds"]
    assert rounds == 2, "the schema, then one pass over the data"


@pytest.mark.slow
def test_the_queries_have_the_official_answers_under_owl2rl(
    shared_data: Path, tmp_path: Path
) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="owl2rl")
    kb.load(shared_data / "lubm" / "lubm-1.nt.gz", shared_data / "lubm" / "univ-bench.nt")
    kb.export(tmp_path / "closure.nt")
    store = ox.Store()
    store.bulk_load(path=str(tmp_path / "closure.nt"), format=ox.RdfFormat.N_TRIPLES)
    files = sorted(
        (shared_data / "lubm" / "queries").iterdir(),
        key=lambda file: int(re.sub(r"\D", "", file.stem)),
    )
    counts = []
    for file in files:
        rows = store.query(file.read_text())
        assert isinstance(rows, ox.QuerySolutions)
        found = {tuple(_value(row[name]) for name in rows.variables) for row in rows}
        answers = shared_data / "lubm" / "answers" / f"{file.stem}.csv"
        with answers.open(newline="") as lines:
            assert found == set(map(tuple, list(csv.reader(lines))[1:])), file.stem
        counts.append(len(found))
    assert counts == OFFICIAL


def _value(term) -> str:
    return term.value
