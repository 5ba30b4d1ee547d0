"""RDF Patch: lines, transactions, prefixes, and what is said of lines that are none of them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch as patched

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.errors import InputError
from inferlake.input import discover
from inferlake.input.patch import read_patch
from inferlake.input.rows import Row
from inferlake.terms.shape import SHARED_SCOPE

STORED = "_:f0123456789abcdef_x"
TRIPLE = "<a:s> <a:p> <a:o>"

Change = tuple[int, str, str, str]


def read(folder: Path, text: str | bytes, *, stored: bool = False, number: int = 0) -> list[Row]:
    data = text.encode() if isinstance(text, str) else text
    (folder / "a.rdfp").write_bytes(data)
    (file,) = discover([folder / "a.rdfp"], changes=True)
    return list(read_patch(number, replace(file, stored_labels=stored)))


def changes(rows: Iterable[Row]) -> list[Change]:
    found = [row for row in rows if row.message is None]
    places = [row.place or 0 for row in found]
    assert places == sorted(set(places))
    assert min(places, default=2) >= 2
    return [(row.sign or 0, row.s or "", row.p or "", row.o or "") for row in found]


def errors(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.message is not None]


# --- lines --------------------------------------------------------------------------------------


def test_lines_add_and_delete_in_their_order(tmp_path: Path) -> None:
    found = read(tmp_path, f"A {TRIPLE} .\nD {TRIPLE} .\nA {TRIPLE} .\n")
    assert changes(found) == [(sign, "<a:s>", "<a:p>", "<a:o>") for sign in (1, -1, 1)]


def test_places_of_a_later_file_are_greater(tmp_path: Path) -> None:
    text = f"A {TRIPLE} .\n" * 3
    first, second = (read(tmp_path, text, number=number) for number in (0, 1))
    assert max(row.place or 0 for row in first) < min(row.place or 0 for row in second)
    assert [row.file for row in second] == [1] * 3


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "# a comment", "H id <uuid:1> .\nH prev <uuid:0>\n", "TX .\nTC .", " \t\r\n# c"],
)
def test_what_is_no_change_changes_nothing(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text) == []


@pytest.mark.parametrize("end", ["", ".", " .", "\t. ", " . # c", " # c . ", ".#c", "\r"])
def test_the_dot_is_optional_and_a_comment_may_follow(end: str, tmp_path: Path) -> None:
    assert len(changes(read(tmp_path, f"A {TRIPLE}{end}\n  D\t{TRIPLE}{end}"))) == 2


def test_a_byte_order_mark_and_compression_are_no_matter(tmp_path: Path) -> None:
    assert len(changes(read(tmp_path, b"\xef\xbb\xbf" + f"A {TRIPLE} .".encode()))) == 1
    (tmp_path / "a.rdfp.gz").write_bytes(gzip.compress(f"A {TRIPLE} .".encode()))
    (file,) = discover([tmp_path / "a.rdfp.gz"], changes=True)
    assert len(changes(read_patch(0, file))) == 1


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ('"x y . # z"', '"x y . # z"'),
        ('"A <a:b> \\" ."@EN', '"A <a:b> \\" ."@en'),
        ("'x'", '"x"'),
        ('"\\u00e9"', '"é"'),
        ('"1"^^<a:t>', '"1"^^<a:t>'),
        ('"1"^^ex:t.', '"1"^^<http://e/t>'),
        ("1.5", '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        ("true", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        ("ex:o.", "<http://e/o>"),
        ("ex:a.b:c", "<http://e/a.b:c>"),
        ("ex:a\\,b", "<http://e/a,b>"),
        ("ex:", "<http://e/>"),
        (":é", "<http://d/é>"),
        ("<a:#x>", "<a:#x>"),
        ('"<_:x>"', '"<_:x>"'),
    ],
)
def test_terms_are_canonical(written: str, canonical: str, tmp_path: Path) -> None:
    text = f'PA ex <http://e/> .\nPA "" <http://d/> .\nA <a:s> a {written}'
    ((_, _, p, o),) = changes(read(tmp_path, text))
    assert (p, o) == ("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", canonical)


def test_graphs_are_told(tmp_path: Path) -> None:
    text = f'PA ex <http://e/>\nA {TRIPLE} <a:g> .\nD <a:s> <a:p> "x" ex:g\nA {TRIPLE} _:g .'
    found = read(tmp_path, text)
    assert [row.g for row in found] == ["<a:g>", "<http://e/g>", f"_:{SHARED_SCOPE}g"]
    assert changes(found)[1] == (-1, "<a:s>", "<a:p>", '"x"')


# --- blank nodes --------------------------------------------------------------------------------


def test_bare_labels_mean_the_same_node_in_every_patch(tmp_path: Path) -> None:
    ((_, s, _, o),) = changes(read(tmp_path, "A _:x <a:p> <_:y> ."))
    assert (s, o) == (f"_:{SHARED_SCOPE}x", f"_:{SHARED_SCOPE}y")


def test_a_label_with_a_scope_is_that_of_the_store(tmp_path: Path) -> None:
    text = f"D {STORED} <a:p> <{STORED}> .\nD _:f0123_x <a:p> _:f0123456789abcdeg_x ."
    one, other = changes(read(tmp_path, text, stored=True))
    assert (one[1], one[3]) == (STORED, STORED)
    assert (other[1], other[3]) == (
        f"_:{SHARED_SCOPE}f0123_x",
        f"_:{SHARED_SCOPE}f0123456789abcdeg_x",
    )


# --- prefixes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "declared", ["PA ex <http://e/> .", 'PA "ex" "http://e/"', "PA ex: <http://e/> . # c"]
)
def test_prefixes_are_written_in_several_ways(declared: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"TX .\n{declared}\nA ex:s ex:p ex:o .\nTC .")
    assert changes(found) == [(1, "<http://e/s>", "<http://e/p>", "<http://e/o>")]


def test_a_prefix_counts_until_it_changes(tmp_path: Path) -> None:
    text = "PA e <a:> .\nA e:s e:p e:o .\nPA e <b:> .\nA e:s e:p e:o .\nPD e .\nA e:s e:p e:o ."
    found = read(tmp_path, text)
    assert [s for _, s, _, _ in changes(found)] == ["<a:s>", "<b:s>"]
    (bad,) = errors(found)
    assert (bad.line, bad.column, bad.text) == (6, 3, "A e:s e:p e:o .")
    assert bad.message == "The prefix e: has not been declared"


@pytest.mark.parametrize("iri", ["<relative>", "<>", '"http://[/"', "<a b>", "e:x"])
def test_a_prefix_that_is_no_iri_is_a_bad_statement(iri: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"PA e {iri} .\nA <a:s> <a:p> <a:o> .")
    assert [bad.line for bad in errors(found)] == [1]
    assert len(changes(found)) == 1


# --- transactions -------------------------------------------------------------------------------


def test_a_transaction_that_is_cancelled_does_not_count(tmp_path: Path) -> None:
    text = (
        "A <a:1> <a:p> <a:o> .\nTX .\nA <a:2> <a:p> <a:o> .\nTC .\n"
        "TX .\nPA e <b:> .\nA <a:3> <a:p> <a:o> .\nno line\nTA .\n"
        "D <a:4> <a:p> <a:o> .\nA e:x e:y e:z ."
    )
    found = read(tmp_path, text)
    assert [(sign, s) for sign, s, _, _ in changes(found)] == [
        (1, "<a:1>"),
        (1, "<a:2>"),
        (-1, "<a:4>"),
    ]
    assert [bad.line for bad in errors(found)] == [11]


def test_a_transaction_that_is_not_closed_is_one_bad_statement(tmp_path: Path) -> None:
    found = read(tmp_path, f"TX .\nA <a:1> <a:p> <a:o> .\nTC .\nTX .\nA {TRIPLE} .\nnonsense")
    assert [s for _, s, _, _ in changes(found)] == ["<a:1>"]
    (bad,) = errors(found)
    assert bad.line == 4
    assert bad.message == (
        "the transaction at line 4 is not closed; end it with TC, or cancel it with TA"
    )


@pytest.mark.parametrize("end", ["TC", "TA ."])
def test_the_end_of_no_transaction_is_a_bad_statement(end: str, tmp_path: Path) -> None:
    found = read(tmp_path, f"A {TRIPLE} .\n{end}\nA {TRIPLE} .")
    assert len(changes(found)) == 2
    assert [(bad.line, str(bad.message)[:23]) for bad in errors(found)] == [
        (2, f"{end[:2]} ends no transaction;")
    ]


def test_a_transaction_in_another_is_a_bad_statement(tmp_path: Path) -> None:
    found = read(tmp_path, f"TX .\nA {TRIPLE} .\nTX .\nA {TRIPLE} .\nTC .")
    assert len(changes(found)) == 2
    (bad,) = errors(found)
    assert bad.line == 3
    assert str(bad.message).startswith("the transaction at line 1 is not closed; end it with TC")


# --- bad lines ----------------------------------------------------------------------------------

BAD = [
    "A",
    "A <a:s> <a:p> .",
    "A <a:s> <a:p> <a:o> <a:g> <a:h> .",
    "A <a:s> <a:p> <a:o> . A <a:s> <a:p> <a:o> .",
    "A <a:s> <a:p> <a:o> , <a:o2> .",
    "A <a:s> <a:p> <a:o> ; <a:q> <a:r> .",
    "A <a:s> <a:p> [] .",
    "A <a:s> <a:p> ( ) .",
    "A <a:s> <a:p> [ <a:q> <a:r> ] .",
    'A "s" <a:p> <a:o> .',
    "A <a:s> _:p <a:o> .",
    'A <a:s> "p" <a:o> .',
    'A <a:s> <a:p> <a:o> "g" .',
    "A <a:s> <a:p> <a:o> 1 .",
    "A <s> <a:p> <a:o> .",
    "A <a:s> <a:p> <a:o o> .",
    'A <a:s> <a:p> "x .',
    'A <a:s> <a:p> """x""" .',
    'A <a:s> <a:p> "" "" .',
    'A <a:s> <a:p> "\\x" .',
    "A <a:s> <a:p> word .",
    "A @prefix e: <a:b> .",
    "A PREFIX e: <a:b> .",
    "A BASE <a:b> <a:c> .",
    "A <a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> .",
    "<a:s> <a:p> <a:o> .",
    "a <a:s> <a:p> <a:o> .",
    "A<a:s> <a:p> <a:o> .",
    "Q <a:s> <a:p> <a:o> .",
    "PA e",
    "PD",
    "TB .",
    "TX TC",
    "nothing of the kind",
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_is_one_error_and_no_change(bad: str, tmp_path: Path) -> None:
    text = f"PA e <a:> .\nA <a:1> <a:p> <a:o> .\n{bad}\nD <a:2> <a:p> <a:o> ."
    found = read(tmp_path, text)
    assert [(sign, s) for sign, s, _, _ in changes(found)] == [(1, "<a:1>"), (-1, "<a:2>")]
    (row,) = errors(found)
    assert (row.line, row.text) == (3, bad)


def test_a_bad_byte_does_not_hide_the_lines_behind_it(tmp_path: Path) -> None:
    found = read(tmp_path, b'A <a:s> <a:p> "\xff" .\nA <a:s> <a:p> "\xc3\xa9" .\n')
    assert [o for _, _, _, o in changes(found)] == ['"é"']
    assert [bad.line for bad in errors(found)] == [1]


def test_the_column_is_that_of_the_line(tmp_path: Path) -> None:
    text = "  A <_:x>  <a:p> \t<a:o> no:g ."
    (bad,) = errors(read(tmp_path, text))
    assert bad.column == text.index("no:g") + 1


def test_a_file_cut_short_changes_nothing(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"A <a:{n}> <a:p> <a:o> .\n" for n in range(5000)).encode())
    (tmp_path / "a.rdfp.gz").write_bytes(packed[: len(packed) // 2])
    (file,) = discover([tmp_path / "a.rdfp.gz"], changes=True)
    with pytest.raises(InputError, match=r"a\.rdfp\.gz: cannot be read"):
        list(read_patch(0, file))


# --- whatever is written ------------------------------------------------------------------------

numbers = st.integers(0, 3)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[str, set[tuple[str, str, str]]]:
    """Draw a patch, and what it leaves of nothing by the plain meaning of its lines."""
    kept: set[tuple[str, str, str]] = set()
    lines: list[str] = []

    def some() -> None:
        nonlocal kept
        for verb, s, o in draw(st.lists(st.tuples(st.sampled_from("AD"), numbers, numbers))):
            lines.append(
                f"{verb} <a:{s}> <a:p> {o}" + draw(st.sampled_from(["", " .", " <a:g> ."]))
            )
            triple = (f"<a:{s}>", "<a:p>", f'"{o}"^^<http://www.w3.org/2001/XMLSchema#integer>')
            kept = kept | {triple} if verb == "A" else kept - {triple}

    for _ in range(draw(st.integers(1, 4))):
        before = kept
        end = draw(st.sampled_from(["TC", "TA", None]))
        lines.extend(["TX ."] if end else [])
        some()
        lines.extend([f"{end} ."] if end else [])
        kept = before if end == "TA" else kept
    return "\n".join(lines), kept


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("patches")


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(sequences(), st.integers(1, 4))
def test_a_patch_means_what_its_lines_do_one_by_one(
    folder: Path, drawn: tuple[str, set[tuple[str, str, str]]], together: int
) -> None:
    text, expected = drawn
    with patched("inferlake.input.patch._TOGETHER", together):
        found = changes(read(folder, text))
    kept: set[tuple[str, str, str]] = set()
    for sign, *triple in found:
        kept = kept | {(triple[0], triple[1], triple[2])} if sign == 1 else kept - {tuple(triple)}
    assert kept == expected


PIECES = st.sampled_from(
    [
        *("A ", "D ", "TX .\n", "TC .\n", "TA\n", "PA e <a:> .\n", "PD e .\n", "H x .\n", "\n"),
        *("<a:s> ", "e:p ", "_:x ", "<_:y> ", '"x"', '"x"@en ', "'", '"', '"""', "^^e:t ", "1 "),
        *(".", " .\n", " . ", ",", ";", "[", "]", "#", "@prefix ", "<", ">", "\\", "a ", "\r", "~"),
        *("PREFIX ", "VERSION ", "GRAPH ", "{", "}", "(", ")", "é", "\x00", "\t", ":", "<<( "),
    ]
)


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_line_is_at_most_one_change_or_one_error(folder: Path, text: str) -> None:
    rows = read(folder, text)
    changes(rows)
    assert len(rows) <= text.count("\n") + 2
