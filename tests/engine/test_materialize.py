"""`materialize`: the closure of a DataFrame, on the session it lives on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import inferlake
from inferlake.errors import InferlakeError, InputError, LimitReached, RuleError
from inferlake.session import Engine, Sessions
from inferlake.terms import TermHash

EX = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"

ZOO = [
    (f"<{EX}Cat>", SUB, f"<{EX}Animal>"),
    (f"<{EX}tom>", TYPE, f"<{EX}Cat>"),
    ("_:b", TYPE, f"<{EX}Cat>"),
    (f"<{EX}tom>", f"<{EX}says>", '"a \\"b\\""@en'),
]


def frame(engine: Engine, triples: list[tuple[str, str, str]]):
    columns = zip(*triples, strict=True)
    names = ("subject", "predicate", "object")
    return engine.session.createDataFrame(
        pa.table(dict(zip(names, map(list, columns), strict=True)))
    )


def test_a_frame_is_closed_on_its_own_session(engine: Engine, tmp_path: Path) -> None:
    given = frame(engine, [*ZOO, ZOO[0]])
    closed = inferlake.materialize(given, scratch=tmp_path)
    assert closed.columns == ["subject", "predicate", "object", "layer"]
    assert closed.sparkSession is given.sparkSession
    rows = [tuple(row) for row in closed.collect()]
    assert len(rows) == len(set(rows)) == 6
    by_layer = {
        layer: {row[:3] for row in rows if row[3] == layer} for layer in ("asserted", "derived")
    }
    assert len(by_layer["asserted"]) == 4
    assert (f"<{EX}tom>", TYPE, f"<{EX}Animal>") in by_layer["derived"]
    assert len(by_layer["derived"]) == 2
    # What came out may go in again, and is closed.
    again = inferlake.materialize(closed, scratch=tmp_path)
    assert {tuple(row)[:3] for row in again.collect()} == {row[:3] for row in rows}
    assert again.where("layer = 'derived'").count() == 0


@pytest.fixture
def sail() -> Engine:
    return Sessions("sail").for_reading()


def test_rules_of_a_file_with_relations_of_their_own(sail: Engine, tmp_path: Path) -> None:
    rules = tmp_path / "mine.dl"
    rules.write_text(f'_cat(?x) :- [?x, a, <{EX}Cat>] .\n[?x, <{EX}likes>, "fish"] :- _cat(?x) .')
    closed = inferlake.materialize(frame(sail, ZOO), ["rdfs", str(rules)])
    derived = {tuple(row)[:3] for row in closed.where("layer = 'derived'").collect()}
    assert (f"<{EX}tom>", f"<{EX}likes>", '"fish"') in derived and len(derived) == 4


def test_without_rules_only_repetitions_go(sail: Engine) -> None:
    closed = inferlake.materialize(frame(sail, [*ZOO, *ZOO]), "none")
    assert closed.count() == 4


def test_what_is_wrong_is_told(sail: Engine) -> None:
    with pytest.raises(InputError, match="has no column object"):
        inferlake.materialize(frame(sail, ZOO).drop("object"))
    with pytest.raises(InputError, match="the DataFrame"):
        inferlake.materialize(frame(sail, [("a", "b", "c")]))
    with pytest.raises(RuleError, match="neither a profile"):
        inferlake.materialize(frame(sail, ZOO), "rdsf")
    with pytest.raises(LimitReached):
        inferlake.materialize(frame(sail, ZOO), max_facts=1)
    with pytest.raises(InferlakeError, match="one id"):
        many = [(f"<{EX}{n}>", TYPE, f"<{EX}Cat>") for n in range(100)]
        inferlake.materialize(frame(sail, many), hash=TermHash(bits=6))


def test_the_scratch_folder_goes_when_python_exits(tmp_path: Path) -> None:
    code = """
import pyarrow as pa, inferlake
from inferlake.session import Sessions
session = Sessions("sail").for_reading().session
frame = session.createDataFrame(
    pa.table({"subject": ["<a:b>"], "predicate": ["<a:c>"], "object": ["<a:d>"]}))
print(inferlake.materialize(frame).count())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1"
    assert not list(tmp_path.glob("inferlake-*"))
