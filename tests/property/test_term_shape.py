"""The pattern of canonical terms never accepts what a parser would reject or write differently."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings

from inferlake.session import Engine
from inferlake.terms import is_canonical_sql
from inferlake.terms.shape import CANONICAL_TERM, LONGEST_MATCHED

from .terms import EDGES, RDF, SCOPE, XSD, many, terms

# Python's `re` spells code points and the end of the text in its own way.
_IN_PYTHON = re.compile(
    re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: rf"\U{int(m[1], 16):08x}", CANONICAL_TERM)
    .replace(r"\A", "")
    .replace(r"\z", "")
)
_UNWRITTEN = tuple(
    f'"^^<{name}>' for name in (f"{XSD}string", f"{RDF}langString", f"{RDF}dirLangString")
)


def accepted_in_python(term: str) -> bool:
    short = len(term.encode()) <= LONGEST_MATCHED
    return short and bool(_IN_PYTHON.fullmatch(term)) and not term.endswith(_UNWRITTEN)


def accepted(engine: Engine, terms: Iterable[str]) -> list[str]:
    """Return those of `terms` that the engine takes for canonical."""
    frame = engine.session.createDataFrame(pa.table({"term": list(dict.fromkeys(terms))}))
    return [row.term for row in frame.where(is_canonical_sql("term")).collect()]


def rewritten(term: str) -> str | None:
    """Return `term` as pyoxigraph writes it, or None if it is no term."""
    line = f"<a:s> <a:p> {term} .".encode()
    try:
        (statement,) = ox.parse(line, format=ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError):
        return None
    return str(statement.object)


def wrongly_accepted(terms: Iterable[str]) -> dict[str, str | None]:
    return {term: new for term in terms if (new := rewritten(term)) != term}


@pytest.fixture(scope="module")
def batch() -> list[str]:
    """Thousands of terms, most of them almost right."""
    return list(dict.fromkeys(many(terms, 2500)))


@settings(max_examples=500)
@given(term=terms)
def test_python_accepts_only_canonical_terms(term: str) -> None:
    assert not accepted_in_python(term) or rewritten(term) == term


def test_an_engine_accepts_only_canonical_terms(engine: Engine, batch: list[str]) -> None:
    found = accepted(engine, batch)
    assert wrongly_accepted(found) == {}
    assert set(found) == set(filter(accepted_in_python, batch))


def test_each_edge_of_unicode_in_each_kind_of_term(engine: Engine) -> None:
    around = ("<http://a/{}>", "<a:{}>", '"{}"', '"a"@{}', '"a"^^<a:{}>', f"_:{SCOPE}x{{}}y")
    at_the_end = ("<a:b>{}", '"a"{}', f"_:{SCOPE}x{{}}", '"a"@en{}', '"a"^^<a:b>{}')
    terms = [shape.format(edge) for shape in around + at_the_end for edge in EDGES]
    found = accepted(engine, terms)
    assert wrongly_accepted(found) == {}
    assert set(found) == set(filter(accepted_in_python, terms))


def test_each_ascii_character_in_each_kind_of_term(engine: Engine) -> None:
    shapes = ("<{}:a>", "<a{}:a>", "<a:{}>", "<a://{}>", "<a://b/{}>", "<a:?{}>", "<a:#{}>")
    more = ('"{}"', '"\\{}"', '"a"@a{}', '"a"@aa-{}', f"_:{SCOPE}{{}}", f"_:{SCOPE}a{{}}")
    terms = [shape.format(chr(code)) for shape in shapes + more for code in range(128)]
    found = accepted(engine, terms)
    assert wrongly_accepted(found) == {}
    assert set(found) == set(filter(accepted_in_python, terms))


def test_the_terms_made_here_are_neither_all_right_nor_all_wrong(batch: list[str]) -> None:
    right = sum(map(accepted_in_python, batch))
    valid = sum(rewritten(term) is not None for term in batch)
    assert len(batch) // 10 < right < valid < len(batch) * 9 // 10
