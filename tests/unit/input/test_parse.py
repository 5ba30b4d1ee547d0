"""The parser on the workers: statements and errors of documents and of lines."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from inferlake.errors import InputError
from inferlake.input import discover
from inferlake.input.parse import Parser
from inferlake.input.rows import PARSED_SCHEMA, PARSED_SQL, SHOWN_TEXT

PREFIX = "@prefix : <http://example.org/> .\n"
TRIPLE = "<a:s> <a:p> <a:o> ."

Row = dict[str, Any]


def rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    found = list(batches)
    assert all(batch.schema == PARSED_SCHEMA for batch in found)
    return [row for batch in found for row in batch.to_pylist()]


def document(folder: Path, text: str | bytes, name: str) -> list[Row]:
    """Return the rows of a document of that name."""
    data = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(data)
    files = discover([folder / name])
    return rows(
        Parser(files).documents(iter([pa.record_batch({"file": pa.array([0], pa.int32())})]))
    )


def lines(folder: Path, *raw: bytes, format: str = "nt") -> list[Row]:
    """Return the rows of lines, as an engine hands them over."""
    (folder / "a.txt").touch()
    files = discover([folder / "a.txt"], format=format)
    batch = pa.record_batch(
        {"file": pa.array([0] * len(raw), pa.int32()), "line": pa.array(raw, pa.binary())}
    )
    return rows(Parser(files).lines(iter([batch])))


def terms(found: list[Row]) -> list[tuple[str, str, str]]:
    return [(row["s"], row["p"], row["o"]) for row in found if row["message"] is None]


def errors(found: list[Row]) -> list[Row]:
    return [row for row in found if row["message"] is not None]


def test_the_schema_is_the_same_in_sql_and_in_arrow() -> None:
    kinds = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string()}
    columns = (pair.partition(" ") for pair in PARSED_SQL.split(", "))
    assert pa.schema([(name, kinds[kind]) for name, _, kind in columns]) == PARSED_SCHEMA


# --- documents ----------------------------------------------------------------------------------


def test_a_document_gives_canonical_terms(tmp_path: Path) -> None:
    text = PREFIX + ':a :b 1, "x"@EN, "\\u0041\\n", :c .'
    assert [o for _, _, o in terms(document(tmp_path, text, "a.ttl"))] == [
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"x"@en',
        '"A\\n"',
        "<http://example.org/c>",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ttl", "<a:s> <a:p> <a:o> ."),
        ("a.trig", "<a:s> <a:p> <a:o> ."),
        ("a.n3", "<a:s> <a:p> <a:o> ."),
        ("a.nt.zst", TRIPLE),
        ("a.jsonld", '{"@id": "a:s", "a:p": {"@id": "a:o"}}'),
        (
            "a.rdf",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:">'
            '<rdf:Description rdf:about="a:s"><a:p rdf:resource="a:o"/></rdf:Description>'
            "</rdf:RDF>",
        ),
    ],
)
def test_every_format_gives_the_same_triple(name: str, text: str, tmp_path: Path) -> None:
    data = text.encode()
    if name.endswith(".zst"):
        with pa.CompressedOutputStream(pa.OSFile(str(tmp_path / name), "wb"), "zstd") as sink:
            sink.write(data)
        data = (tmp_path / name).read_bytes()
    assert terms(document(tmp_path, data, name)) == [("<a:s>", "<a:p>", "<a:o>")]


def test_relative_names_are_resolved_against_the_file(tmp_path: Path) -> None:
    ((s, _, o),) = terms(document(tmp_path, "<#me> <a:p> <other> .", "é b.ttl"))
    assert s == f"<{(tmp_path / 'é b.ttl').as_uri()}#me>"
    assert o == f"<{(tmp_path / 'other').as_uri()}>"


def test_blank_nodes_have_the_same_names_when_a_document_is_parsed_again(tmp_path: Path) -> None:
    text = PREFIX + "[] :p [ :q _:x ] . _:x :r ( 1 2 ) ."
    (tmp_path / "a.ttl").write_text(text)
    files = discover([tmp_path / "a.ttl"])
    numbers = pa.record_batch({"file": pa.array([0], pa.int32())})
    once, again = (rows(Parser(files).documents(iter([numbers]))) for _ in range(2))
    assert once == again
    names = {term for triple in terms(once) for term in triple if term.startswith("_:")}
    assert len(names) == 5
    assert all(name.startswith(f"_:{files[0].scope}b") for name in names)


def test_blank_nodes_of_two_documents_differ(tmp_path: Path) -> None:
    one = terms(document(tmp_path, "_:x <a:p> _:x .", "a.ttl"))
    other = terms(document(tmp_path, "_:x <a:p> _:x .", "b.ttl"))
    assert one[0][0] == one[0][2] != other[0][0]


def test_graphs_are_told_and_blank_ones_in_the_scope_of_the_file(tmp_path: Path) -> None:
    found = document(tmp_path, "<a:g> { <a:s> <a:p> <a:o> } _:g { _:g <a:p> <a:o> }", "a.trig")
    assert [row["g"] for row in found] == ["<a:g>", found[1]["s"]]


def test_an_error_has_its_place_and_the_parser_goes_on(tmp_path: Path) -> None:
    found = document(tmp_path, PREFIX + ":a :b :c .\n:a :b ] .\n:d :e :f .", "a.ttl")
    (bad,) = errors(found)
    assert (bad["line"], bad["column"]) == (3, 7)
    assert bad["message"] == "] is not a valid RDF object"
    assert [s for s, _, _ in terms(found)] == ["<http://example.org/a>", "<http://example.org/d>"]


def test_errors_without_a_place_are_told_one_by_one(tmp_path: Path) -> None:
    text = '<a:s> <a:p> <a:o> .\n"x" <a:p> "y" .\n"z" <a:p> "y" .\n<a:s> <a:p> <a:o2> .'
    found = document(tmp_path, text, "a.n3")
    assert [bad["message"] for bad in errors(found)] == [
        "literals are not allowed in regular RDF subjects"
    ] * 2
    assert [o for _, _, o in terms(found)] == ["<a:o>", "<a:o2>"]


def test_a_message_keeps_what_it_says_behind_a_colon(tmp_path: Path) -> None:
    text = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description rdf:about="a:b"><x:y/></rdf:Description></rdf:RDF>'
    )
    (bad,) = errors(document(tmp_path, text, "a.rdf"))
    assert bad["message"] == "Unknown prefix x:"


@pytest.mark.parametrize("text", ["", "<a", "<rdf:RDF>", "text", '<a b="c"><d></a>'])
def test_xml_that_is_not_well_formed_is_refused(text: str, tmp_path: Path) -> None:
    assert errors(document(tmp_path, text, "a.rdf"))


def test_xml_that_is_cut_short_is_refused_with_the_place(tmp_path: Path) -> None:
    text = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:">\n'
        '<rdf:Description rdf:about="a:s"><a:p rdf:resource="a:o"/></rdf:Description>\n'
    )
    found = document(tmp_path, text, "a.rdf")
    (bad,) = errors(found)
    assert bad["message"] == "not well-formed XML: no element found"
    assert (bad["line"], bad["column"]) == (3, 1)
    assert errors(document(tmp_path, text + "</rdf:RDF>\n", "a.rdf")) == []


def test_nothing_is_read_behind_a_wrong_end_tag(tmp_path: Path) -> None:
    text = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:">\n'
        '<rdf:Description rdf:about="a:r"><a:p rdf:resource="a:o"/></rdf:Description>\n'
        '<rdf:Description rdf:about="a:s"></a:p></rdf:Description>\n'
        '<rdf:Description rdf:about="a:t"><a:p rdf:resource="a:o"/></rdf:Description></rdf:RDF>'
    )
    found = document(tmp_path, text, "a.rdf")
    assert [s for s, _, _ in terms(found)] == ["<a:r>"]
    (bad,) = errors(found)
    assert bad["message"] == "not well-formed XML: mismatched tag"
    assert bad["line"] == 3


def test_a_remote_context_is_refused_with_the_remedy(tmp_path: Path) -> None:
    text = '{"@context": "http://example.org/c.jsonld", "@id": "a:s", "p": "o"}'
    (bad,) = errors(document(tmp_path, text, "a.jsonld"))
    assert "write the context itself into the document" in bad["message"]


@pytest.mark.parametrize(
    "statement",
    [
        "<< :a :b :c >> :d :e .",
        ":a :b <<( :c :d :e )>> .",
        ":a :b :c {| :d :e |} .",
    ],
)
def test_triples_inside_triples_are_refused(statement: str, tmp_path: Path) -> None:
    found = document(tmp_path, f"{PREFIX}{statement}\n:x :y :z .", "a.ttl")
    (bad,) = errors(found)
    assert bad["message"].startswith("a triple inside a triple (RDF 1.2) is not supported")
    assert bad["text"]
    assert ("<http://example.org/x>", "<http://example.org/y>", "<http://example.org/z>") in terms(
        found
    )


def test_formulas_of_n3_are_refused_with_all_that_speaks_of_them(tmp_path: Path) -> None:
    text = PREFIX + ":a :says { :b :c :d . :b :c :e } .\n{ :x :y :z } :is :true .\n:f :g :h ."
    found = document(tmp_path, text, "a.n3")
    assert [bad["message"] for bad in errors(found)] == [
        "a formula { ... } of N3 is not RDF; leave it out"
    ] * 2
    assert [s for s, _, _ in terms(found)] == ["<http://example.org/f>"]


@pytest.mark.parametrize("rule", ["{ ?x :p :o } => { ?x :q :o } .", "?x :p :o .", ":a => :b ."])
def test_rules_and_variables_of_n3_are_refused(rule: str, tmp_path: Path) -> None:
    found = document(tmp_path, f"{PREFIX}{rule}\n:f :g :h .", "a.n3")
    assert errors(found)
    assert [s for s, _, _ in terms(found)] == ["<http://example.org/f>"]


def test_a_file_cut_short_is_an_error_of_that_file(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"<a:{n}> <a:p> <a:o> .\n" for n in range(5000)).encode())
    with pytest.raises(InputError, match=r"a\.ttl\.gz: cannot be read"):
        document(tmp_path, packed[: len(packed) // 2], "a.ttl.gz")


# --- stored blank nodes -------------------------------------------------------------------------

STORED = "_:f0123456789abcdef_x"


def removal(folder: Path, text: str, name: str) -> tuple[list[tuple[str, str, str]], str]:
    """Return the triples of a document whose labels may be those of the store, and its scope."""
    (folder / name).write_text(text)
    (file,) = discover([folder / name])
    number = pa.record_batch({"file": pa.array([0], pa.int32())})
    parser = Parser((replace(file, stored_labels=True),))
    return terms(rows(parser.documents(iter([number])))), file.scope


@pytest.mark.parametrize(
    ("name", "labels"), [("a.ttl", ("b0", "b2")), ("a{1}.nt", ("y", "z")), ("a.n3", ("b0", "b2"))]
)
def test_only_labels_with_a_scope_are_those_of_the_store(
    name: str, labels: tuple[str, str], tmp_path: Path
) -> None:
    text = f"_:y <a:p> {STORED} .\n_:z <a:p> _:y .\n"
    found, scope = removal(tmp_path, text, name)
    y, z = (f"_:{scope}{label}" for label in labels)
    assert found == [(y, "<a:p>", STORED), (z, "<a:p>", y)]


def test_labels_of_what_is_added_are_never_those_of_the_store(tmp_path: Path) -> None:
    ((s, _, _),) = terms(document(tmp_path, f"{STORED} <a:p> 1 .", "a.ttl"))
    assert s != STORED


# --- lines --------------------------------------------------------------------------------------


def test_lines_keep_the_labels_of_blank_nodes_in_the_scope_of_their_file(tmp_path: Path) -> None:
    found = lines(tmp_path, b"_:x <a:p> _:y .", b"_:x <a:p> _:x .")
    (file,) = discover([tmp_path / "a.txt"], format="nt")
    assert [(s, o) for s, _, o in terms(found)] == [
        (f"_:{file.scope}x", f"_:{file.scope}y"),
        (f"_:{file.scope}x", f"_:{file.scope}x"),
    ]


def test_lines_may_be_empty_or_comments(tmp_path: Path) -> None:
    assert terms(lines(tmp_path, b"", b"  ", b"# x", TRIPLE.encode() + b" # y")) == [
        ("<a:s>", "<a:p>", "<a:o>")
    ]


@pytest.mark.parametrize(
    "bad",
    [
        b"<a:s> <a:p> <a:o>",
        b"<a:s> <a:p> <a:o> . x",
        b"<a:s> <a:p> <a:o> . <a:s> <a:p> <a:o2> .",
        b"<a:s> <a:p> <a:o> <a:g> .",
        b'<a:s> <a:p> "x',
        b'<a:s> <a:p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
        b"<s> <a:p> <a:o> .",
        b"<a:s> _:p <a:o> .",
        b'"s" <a:p> <a:o> .',
        b"<a:s> <a:p> \xff .",
        b'<a:s> <a:p> "\xff" .',
        b"<a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> .",
        b"nothing of the kind",
    ],
)
def test_a_bad_line_is_one_error_and_no_statement(bad: bytes, tmp_path: Path) -> None:
    found = lines(tmp_path, TRIPLE.encode(), bad, b"<a:s> <a:p> <a:o3> .")
    assert [o for _, _, o in terms(found)] == ["<a:o>", "<a:o3>"]
    (error,) = errors(found)
    assert error["text"] == bad.decode(errors="replace")
    assert error["line"] is None
    assert [error[name] for name in ("s", "p", "o", "g")] == [None] * 4


def test_two_bad_lines_are_never_taken_for_one_good_statement(tmp_path: Path) -> None:
    found = lines(tmp_path, b"<a:s> <a:p>", b"<a:o> .", b'<a:s> <a:p> "x', b'y" .')
    assert terms(found) == []
    assert len(errors(found)) == 4


def test_a_bad_line_is_shown_up_to_a_length(tmp_path: Path) -> None:
    (bad,) = errors(lines(tmp_path, b"x" * 10_000))
    assert bad["text"] == "x" * SHOWN_TEXT


def test_quads_tell_their_graph(tmp_path: Path) -> None:
    found = lines(tmp_path, b"<a:s> <a:p> <a:o> <a:g> .", b"<a:s> <a:p> <a:o> .", format="nq")
    assert [row["g"] for row in found] == ["<a:g>", None]


def test_lines_of_a_whole_file_are_judged_like_lines_of_an_engine(tmp_path: Path) -> None:
    text = f"{TRIPLE}\r\n\n<a:s> <a:p>\n_:x <a:p> <a:o>\n# c\n<a:s> <a:p> <a:o2> .\r_:x <a:p> _:y ."
    (tmp_path / "a{1}.nt").write_bytes(text.encode())
    (file,) = discover([tmp_path / "a{1}.nt"])
    found = document(tmp_path, text, "a{1}.nt")
    scope = discover([tmp_path / "a{1}.nt"])[0].scope
    assert not file.split_by_engine
    assert [o for _, _, o in terms(found)] == ["<a:o>", "<a:o2>", f"_:{scope}y"]
    assert [(bad["line"], bad["text"]) for bad in errors(found)] == [
        (3, "<a:s> <a:p>"),
        (4, "_:x <a:p> <a:o>"),
    ]


def test_a_bad_byte_does_not_hide_the_lines_behind_it(tmp_path: Path) -> None:
    data = b'<a:s> <a:p> "\xff" .\n<a:s> <a:p> "\xc3\xa9" .\n'
    found = document(tmp_path, data, "a{1}.nt")
    assert [o for _, _, o in terms(found)] == ['"é"']
    assert [bad["line"] for bad in errors(found)] == [1]


def test_rows_of_several_files_name_their_file(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.ttl").write_text(f"<a:{name}> <a:p> <a:o> .")
    files = discover([tmp_path])
    numbers = pa.record_batch({"file": pa.array([2, 0], pa.int32())})
    found = rows(Parser(files).documents(iter([numbers])))
    assert [(row["file"], row["s"]) for row in found] == [(2, "<a:c>"), (0, "<a:a>")]
