"""The usual terms are decided by the pattern: only the unusual may cost a parser's time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from inferlake.session import Engine, Sessions
from inferlake.terms import is_canonical_sql, scoped_sql
from inferlake.terms.shape import LONGEST_MATCHED, quoted

USUAL = [
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
    "<http://www.Department0.University0.edu/FullProfessor0>",
    "<http://dbpedia.org/resource/Albert_Einstein>",
    "<http://dbpedia.org/resource/Caf%C3%A9_(disambiguation)>",
    "<http://zh.dbpedia.org/resource/北京>",
    "<https://schema.org/Person>",
    "<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>",
    "<mailto:someone@example.org>",
    "<http://example.org/a?b=c&d=e;f#g/h?i>",
    "<http://example.org>",
    '""',
    '"a text, with punctuation; and \\"quotes\\"."',
    '"line\\nline\\ttab\\\\"',
    '"Größe 北京 😀"',
    '"hello"@en',
    '"colour"@en-gb',
    '"漢字"@zh-hant',
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"2024-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    "_:f0123456789abcdef_b0",
    "_:f0123456789abcdef_genid-1.x",
]

NOT_CANONICAL = [
    '"a"^^<http://www.w3.org/2001/XMLSchema#string>',
    '"a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
    '"a"@en-US',
    '"\\u0041"',
    "<relative>",
    "<http://example.org/a b>",
    "_:outside-of-any-scope",
    "<http://example.org/a>\u2028",
    "",
    "a",
]


@pytest.fixture
def sail() -> Engine:
    return Sessions("sail").for_reading()


def decided(sail: Engine, terms: list[str]) -> list[str]:
    frame = sail.session.createDataFrame(pa.table({"term": terms}))
    return [row.term for row in frame.where(is_canonical_sql("term")).collect()]


def test_usual_terms_need_no_parser(sail: Engine) -> None:
    assert decided(sail, USUAL) == USUAL


def test_terms_that_are_written_otherwise_are_left_to_the_parser(sail: Engine) -> None:
    assert decided(sail, NOT_CANONICAL) == []


def test_long_terms_are_left_to_the_parser(sail: Engine) -> None:
    fits, long = ('"' + "x" * (n - 2) + '"' for n in (LONGEST_MATCHED, LONGEST_MATCHED + 1))
    wide = '"' + "é" * (LONGEST_MATCHED // 2) + '"'
    assert decided(sail, [fits, long, wide]) == [fits]


def test_text_is_quoted_for_sql(sail: Engine) -> None:
    text = "it's \\ \" \\' \\n é"
    assert sail.session.sql(f"SELECT {quoted(text)} AS text").collect()[0].text == text


def test_only_blank_nodes_are_moved_into_a_scope(sail: Engine) -> None:
    terms = ["_:x", "<a:_:x>", '"_:x"', "_:"]
    frame = sail.session.createDataFrame(pa.table({"term": terms}))
    moved = frame.selectExpr(f"{scoped_sql('term', quoted('f1_'))} AS term").collect()
    assert [row.term for row in moved] == ["_:f1_x", "<a:_:x>", '"_:x"', "_:f1_"]


def test_labels_of_stored_nodes_may_stay_as_they_are(sail: Engine) -> None:
    stored = "_:f0123456789abcdef_x"
    frame = sail.session.createDataFrame(pa.table({"term": [stored, "_:f0123_x", '"_:x"']}))
    sql = scoped_sql("term", quoted("f1_"), stored_labels=True)
    moved = frame.selectExpr(f"{sql} AS term").collect()
    assert [row.term for row in moved] == [stored, "_:f1_f0123_x", '"_:x"']
