"""LUBM(1), closed: equal to what other programs derive, and right for the benchmark's queries."""

from __future__ import annotations

import csv
import gzip
import re
from itertools import islice
from pathlib import Path

import pyoxigraph as ox
import pytest

from inferlake.generate import lubm_ontology
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


@pytest.mark.parametrize("rules", ["rdfs", "owl2rl"])
def test_our_schema_has_the_consequences_of_the_published_one(
    shared_data: Path, tmp_path: Path, rules: str
) -> None:
    (tmp_path / "ours.nt").write_text(lubm_ontology())
    department = tmp_path / "some.nt"
    with gzip.open(shared_data / "lubm" / "lubm-1.nt.gz", "rt") as lines:
        department.write_text("".join(islice(lines, 5_000)))
    found = []
    for schema in (tmp_path / "ours.nt", shared_data / "lubm" / "univ-bench.nt"):
        kb = KnowledgeBase(tmp_path / schema.stem, engine="sail", rules=rules)
        kb.load(department, schema)
        rows = {tuple(row)[:3] for row in kb.facts().collect()}
        found.append({row for row in rows if not _annotates(row)})
    assert len(found[0]) > 5_000
    assert found[0] == found[1]


def _annotates(row: tuple[str, ...]) -> bool:
    """Tell what is said for readers, or of a blank node, whose name differs between stores."""
    texts = ("#label>", "#comment>", "#versionInfo>")
    return any(term.startswith("_:") for term in row) or row[1].endswith(texts)


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
