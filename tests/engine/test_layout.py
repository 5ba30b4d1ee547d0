"""Rows that know their file, written by either engine: a file for each part."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inferlake.session import Engine, Sessions
from inferlake.store import Store
from inferlake.store.layout import place_facts, place_terms

SIZE = 500


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferlake.store.layout._ROWS_LOW", SIZE)


def ids(count: int, seed: int) -> list[int]:
    numbers = random.Random(seed)
    return [numbers.getrandbits(63) for _ in range(count)]


def written_terms(engine: Engine, at: Path) -> None:
    """Write terms of both signs in four parts, and look at the files."""
    signed = [n if n % 2 else n - 2**63 for n in ids(2_000, 3)]
    frame = engine.session.createDataFrame(pa.table({"id": signed, "term": list(map(str, signed))}))
    table = Store.at(str(at)).terms.table
    files = place_terms(engine, frame, 2_000).gathered().write(table)
    assert sum(file.rows for file in files) == 2_000
    ranges = sorted((file.mins["id"], file.maxs["id"]) for file in files)
    assert len(ranges) == 4
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ranges))
    for file in files:
        read = pq.read_table(table.place.child(file.path).path).column("id").to_pylist()
        assert read == sorted(read)


def test_terms_are_a_file_for_each_range_of_ids(engine: Engine, tmp_path: Path) -> None:
    written_terms(engine, tmp_path / "kb")


def test_a_session_that_cannot_place_tasks_writes_the_same(tmp_path: Path) -> None:
    sail = Sessions("sail").for_reading()
    written_terms(Engine("spark", sail.session), tmp_path / "kb")


def test_facts_are_a_file_for_each_part_of_a_predicate(engine: Engine, tmp_path: Path) -> None:
    subjects, (large, *small) = ids(3_000, 1), ids(41, 2)
    facts = [(s, large, s) for s in subjects]
    facts += [(s, small[n % 40], s) for n, s in enumerate(subjects[:1_000])]
    columns = dict(zip(("s", "p", "o"), zip(*facts, strict=True), strict=True))
    frame = engine.session.createDataFrame(pa.table({k: list(v) for k, v in columns.items()}))
    table = Store.at(str(tmp_path / "kb")).facts.table
    placed = place_facts(engine, frame.selectExpr("*", "BIGINT(1) AS version"), len(facts))
    files = placed.gathered().write(table)
    own = sorted(
        (file.mins["s"], file.maxs["s"])
        for file in files
        if file.mins["p"] == file.maxs["p"] == large
    )
    assert len(own) == 6
    assert all(one[1] < other[0] for one, other in itertools.pairwise(own))
    found: Counter[tuple[int, ...]] = Counter()
    for file in files:
        read = pq.read_table(table.place.child(file.path).path, columns=["s", "p", "o"])
        found.update(zip(*(column.to_pylist() for column in read.columns), strict=True))
    assert found == Counter(facts)
