"""`run`: programs over tables, from files to files, on both engines."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from inferlake.cli.app import cli
from inferlake.datalog import RunReport, run
from inferlake.errors import InferlakeError, InputError, LimitReached, RuleError
from inferlake.session import Engine
from inferlake.terms import TermHash

PATHS = """
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
"""
COPY = "out(?x, ?y) :- given(?x, ?y) ."

NASTY = [
    ["5", "007"],
    ["-3", "-0"],
    ["1.50", "1e5"],
    ['a "b"', "x,y"],
    ["line\nbreak", "crlf\r\nbreak"],
    ["", " leading and trailing "],
    ["back\\slash", "\\n"],
    ['"', '""'],
    ["tab\there", "null"],
    ["é日本𝒳", "#no comment"],
    ["a\x01b\x7f", "\u2028"],
    ["<http://example.org:8080/a>", "<not an iri>"],
    ['"chat"@fr', "_:b0"],
    ["{braces}", "'"],
]


def program(tmp_path: Path, text: str, name: str = "program.dl") -> Path:
    at = tmp_path / name
    at.write_text(text)
    return at


def write_rows(at: Path, rows: Iterable[list[str]], *, end: str = "\n", sep: str = ",") -> Path:
    with at.open("w", newline="") as sink:
        csv.writer(sink, lineterminator=end, delimiter=sep).writerows(rows)
    return at


def rows_of(at: Path, sep: str = ",") -> list[list[str]]:
    with at.open(newline="") as source:
        return sorted(csv.reader(source, delimiter=sep))


def test_paths_are_the_transitive_closure(engine: Engine, tmp_path: Path) -> None:
    n = 12 if engine.name == "sail" else 4
    edges = write_rows(tmp_path / "e.csv", [[str(i), str(i + 1)] for i in range(n)] * 2)
    report = run(program(tmp_path, PATHS), {"edge": edges}, tmp_path / "out", engine=engine.name)
    expected = sorted([str(i), str(j)] for i in range(n) for j in range(i + 1, n + 1))
    assert rows_of(tmp_path / "out" / "path.csv") == expected
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["path.csv"]
    assert report.relations["edge"].given == n
    assert report.relations["path"].derived == len(expected) == report.derived
    assert report.engine == engine.name and report.rounds
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "out", "program.dl"]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("suffix", "sep"), [("csv", ","), ("tsv", "\t")])
def test_cells_come_out_as_they_went_in(
    engine: Engine, tmp_path: Path, suffix: str, sep: str, end: str
) -> None:
    given = write_rows(tmp_path / f"given.{suffix}", NASTY, end=end, sep=sep)
    copied = program(tmp_path, COPY)
    run(
        copied,
        {"given": given},
        tmp_path / "out",
        engine=engine.name,
        format=suffix,  # type: ignore[arg-type]
    )
    assert rows_of(tmp_path / "out" / f"out.{suffix}", sep) == sorted(NASTY)
    again = {"given": tmp_path / "out" / f"out.{suffix}"}
    run(copied, again, tmp_path / "parquet", engine=engine.name, format="parquet")
    table = pq.read_table(tmp_path / "parquet" / "out.parquet").to_pydict()
    assert sorted(map(list, zip(table["c0"], table["c1"], strict=True))) == sorted(NASTY)


def test_formats_meet_in_one_relation(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "_facts [1]"  # a name that engines would not read
    folder.mkdir()
    write_rows(folder / "_a.csv", [["1", "one"]])
    (folder / "b.facts").write_text('2\t"two"\n3\t\n')
    with gzip.open(folder / "c.tsv.gz", "wt") as sink:
        sink.write("4\t<http://example.org/4>\n")
    columns = {"n": pa.array([5, 1], pa.int32()), "text": pa.array(["5", "one"])}
    pq.write_table(pa.table(columns), folder / "d.parquet")
    (folder / "e.csv").write_text("")
    paths = [str(folder / name) for name in ("_a.csv", "b.facts", "c.tsv.gz", "*.parquet", "e.csv")]
    paths[3] = str(folder / "d.parquet")
    report = run(
        program(tmp_path, f"{COPY}\nlarge(?x) :- given(?x, ?y), ?x >= 4 ."),
        {"given": paths},
        tmp_path / "out",
        engine=engine.name,
    )
    assert rows_of(tmp_path / "out" / "out.csv") == [
        ["1", "one"],
        ["2", '"two"'],
        ["3", ""],
        ["4", "<http://example.org/4>"],
        ["5", "5"],
    ]
    assert rows_of(tmp_path / "out" / "large.csv") == [["4"], ["5"]]
    assert report.relations["given"].given == 5  # the same fact in two files is one


def test_types_of_parquet_say_what_terms_are(engine: Engine, tmp_path: Path) -> None:
    doubles = pa.array([0.5, float("inf"), float("nan")])
    table = {"d": doubles, "i": pa.array([1, 2, 3], pa.uint8()), "s": pa.array(["1", "x", "y"])}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    rules = """
    small(?d) :- t(?d, ?i, ?s), ?d < 1 .
    number(?s) :- t(?d, ?i, ?s), has_datatype(?s, xsd:integer) .
    whole(?i) :- t(?d, ?i, ?s), has_datatype(?i, xsd:integer) .
    all(?d) :- t(?d, ?i, ?s) .
    """
    facts = {"t": tmp_path / "t.parquet"}
    run(program(tmp_path, rules), facts, tmp_path / "out", engine=engine.name)
    found = {at.stem: rows_of(at) for at in (tmp_path / "out").iterdir()}
    assert found == {
        "small": [["0.5"]],
        "number": [],
        "whole": [["1"], ["2"], ["3"]],
        "all": [["0.5"], ["INF"], ["NaN"]],
    }


def test_numbers_of_csv_are_compared_by_value(engine: Engine, tmp_path: Path) -> None:
    ages = write_rows(
        tmp_path / "a.csv", [["ann", "9"], ["bob", "17.5"], ["cy", "100"], ["d", "x"]]
    )
    rules = (
        "old(?n) :- age(?n, ?a), ?a > 17 .\nolder(?x, ?y) :- age(?x, ?a), age(?y, ?b), ?a > ?b ."
    )
    run(program(tmp_path, rules), {"age": ages}, tmp_path / "out", engine=engine.name)
    assert rows_of(tmp_path / "out" / "old.csv") == [["bob"], ["cy"]]
    assert rows_of(tmp_path / "out" / "older.csv") == [["bob", "ann"], ["cy", "ann"], ["cy", "bob"]]


def test_rdf_and_tables_meet(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text(
        '@prefix ex: <http://example.org/> . ex:a ex:name "a \\"b\\"\\n", "chat"@fr; ex:age 5 .'
    )
    names = write_rows(tmp_path / "n.csv", [['a "b"\n', "7"], ["chat", "8"]])
    rules = """
    @prefix ex: <http://example.org/> .
    found(?s, ?n) :- [?s, ex:name, ?t], code(?t, ?n) .
    [?s, ex:code, ?n] :- found(?s, ?n) .
    _hidden(?s) :- found(?s, ?n) .
    """
    facts = {"triple": tmp_path / "d.ttl", "code": names}
    report = run(program(tmp_path, rules), facts, tmp_path / "out", engine=engine.name)
    assert rows_of(tmp_path / "out" / "found.csv") == [["<http://example.org/a>", "7"]]
    triples = rows_of(tmp_path / "out" / "triple.csv")
    assert ["<http://example.org/a>", "<http://example.org/code>", "7"] in triples
    assert ["<http://example.org/a>", "<http://example.org/name>", '"chat"@fr'] in triples
    assert len(triples) == 4
    assert report.written == ("found", "triple")


# --- the rest is the same on both engines, and asked of the faster -------------------------------


@pytest.fixture
def sail(tmp_path: Path):
    """Run a program on Sail, with `facts` in files of their names."""

    def call(text: str, /, **facts: str) -> RunReport:
        given = {}
        for name, rows in facts.items():
            given[name] = tmp_path / f"{name}.csv"
            given[name].write_text(rows)
        return run(program(tmp_path, text), given, tmp_path / "out", engine="sail")

    return call


def test_contradictions_are_listed_with_rule_and_facts(sail) -> None:
    report = sail("[older] false :- born(?x, ?y), died(?x, ?z), ?z < ?y .", born="a,5", died="a,3")
    assert [one.rule for one in report.contradictions] == ["older"]
    assert report.contradictions[0].facts[0] == (
        "born",
        ('"a"', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    )
    assert "1 contradictions" in str(report) and str(report.contradictions[0]).startswith("older: ")


def test_a_relation_without_facts_is_an_empty_file_and_a_warning(sail, tmp_path: Path) -> None:
    report = sail("a(?x) :- b(?x), c(?x) .\nd(?x) :- e(?x) .", b="1\n")
    assert (tmp_path / "out" / "a.csv").read_text() == ""
    assert [warning.split(":")[0] for warning in report.warnings] == [
        "no facts of c",
        "no facts of e",
    ]


def test_facts_in_the_program_count(sail, tmp_path: Path) -> None:
    sail('colour(1, "red") .\npaint(?y) :- colour(?x, ?y), ?x < 2 .')
    assert (tmp_path / "out" / "paint.csv").read_text() == "red\n"
    assert not (tmp_path / "out" / "colour.csv").exists()


def test_a_header_is_passed_over_or_warned_of(tmp_path: Path) -> None:
    given = {"given": write_rows(tmp_path / "g.csv", [["from", "to"], ["1", "2"]])}
    copied = program(tmp_path, COPY)
    report = run(copied, given, tmp_path / "with", engine="sail", header=True)
    assert rows_of(tmp_path / "with" / "out.csv") == [["1", "2"]] and not report.warnings
    second = write_rows(tmp_path / "h.csv", [["from", "to"], ["3", "4"]])
    both = {"given": [given["given"], second]}
    run(copied, both, tmp_path / "both", engine="sail", header=True)
    assert rows_of(tmp_path / "both" / "out.csv") == [["1", "2"], ["3", "4"]]
    report = run(copied, given, tmp_path / "without", engine="sail")
    assert "say --header" in report.warnings[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.csv", b"1,2,3\n", "3 columns here, and given has 2 arguments"),
        ("g.csv", b'1,2\n"a\nb",2\n3\n', "g.csv:4: 1 column here"),
        ("g.csv", b"1,2\n\xff,3\n", "g.csv:2: not UTF-8"),
        ("g.tsv", b"1\t2\n1\t2\t3\n", "g.tsv:2: 3 columns here"),
        ("g.facts", b"1\t2\n1\n", "g.facts:2: 1 column here"),
        ("g.csv.gz", b"1,2\n", "cannot be read"),
        ("g.parquet", b"1,2\n", "not a Parquet file"),
        ("g.xls", b"", "unknown suffix"),
        ("g.csv.zst", b"", "unpack the file"),
        ("g.nt", b"<a:b> <a:b> <a:b> .\n", "3 columns here, and given has 2 arguments"),
    ],
)
def test_bad_files_are_told_with_the_place(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        given = {"given": tmp_path / name}
        run(program(tmp_path, COPY), given, tmp_path / "out", engine="sail")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "program.dl"])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([True]), "column b is of type bool"),
        (pa.array([None], pa.string()), "column 2 has rows without a value"),
    ],
)
def test_parquet_that_makes_no_facts(column: pa.Array, message: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": column}), tmp_path / "g.parquet")
    with pytest.raises(InputError, match=message):
        given = {"given": tmp_path / "g.parquet"}
        run(program(tmp_path, COPY), given, tmp_path / "out", engine="sail")


def test_mistakes_of_the_call(sail, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rule of the program mentions; relations are: given"):
        sail(COPY, givn="1,2")
    with pytest.raises(InputError, match="takes RDF files"):
        sail("[?x, ?y, ?z] :- [?x, ?y, ?z], a(?x) .", triple="1,2,3")
    with pytest.raises(InputError, match="no such file"):
        run(program(tmp_path, COPY), {"given": tmp_path / "none.csv"}, tmp_path / "out")
    for no_paths in (None, 5, [None], {"a": 1}):
        with pytest.raises(InputError, match="is no facts for given: give paths"):
            run(program(tmp_path, COPY), {"given": no_paths}, tmp_path / "out")  # type: ignore[dict-item]
    with pytest.raises(InputError, match="no format"):
        run(program(tmp_path, COPY), {}, tmp_path / "out", format="xml")  # type: ignore[arg-type]
    with pytest.raises(RuleError, match="R102"):
        sail("a(?x) :- b(?y) .")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    with pytest.raises(InputError, match="already there"):
        sail(COPY, given="1,2")


def test_limits_leave_nothing_behind(tmp_path: Path) -> None:
    edges = write_rows(tmp_path / "e.csv", [[str(i), str(i + 1)] for i in range(9)])
    rules = program(tmp_path, PATHS)
    with pytest.raises(LimitReached, match="--max-rounds"):
        run(rules, {"edge": edges}, tmp_path / "o", engine="sail", max_rounds=2)
    with pytest.raises(LimitReached, match="--max-facts"):
        run(rules, {"edge": edges}, tmp_path / "o", engine="sail", max_facts=10)
    assert not (tmp_path / "o").exists()


def test_two_terms_with_one_id_are_refused(tmp_path: Path) -> None:
    given = write_rows(tmp_path / "g.csv", [[f"a{i}", f"b{i}"] for i in range(100)])
    with pytest.raises(InferlakeError, match="terms have one id"):
        copied = program(tmp_path, COPY)
        run(copied, {"given": given}, tmp_path / "o", engine="sail", hash=TermHash(bits=6))


def test_the_command_ends_with_1_on_inconsistency(tmp_path: Path) -> None:
    rules = program(tmp_path, "[no] false :- a(?x) .\nb(?x) :- a(?x) .")
    facts = write_rows(tmp_path / "a.csv", [["1"]])
    args = ["run", str(rules), "--facts", f"a={facts}", "--fail-on-inconsistency", "-o"]
    result = CliRunner().invoke(cli, ["-q", "--engine", "sail", *args, str(tmp_path / "one")])
    assert result.exit_code == 1
    assert "contradiction: no: a(" in result.output
    result = CliRunner().invoke(cli, ["--json", "--engine", "sail", *args, str(tmp_path / "two")])
    report = json.loads(result.stdout)
    assert report["relations"]["b"] == {"given": 0, "derived": 1}
    assert (tmp_path / "two" / "b.csv").read_text() == "1\n"


def test_lubm_by_the_rules_of_vlog(shared_data: Path, tmp_path: Path) -> None:
    rules = (shared_data / "rules" / "LUBM_L.dlog").read_text()
    there, here = "http://swat.cse.lehigh.edu/onto/", "http://www.lehigh.edu/~zhp2/2004/0401/"
    at = program(tmp_path, rules.replace(there, here), "LUBM_L.dlog")
    data = shared_data / "lubm" / "lubm-1.nt.gz"
    run(at, {"TE": data}, tmp_path / "out", engine="sail")
    # Triples that no rule imports, such as names, are in the closure as they were given.
    found = triples_of(at.read_text(), tmp_path / "out") | triples_in(data)
    assert found == triples_in(shared_data / "lubm" / "closures" / "lubm1.LUBM_L.nt.gz")
    assert len(found) == 137_961


def triples_in(file: Path) -> set[str]:
    with gzip.open(file, "rt") as source:
        return {line.rstrip(" .\n") for line in source}


def triples_of(rules: str, folder: Path) -> set[str]:
    """Return the relations RPn as triples, which the rules that import them say how to do."""
    found: set[str] = set()
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    for line in rules.splitlines():
        head, _, body = line.partition(" :- ")
        if not body.startswith("TE("):
            continue
        subject, predicate, object = body[3:-1].split(",")
        for row in rows_of(folder / f"{head.partition('(')[0]}.csv"):
            if predicate == "rdf:type":
                found.add(f"{row[0]} {rdf_type} {object}")
            else:
                assert (subject, object) == ("A", "B")
                term = row[1] if row[1].startswith("<") else f'"{row[1]}"'
                found.add(f"{row[0]} {predicate} {term}")
    return found
