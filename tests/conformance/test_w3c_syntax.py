"""The W3C suites of RDF 1.1, every test, through the parser that runs on the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest

from inferlake.input import discover
from inferlake.input.parse import Parser

from .manifest import SUITES, Case, cases, excluded

# How many tests each suite has, so that a manifest read wrongly cannot pass for a suite passed.
TESTS = {
    "rdf-n-triples": 70,
    "rdf-n-quads": 87,
    "rdf-turtle": 313,
    "rdf-trig": 356,
    "rdf-xml": 166,
}


def rows(file: Path) -> list[dict[str, Any]]:
    """Return what the parser makes of a file: statements, and errors with a message."""
    numbers = pa.record_batch({"file": pa.array([0], pa.int32())})
    batches = Parser(discover([file])).documents(iter([numbers]))
    return [row for batch in batches for row in batch.to_pylist()]


def canonical(statements: str | bytes, format: ox.RdfFormat) -> set[str]:
    """Return quads with blank nodes named by their place in the graph alone."""
    dataset = ox.Dataset(ox.parse(statements, format=format))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return set(map(str, dataset))


def flaw(case: Case) -> str | None:
    """Run one test; return what is wrong, or None."""
    found = rows(case.file)
    errors = [row["message"] for row in found if row["message"]]
    if not case.valid:
        return None if errors else "accepted"
    if errors:
        return f"refused: {errors[0]}"
    if case.result is None:
        return None
    quads = "\n".join(f"{row['s']} {row['p']} {row['o']} {row['g'] or ''} ." for row in found)
    # We resolve relative IRIs against the file, and the suite against its own home.
    quads = quads.replace(f"<{case.file.parent.as_uri()}", f"<{_home(case)}")
    format = ox.RdfFormat.from_extension(case.result.suffix[1:])
    assert format is not None, case.result
    got = canonical(quads, ox.RdfFormat.N_QUADS)
    wanted = canonical(case.result.read_bytes(), format)
    return None if got == wanted else f"missing {wanted - got}, too much {got - wanted}"


def _home(case: Case) -> str:
    """Return the address that the suite assumes for the folder of the case's file."""
    assert case.home is not None, case.suite
    suite = next(folder for folder in case.file.parents if folder.name == case.suite)
    inner = case.file.parent.relative_to(suite).as_posix()
    return case.home.rstrip("/") if inner == "." else f"{case.home}{inner}"


@pytest.mark.parametrize("suite", SUITES)
def test_every_test_of_the_suite_passes_but_those_in_the_ledger(
    suite: str, shared_data: Path
) -> None:
    run = cases(shared_data / "w3c" / suite)
    assert len(run) == TESTS[suite]
    flaws = {case.name: found for case in run if (found := flaw(case)) is not None}
    assert set(flaws) == set(excluded(suite)), flaws


def test_the_ledger_names_only_tests_there_are(shared_data: Path) -> None:
    for suite in SUITES:
        names = {case.name for case in cases(shared_data / "w3c" / suite)}
        assert set(excluded(suite)) <= names
        assert all(excluded(suite).values())
