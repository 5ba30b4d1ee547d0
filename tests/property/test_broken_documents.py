"""Whatever is done to a document, the parser comes to an end, and raises nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.input import discover
from inferlake.input.parse import PARSED_SCHEMA, Parser

DOCUMENTS = {
    "nt": '<a:s> <a:p> "x\\n"@en . # c\n_:x <a:p> _:y .\n',
    "nq": '<a:s> <a:p> "x"^^<a:t> <a:g> .\n_:x <a:p> _:y _:g .\n',
    "ttl": '@prefix : <http://e/> .\n:a :b 1, "x"@en ; :c [ :d ( :e :f ) ] .\n:g a """h\ni""" .\n',
    "trig": "@prefix : <http://e/> .\n:g { :a :b _:c } GRAPH _:h { :d :e 1.5 } :x :y :z .\n",
    "n3": "@prefix : <http://e/> .\n{ ?x :a :b } => { ?x :c :d } .\n:e = :f . :g :h { :i :j :k } .",
    "jsonld": '{"@context": {"p": "a:p"}, "@id": "a:s", "p": [1, {"@value": "x"}, {"@id": "_:b"}]}',
    "rdf": '<?xml version="1.0"?>\n<rdf:RDF xmlns:a="a:" '
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<rdf:Description rdf:about="a:s">'
    '<a:p rdf:resource="a:o"/><a:q xml:lang="en">x &amp; y</a:q></rdf:Description></rdf:RDF>\n',
}
NASTY = st.sampled_from([bytes([c]) for c in b"<>\"'.,;{}[]()@^\\_:#&%\n\r\t \x00\xc3\xff"])


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a document with a few bytes taken out, put in or changed, or with its end cut off."""
    format = draw(st.sampled_from(sorted(DOCUMENTS)))
    data = DOCUMENTS[format].encode()
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        gone = draw(st.integers(0, 6))
        data = data[:at] + draw(st.one_of(st.just(b""), NASTY)) + data[at + gone :]
    return format, data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


@settings(max_examples=400)
@given(broken())
def test_a_parser_ends_and_every_row_is_a_triple_or_an_error(
    folder: Path, document: tuple[str, bytes]
) -> None:
    format, data = document
    # Braces in the name keep lines of this file away from the engines.
    file = folder / f"{{a}}.{format}"
    file.write_bytes(data)
    files = discover([file])
    batch = pa.record_batch({"file": pa.array([0], pa.int32())})
    rows = []
    for found in Parser(files).documents(iter([batch])):
        assert found.schema == PARSED_SCHEMA
        rows += found.to_pylist()
        assert len(rows) <= 5 * len(data) + 10
    for row in rows:
        terms = [row["s"], row["p"], row["o"]]
        assert all(terms) != bool(row["message"]), row
        if row["message"] is None:
            text = f"{row['s']} {row['p']} {row['o']} ."
            (triple,) = ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
            assert [str(triple.subject), str(triple.predicate), str(triple.object)] == terms
