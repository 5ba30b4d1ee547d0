"""Which rows go into which file. On Sail, which needs no JVM."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable

import pyarrow as pa
import pytest

from inferlake.session import Engine, Sessions
from inferlake.store.layout import RDF_TYPE, place_facts, place_terms, rows_per_file

SIZE = 500

Fact = tuple[int, int, int]


@pytest.fixture
def sail(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Sail, and files of a few rows instead of many thousands."""
    monkeypatch.setattr("inferlake.store.layout._ROWS_LOW", SIZE)
    return Sessions("sail").for_reading()


def test_a_file_has_a_share_of_the_rows_within_bounds() -> None:
    assert rows_per_file(0) == rows_per_file(1) == rows_per_file(8_000_000) == 250_000
    assert rows_per_file(32_000_000) == 1_000_000
    assert rows_per_file(10**9) == rows_per_file(10**11) == 4_000_000


def ids(count: int, seed: int = 0) -> list[int]:
    """Return ids as hashes have them: uniform over 63 bits."""
    numbers = random.Random(seed)
    return [numbers.getrandbits(63) for _ in range(count)]


SUBJECTS = ids(6000)
PREDICATES = ids(200, seed=1)
CLASSES = ids(400, seed=2)


def many_predicates() -> list[Fact]:
    """No predicate fills a file."""
    return [(s, PREDICATES[n % 200], s) for n, s in enumerate(SUBJECTS)]


def one_predicate() -> list[Fact]:
    return [(s, PREDICATES[0], n) for n, s in enumerate(SUBJECTS)]


def many_classes() -> list[Fact]:
    """No class fills a file, though `rdf:type` fills many."""
    return [(s, RDF_TYPE, CLASSES[n % 400]) for n, s in enumerate(SUBJECTS)]


def mixed() -> list[Fact]:
    """Some of each: large and small classes, large and small predicates."""
    facts = [(s, RDF_TYPE, CLASSES[0]) for s in SUBJECTS[:1800]]
    facts += [(s, RDF_TYPE, CLASSES[1]) for s in SUBJECTS[:600]]
    facts += [(s, RDF_TYPE, CLASSES[n % 400]) for n, s in enumerate(SUBJECTS[2000:3500])]
    facts += [(s, PREDICATES[0], -s) for s in SUBJECTS[:2000]]
    facts += [(s, PREDICATES[1], s) for s in SUBJECTS[:400]]
    return facts + [(s, PREDICATES[n % 200], s) for n, s in enumerate(SUBJECTS[:1500])]


SHAPES = [many_predicates, one_predicate, many_classes, mixed]


def placed(sail: Engine, facts: list[Fact]) -> tuple[dict[int, list[Fact]], int]:
    columns = (pa.array(column, pa.int64()) for column in zip(*facts, strict=True))
    frame = sail.session.createDataFrame(pa.table(dict(zip("spo", columns, strict=True))))
    rows = place_facts(sail, frame, len(facts))
    found = defaultdict(list)
    for row in rows.rows.collect():
        found[row.part].append((row.s, row.p, row.o))
    return found, rows.parts


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_every_row_is_in_exactly_one_part(sail: Engine, shape: Callable[[], list[Fact]]) -> None:
    facts = shape()
    found, parts = placed(sail, facts)
    assert Counter(fact for part in found.values() for fact in part) == Counter(facts)
    assert set(found) <= set(range(parts))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_parts_are_of_similar_size(sail: Engine, shape: Callable[[], list[Fact]]) -> None:
    facts = shape()
    found, parts = placed(sail, facts)
    sizes = [len(part) for part in found.values()]
    assert max(sizes) < 2 * SIZE
    assert len(facts) / SIZE <= parts < 2 * len(facts) / SIZE + 2


def ranges(part: list[Fact], column: int) -> range:
    values = [fact[column] for fact in part]
    return range(min(values), max(values) + 1)


def test_bounds_tell_the_files_of_a_large_predicate_and_of_a_subject_in_it(sail: Engine) -> None:
    found, parts = placed(sail, mixed())
    with_it = [part for part in found.values() if PREDICATES[0] in ranges(part, 1)]
    # Its own five files, and at most one where it lies between others.
    assert 5 <= len(with_it) <= 6 < parts
    for subject in SUBJECTS[:50]:
        assert sum(subject in ranges(part, 0) for part in with_it) <= 2


def test_bounds_tell_the_files_of_a_class_large_or_small(sail: Engine) -> None:
    found, _ = placed(sail, mixed())
    of_types = [part for part in found.values() if RDF_TYPE in ranges(part, 1)]
    large = [part for part in of_types if CLASSES[0] in ranges(part, 2)]
    # Its own four files, one of small classes, and at most one where `rdf:type` is between others.
    assert 4 <= len(large) <= 6
    for small in CLASSES[50:70]:
        assert sum(small in ranges(part, 2) for part in of_types) <= 2


def test_few_rows_are_one_file(sail: Engine) -> None:
    found, parts = placed(sail, mixed()[:SIZE])
    assert (list(found), parts) == ([0], 1)


@pytest.mark.parametrize(("total", "parts"), [(1, 1), (500, 1), (501, 2), (2000, 4), (2001, 8)])
def test_terms_are_cut_into_a_power_of_two_of_ranges(sail: Engine, total: int, parts: int) -> None:
    signed = [n if n % 2 else n - 2**63 for n in ids(300, seed=3)]
    frame = sail.session.createDataFrame(pa.table({"id": signed, "term": [str(n) for n in signed]}))
    placed = place_terms(sail, frame, total)
    found = placed.rows.collect()
    assert placed.parts == parts
    assert sorted(row.id for row in found) == sorted(signed)
    in_order = [row.part for row in sorted(found, key=lambda row: row.id)]
    assert in_order == sorted(in_order)
    assert set(in_order) == set(range(parts))
