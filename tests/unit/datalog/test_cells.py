"""Cells and terms: each is the inverse of the other, and terms are what a parser would write."""

from __future__ import annotations

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferlake.datalog.cells import cell_of_term_sql, field_sql, term_of_cell_sql, text_sql
from inferlake.session import Sessions

XSD = "http://www.w3.org/2001/XMLSchema#"

# Characters that mean something to CSV, to N-Triples or to SQL, and pieces of escapes.
_PIECES = st.sampled_from(
    ["\\", '"', "'", "\n", "\r", "\t", ",", " ", "{", "}", "u0001", "u0002", "n", "5", "-", "."]
    + [chr(code) for code in (0, 1, 2, 8, 11, 12, 31, 127, 0x80, 0x2028, 0xFFFD, 0xFFFE, 0x1D4B3)]
)
_TEXTS = st.lists(_PIECES, max_size=8).map("".join) | st.text(max_size=8)


def evaluated(values: list[str], *expressions: str) -> list[tuple[str, ...]]:
    """Return expressions of `v`, each of the ones before it by number, for some values."""
    session = Sessions("sail").for_reading().session
    frame = session.createDataFrame(pa.table({"v": pa.array(values, pa.string())}))
    for number, expression in enumerate(expressions):
        frame = frame.selectExpr("*", f"{expression} AS v{number}")
    return [tuple(row)[1:] for row in frame.collect()]


@settings(max_examples=20, deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=50))
def test_a_cell_comes_back_and_its_text_is_canonical(cells: list[str]) -> None:
    steps = (
        term_of_cell_sql("v"),
        cell_of_term_sql("v0"),
        text_sql("v"),
        cell_of_term_sql("v2"),
    )
    for cell, (_, back, literal, unescaped) in zip(cells, evaluated(cells, *steps), strict=True):
        assert back == cell
        assert literal == str(ox.Literal(cell))
        assert unescaped == cell


@pytest.mark.parametrize(
    ("cell", "term"),
    [
        ("5", f'"5"^^<{XSD}integer>'),
        ("-12", f'"-12"^^<{XSD}integer>'),
        ("0", f'"0"^^<{XSD}integer>'),
        ("1.50", f'"1.50"^^<{XSD}decimal>'),
        ("-0.5", f'"-0.5"^^<{XSD}decimal>'),
        ("<http://example.org:80/a?b#c>", "<http://example.org:80/a?b#c>"),
        ("<mailto:a>", "<mailto:a>"),
        ("007", '"007"'),
        ("+5", '"+5"'),
        ("5.", '"5."'),
        ("1e5", '"1e5"'),
        ("5 ", '"5 "'),
        ("5\n", '"5\\n"'),
        ("<a>", '"<a>"'),
        ("<http://a b>", '"<http://a b>"'),
        ("true", '"true"'),
        ("_:b", '"_:b"'),
        ('"5"', '"\\"5\\""'),
    ],
)
def test_what_a_cell_stands_for(cell: str, term: str) -> None:
    assert evaluated([cell], term_of_cell_sql("v")) == [(term,)]


@pytest.mark.parametrize(
    ("term", "cell"),
    [
        ('"chat"@fr', '"chat"@fr'),
        (f'"05"^^<{XSD}integer>', f'"05"^^<{XSD}integer>'),
        (f'"1E5"^^<{XSD}double>', "1E5"),
        (f'"2020-01-01"^^<{XSD}date>', f'"2020-01-01"^^<{XSD}date>'),
        ("_:f0123456789abcdef_b", "_:f0123456789abcdef_b"),
        ('""', ""),
    ],
)
def test_what_a_term_is_written_as(term: str, cell: str) -> None:
    assert evaluated([term], cell_of_term_sql("v")) == [(cell,)]


@pytest.mark.parametrize(
    ("cell", "field"),
    [("a", "a"), ("", '""'), ("a,b", '"a,b"'), ('a"b', '"a""b"'), ("a\nb", '"a\nb"'), (" a", " a")],
)
def test_fields_are_quoted_where_they_must_be(cell: str, field: str) -> None:
    assert evaluated([cell], field_sql("v", ",")) == [(field,)]
