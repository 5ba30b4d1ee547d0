"""The W3C suites through the engines: the lines they split, and the documents they hand out."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox
import pytest

from inferlake.input import InputFile, Staged, discover, stage
from inferlake.input.parse import Parser
from inferlake.paths import place
from inferlake.progress import Silent
from inferlake.session import Engine
from inferlake.terms import FULL

from .manifest import Case, cases

pytestmark = pytest.mark.slow

Triple = tuple[str, str, str]

LINES = ("rdf-n-triples", "rdf-n-quads")
DOCUMENTS = ("rdf-turtle", "rdf-trig", "rdf-xml")

# Spark takes its time for each file, however small: it gets all lines of a suite in one file, and
# of the documents one in so many.
ONE_IN = {"sail": 1, "spark": 15}


@pytest.fixture(autouse=True)
def all_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bad statement is told, not only the first few."""
    monkeypatch.setattr(sys.modules[stage.__module__], "SHOWN", 10_000)


def chosen(shared_data: Path, suites: tuple[str, ...], *, valid: bool) -> list[Case]:
    every = (case for suite in suites for case in cases(shared_data / "w3c" / suite))
    return [case for case in every if case.valid == valid]


def files_for(engine: Engine, run: list[Case], folder: Path) -> tuple[InputFile, ...]:
    """Return the files of N-Triples and N-Quads tests, joined by format where files are costly."""
    if engine.name == "sail":
        return discover([case.file for case in run])
    for case in run:
        with (folder / f"joined{case.file.suffix}").open("ab") as joined:
            joined.write(case.file.read_bytes() + b"\n")
    return discover([folder / f"joined{suffix}" for suffix in (".nt", ".nq")])


def staged(engine: Engine, files: tuple[InputFile, ...], folder: Path) -> Staged:
    at = place(folder / "staged")
    return stage(engine, at, files, hash=FULL, progress=Silent(), skip_bad=True)


def triples(found: Staged) -> set[Triple]:
    return {(row.s_term, row.p_term, row.o_term) for row in found.triples.collect()}


def by_a_parser(file: InputFile) -> tuple[set[Triple], list[str]]:
    """Return the triples of a file of lines, and the lines that are not valid, line by line."""
    format = ox.RdfFormat.from_extension(file.format)
    assert format is not None
    right: set[Triple] = set()
    wrong: list[str] = []
    for line in Path(file.address).read_bytes().splitlines():
        try:
            quads = list(ox.parse(line, format=format))
        except SyntaxError:
            wrong.append(line.decode())
        else:
            right |= {
                (_name(q.subject, file), str(q.predicate), _name(q.object, file)) for q in quads
            }
    return right, wrong


def _name(term: object, file: InputFile) -> str:
    return f"_:{file.scope}{term.value}" if isinstance(term, ox.BlankNode) else str(term)


def test_valid_lines_give_their_triples(engine: Engine, shared_data: Path, tmp_path: Path) -> None:
    files = files_for(engine, chosen(shared_data, LINES, valid=True), tmp_path)
    found = staged(engine, files, tmp_path)
    assert found.bad == ()
    assert triples(found) == set().union(*(by_a_parser(file)[0] for file in files))


def test_every_invalid_line_is_found(engine: Engine, shared_data: Path, tmp_path: Path) -> None:
    run = chosen(shared_data, LINES, valid=False)
    for (file,) in (discover([case.file]) for case in run):
        assert by_a_parser(file)[1], f"no line of {file.address} is wrong by itself"
    files = files_for(engine, run, tmp_path)
    found = staged(engine, files, tmp_path)
    wrong = [(file.address, line) for file in files for line in by_a_parser(file)[1]]
    assert {(bad.address, bad.text) for bad in found.bad} == set(wrong)
    assert found.bad_count == len(wrong) and all(bad.line for bad in found.bad)
    assert triples(found) == set().union(*(by_a_parser(file)[0] for file in files))


@pytest.mark.parametrize("valid", [True, False])
def test_documents_give_what_the_parser_gives(
    engine: Engine, valid: bool, shared_data: Path, tmp_path: Path
) -> None:
    run = chosen(shared_data, DOCUMENTS, valid=valid)[:: ONE_IN[engine.name]]
    files = discover([case.file for case in run])
    numbers = pa.record_batch({"file": pa.array(range(len(files)), pa.int32())})
    batches = Parser(files).documents(iter([numbers]))
    rows = [row for batch in batches for row in batch.to_pylist()]

    found = staged(engine, files, tmp_path)

    assert triples(found) == {(r["s"], r["p"], r["o"]) for r in rows if r["message"] is None}
    errors = {(files[r["file"]].address, r["message"]) for r in rows if r["message"]}
    assert {(bad.address, bad.message) for bad in found.bad} == errors
    assert {address for address, _ in errors} == (
        {f.address for f in files} if not valid else set()
    )
