"""INSERT DATA and DELETE DATA: operations, their order and scope, and everything else refused."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.input import discover
from inferlake.input.rows import Row
from inferlake.input.sparql import read_update

PREFIX = "PREFIX : <a:>\n"


def read(folder: Path, text: str | bytes, *, stored: bool = False) -> list[Row]:
    data = text.encode() if isinstance(text, str) else text
    (folder / "a.ru").write_bytes(data)
    (file,) = discover([folder / "a.ru"], changes=True)
    return list(read_update(0, replace(file, stored_labels=stored)))


def changes(rows: list[Row]) -> list[tuple[int, str, str, str]]:
    assert [row.message for row in rows] == [None] * len(rows)
    places = [row.place or 0 for row in rows]
    assert places == sorted(set(places))
    assert min(places, default=2) >= 2
    return [(row.sign or 0, row.s or "", row.p or "", row.o or "") for row in rows]


def refused(rows: list[Row]) -> Row:
    (bad,) = rows
    assert bad.message is not None
    return bad


@pytest.mark.parametrize("text", ["", "# nothing", "PREFIX : <a:>", "INSERT DATA { } ;", "\ufeff"])
def test_an_update_without_triples_changes_nothing(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text) == []


def test_operations_count_in_their_order(tmp_path: Path) -> None:
    text = (
        "prefix : <a:> # {\ninsert data { :s :p :o }; DELETE DATA { :s :p :o . };\n"
        "PREFIX : <b:> BASE <http://e/f> INSERT DATA { :s :p <g>, 'x' }"
    )
    assert changes(read(tmp_path, text)) == [
        (1, "<a:s>", "<a:p>", "<a:o>"),
        (-1, "<a:s>", "<a:p>", "<a:o>"),
        (1, "<b:s>", "<b:p>", "<http://e/g>"),
        (1, "<b:s>", "<b:p>", '"x"'),
    ]


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ('"}"', '"}"'),
        ("'{'", '"{"'),
        ('"a\\"}"', '"a\\"}"'),
        ('"""a"} ""b\n}"""', '"a\\"} \\"\\"b\\n}"'),
        ("'''a'}\n'''", '"a\'}\\n"'),
        ("'', ''", '""'),
        ('"#"', '"#"'),
        ("<a:#{>", None),
        ("<a:x#y> # }", "<a:x#y>"),
        ('"x"@EN', '"x"@en'),
        ("1.0", '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        (":graph", "<a:graph>"),
        ("graph:x", "<g:x>"),
        (":x.GRAPH", "<a:x.GRAPH>"),
        (":a\\,b\\'c", "<a:a,b'c>"),
    ],
)
def test_braces_are_told_from_what_looks_like_them(
    written: str, canonical: str | None, tmp_path: Path
) -> None:
    text = f"PREFIX : <a:> PREFIX graph: <g:> INSERT DATA {{ :s :p {written}\n}}"
    found = read(tmp_path, text)
    if canonical is None:
        assert refused(found)
    else:
        assert {o for _, _, _, o in changes(found)} == {canonical}


@pytest.mark.parametrize(
    "inside",
    [
        ":s :p 1 . GRAPH :g { :s :p 2 } :s :p 3",
        ":s :p 1 GRAPH :g { :s :p 2 . } . :s :p 3 .",
        ":s :p 1 . GRAPH<a:g>{ :s :p 2 } # }\n . # {\n :s :p 3",
        'GRAPH :g { :s :p 2 } GRAPH :h { } :s :p 3, 1, "GRAPH :g {" .',
        ":s :p 1 . graph # g\n :g { :s :p 2 } :s :p 3 .",
    ],
)
def test_graphs_are_told(inside: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"{PREFIX}INSERT DATA {{ {inside} }}")
    graphs = {str(row.o)[1]: row.g for row in found if "integer" in str(row.o)}
    assert graphs == {"1": None, "2": "<a:g>", "3": None} or graphs == {"2": "<a:g>", "3": None}
    assert len(changes(found)) >= 3


def test_relative_names_are_resolved_against_the_file(tmp_path: Path) -> None:
    ((_, s, _, _),) = changes(read(tmp_path, "INSERT DATA { <x> <a:p> <a:o> }"))
    assert s == f"<{(tmp_path / 'x').as_uri()}>"


# --- blank nodes --------------------------------------------------------------------------------


def test_blank_nodes_belong_to_their_file(tmp_path: Path) -> None:
    text = f"{PREFIX}INSERT DATA {{ _:x :p [ :q _:y ] }} ; INSERT DATA {{ _:x :p () }}"
    once = changes(read(tmp_path, text))
    (file,) = discover([tmp_path / "a.ru"], changes=True)
    assert changes(list(read_update(0, file))) == once
    nodes = {term for change in once for term in change[1:] if term.startswith("_:")}
    assert nodes == {f"_:{file.scope}b{n}" for n in range(3)}
    assert once[1][1] == once[2][1]


def test_a_label_with_a_scope_is_that_of_the_store(tmp_path: Path) -> None:
    label = "_:f0123456789abcdef_x"
    found = changes(read(tmp_path, f"INSERT DATA {{ {label} <a:p> _:y }}", stored=True))
    assert found[0][1] == label
    assert found[0][3] != "_:y"


@pytest.mark.parametrize("node", ["_:x", "[]", "( 1 )", "[ :q 1 ]", "_:f0123456789abcdef_x"])
def test_blank_nodes_cannot_be_deleted(node: str, tmp_path: Path) -> None:
    text = f"{PREFIX}DELETE DATA {{ :s :p :o }} ;\n  DELETE DATA {{ :s :p {node} }}"
    good, bad = read(tmp_path, text)
    assert len(changes([good])) == 1
    assert (bad.line, bad.column) == (3, 3)
    assert "DELETE DATA cannot name a blank node; delete it with an RDF Patch" in str(bad.message)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("LOAD <http://e/>", 1, 1),
        ("CLEAR ALL", 1, 1),
        ("DELETE WHERE { ?x ?y ?z }", 1, 8),
        ("DELETE { <a:s> ?y ?z } WHERE { <a:s> ?y ?z }", 1, 8),
        ("PREFIX : <a:>\nINSERT DATA { :s :p :o } ;\n  WITH :g DELETE { }", 3, 3),
        ("INSERT { <a:s> <a:p> <a:o> } WHERE { }", 1, 8),
        ("INSERT DATA { } INSERT DATA { }", 1, 17),
        ("INSERT DATA { } }", 1, 17),
        ("INSERT DATA { { <a:s> <a:p> <a:o> } }", 1, 15),
        ("INSERT DATA { <a:g> { <a:s> <a:p> <a:o> } }", 1, 21),
        ("INSERT DATA { GRAPH ?g { <a:s> <a:p> <a:o> } }", 1, 21),
        ('INSERT DATA { <a:s> <a:p> "x }', 1, 27),
        ("INSERT DATA { <a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> }", 1, 27),
        ("INSERT DATA {\n<a:s> <a:p> <a:o>\n", 2, 18),
        ("INSERT", 1, 7),
        ("SELECT * { ?s ?p ?o }", 1, 1),
        ("<a:s> <a:p> <a:o> .", 1, 1),
    ],
)
def test_anything_else_is_refused_with_its_place(
    text: str, line: int, column: int, tmp_path: Path
) -> None:
    bad = refused(read(tmp_path, text))
    assert (bad.line, bad.column) == (line, column)
    assert "only INSERT DATA { ... } and DELETE DATA { ... } are read" in str(bad.message)


@pytest.mark.parametrize(
    ("inside", "line", "column"),
    [
        (":s :p ?x", 2, 21),
        (":s :p :o .\n:s :é no:o", 3, 7),
        (":s :p", 2, 21),
        (":s :p :o .\n  :s :p\n ", 4, 3),
        ('"s" :p :o', 2, 15),
        ("GRAPH no:g { :s :p :o }", 2, 21),
        (":s :p :o . GRAPH :g {\n :s :p }", 3, 8),
        (":s :p 1 ; :q <%%>", 2, 28),
    ],
)
def test_a_bad_operation_has_its_place_and_none_of_it_counts(
    inside: str, line: int, column: int, tmp_path: Path
) -> None:
    text = f"{PREFIX}INSERT DATA {{ {inside} }} ;\nINSERT DATA {{ :t :p :o }}"
    *good, bad = sorted(read(tmp_path, text), key=lambda row: row.message is not None)
    assert [s for _, s, _, _ in changes(good)] == ["<a:t>"]
    assert (bad.line, bad.column) == (line, column)


def test_a_bad_prefix_has_its_place(tmp_path: Path) -> None:
    bad = refused(read(tmp_path, "PREFIX a: <a:>\nPREFIX b:\n  <%%> INSERT DATA { }"))
    assert (bad.line, bad.column) == (3, 3)


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    bad = refused(read(tmp_path, b'INSERT DATA { <a:s> <a:p> "\xff" }'))
    assert str(bad.message).startswith("cannot be read: ")


def test_a_long_block_is_read_in_seconds(tmp_path: Path) -> None:
    body = "".join(f'<http://example.org/{n}> <a:p> "value {n}" .\n' for n in range(50_000))
    start = time.monotonic()
    assert len(read(tmp_path, f"INSERT DATA {{\n{body}}}")) == 50_000
    assert time.monotonic() - start < 10


PIECES = st.sampled_from(
    [
        *(
            "PREFIX : <a:> ",
            "BASE <b:> ",
            "INSERT ",
            "DELETE ",
            "DATA ",
            "{ ",
            "} ",
            "; ",
            "GRAPH ",
        ),
        *(
            ":s ",
            ":p ",
            "<a:o> ",
            "_:x ",
            '"x" ',
            '"""',
            "'",
            '"',
            ". ",
            ", ",
            "[ ",
            "] ",
            "( ",
            ") ",
        ),
        *(
            "# c\n",
            "\n",
            "?x ",
            "<",
            ">",
            "\\",
            "INSERT DATA { ",
            ":s :p :o . ",
            "é",
            "\x00",
            "@en ",
        ),
    ]
)


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(pieces=st.lists(PIECES, max_size=30))
def test_every_update_is_read_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = "".join(pieces)
    for row in read(folder, text):
        assert (row.message is None) == all((row.s, row.p, row.o, row.sign, row.place))
        if row.message is not None:
            assert 1 <= (row.line or 0) <= text.count("\n") + 1
            assert (row.column or 0) >= 1
