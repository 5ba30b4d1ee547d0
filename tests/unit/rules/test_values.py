"""What a term's form says: datatype, number, whether its text fits, and how it compares."""

from __future__ import annotations

import math

import pytest

from inferlake.rules import values
from inferlake.rules.model import KINDS, Comparison, Kind, Operator, Term
from inferlake.rules.values import datatype, holds, is_ill_typed, number, text

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def typed(written: str, kind: str) -> str:
    return f'"{written}"^^<{XSD}{kind}>'


def compare(left: str, operator: Operator, right: str) -> bool:
    return holds(Comparison(Term(left), operator, Term(right)), left, right)


@pytest.mark.parametrize(
    ("term", "kind", "written"),
    [
        ('""', values.STRING, ""),
        ('"a"', values.STRING, "a"),
        ('"a"@en', values.LANG_STRING, "a"),
        ('"a"@de-ch-1901', values.LANG_STRING, "a"),
        ('"1"^^<x:int>', "<x:int>", "1"),
        (r'"\""', values.STRING, r"\""),
        (r'"\"@en"', values.STRING, r"\"@en"),
        (r'"\"^^<x:y>"@en', values.LANG_STRING, r"\"^^<x:y>"),
        (r'"a\\"^^<x:y>', "<x:y>", r"a\\"),
        ('"^^<a:b>"', values.STRING, "^^<a:b>"),
    ],
)
def test_a_literal_has_a_datatype_and_a_text(term: str, kind: str, written: str) -> None:
    assert (datatype(term), text(term)) == (kind, written)


@pytest.mark.parametrize("term", ["<a:b>", "<a:1>", "_:b", "_:f0_1"])
def test_other_terms_have_neither_datatype_nor_number(term: str) -> None:
    assert datatype(term) is None and number(term) is None and not is_ill_typed(term)


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (typed("1", "integer"), 1),
        (typed("+01", "byte"), 1),
        (typed("-0", "nonNegativeInteger"), 0),
        (typed(".5", "decimal"), 0.5),
        (typed("5.", "decimal"), 5),
        (typed("1e3", "double"), 1000),
        (typed("1.5E-1", "float"), 0.15),
        (typed("INF", "double"), math.inf),
        (typed("+INF", "float"), math.inf),
        (typed("-INF", "double"), -math.inf),
        (typed("1e400", "double"), math.inf),
        (typed("9" * 400, "integer"), math.inf),
        (typed("9" * 5000, "nonNegativeInteger"), math.inf),
        (typed("1e3", "decimal"), None),
        (typed("INF", "decimal"), None),
        (typed("1.0", "integer"), None),
        (typed(" 1", "integer"), None),
        (typed("1_0", "integer"), None),
        (typed("١", "integer"), None),
        (typed("128", "byte"), None),
        (typed("inf", "double"), None),
        (typed("infinity", "double"), None),
        (typed("0x1", "double"), None),
        (typed("", "double"), None),
        (typed("true", "boolean"), None),
        (typed("1", "string"), None),
        ('"1"', None),
        ('"1"@en', None),
        ('"1"^^<e:integer>', None),
    ],
)
def test_numbers(term: str, value: float | None) -> None:
    assert number(term) == value


def test_not_a_number_is_a_number_that_equals_none() -> None:
    found = number(typed("NaN", "double"))
    assert found is not None and math.isnan(found)


@pytest.mark.parametrize(("kind", "bounds"), values.BOUNDS.items())
def test_bounds_are_inside(kind: str, bounds: tuple[int | None, int | None]) -> None:
    low, high = bounds
    for bound, outside in ((low, -1), (high, 1)):
        if bound is not None:
            assert not is_ill_typed(f'"{bound}"^^{kind}')
            assert is_ill_typed(f'"{bound + outside}"^^{kind}')
        far = f'"{"-" if outside < 0 else ""}{"9" * 5000}"^^{kind}'
        assert is_ill_typed(far) == (bound is not None)
    value = low if low is not None else high
    assert value is not None
    padded = f"{'-' if value < 0 else ''}{'0' * 5000}{abs(value)}"
    assert not is_ill_typed(f'"{padded}"^^{kind}')


@pytest.mark.parametrize(
    ("kind", "fitting", "not_fitting"),
    [
        ("integer", "0 -0 +1 007", "1. 1e1 - + --1 x 0x1"),
        ("decimal", "1 1. .1 -0.0 +1.50", ". 1e1 INF 1,5 -"),
        ("double", "1 1. .1 1e5 1E-05 -INF +INF INF NaN", ". e1 1e inf nan -NaN Infinity 1d 0x1p3"),
        ("float", "1.5e3 NaN", "+NaN 1f"),
        ("boolean", "true false 0 1", "TRUE yes 01 tru"),
        ("date", "2024-02-29 2024-02-30 -0044-03-15 12024-01-01 2024-01-01Z 2024-01-01-14:00", ""),
        ("date", "", "2024-1-1 2024-13-01 2024-00-01 2024-01-32 02024-01-01 24-01-01 2024-01-01z"),
        ("date", "", "2024-01-01+14:01 2024-01-01+24:00 2024-01-01+1:00"),
        ("dateTime", "2024-01-01T00:00:00 2024-01-01T24:00:00.0 2024-01-01T23:59:59.9Z", ""),
        ("dateTime", "", "2024-01-01 2024-01-01T24:00:01 2024-01-01T1:00:00 2024-01-01T00:00"),
        ("dateTimeStamp", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00"),
        ("time", "00:00:00 23:59:59.001 24:00:00 12:00:00+01:00", "24:00:01 12:60:00 12:00"),
        ("hexBinary", "0a 0AfF", "0 0g 0aF"),
        ("base64Binary", "YQ== YWI= YWJj", "Y* ==="),
        ("language", "en de-CH x-y-12345678", "e_n englishman en- -en de-123456789 1"),
        ("NMTOKEN", "a 1 -a a:b é ·", "a/b"),
        ("Name", "a :a _a a:b é a·", "1 -a ·a a/b"),
        ("NCName", "a _a a-b.c é", "a:b :a 1 -a"),
    ],
)
def test_texts_that_fit_their_types_and_others(kind: str, fitting: str, not_fitting: str) -> None:
    assert [one for one in fitting.split() if is_ill_typed(typed(one, kind))] == []
    assert [one for one in not_fitting.split() if not is_ill_typed(typed(one, kind))] == []


@pytest.mark.parametrize("kind", sorted(values.PATTERNS))
def test_white_space_around_a_text_never_helps(kind: str) -> None:
    lenient = {f"<{XSD}{name}>" for name in ("normalizedString", "base64Binary")}
    if kind not in lenient:
        for one in (" 1", "1 ", " 2024-01-01", "0a ", "true ", " en"):
            assert is_ill_typed(f'"{one}"^^{kind}'), one
    assert is_ill_typed(rf'"1\n"^^{kind}') or kind == f"<{XSD}token>"


def test_types_of_text_look_at_white_space_only() -> None:
    assert not is_ill_typed(typed(r"a  b\"\\", "normalizedString"))
    assert not is_ill_typed(typed(r"a\\tb", "normalizedString"))  # a backslash, then a t
    for escape in (r"\t", r"\n", r"\r", r"\\\t", r"\"\n"):
        assert is_ill_typed(typed(f"a{escape}b", "normalizedString"))
    assert not is_ill_typed(typed("", "token")) and not is_ill_typed(typed("a b", "token"))
    assert is_ill_typed(typed(" a", "token")) and is_ill_typed(typed("a ", "token"))


@pytest.mark.parametrize(("count", "noticed"), [(0, True), (1, True), (99, True), (101, False)])
def test_very_long_texts_are_only_looked_at_in_their_beginning(count: int, noticed: bool) -> None:
    good, bad = r"\"" * count, r"\"" * count + r"\t"
    assert not is_ill_typed(typed(good, "normalizedString"))
    assert is_ill_typed(typed(bad, "normalizedString")) == noticed
    tag = "en" + "-a" * count
    assert not is_ill_typed(typed(tag, "language"))
    assert is_ill_typed(typed(f"{tag}-toolongtag", "language")) == noticed


def test_plain_literals_end_in_a_language() -> None:
    kind = f"^^<{RDF}PlainLiteral>"
    for one in ("x@", "x@en", "@", "a@b@en-us"):
        assert not is_ill_typed(f'"{one}"{kind}')
    for one in ("x", "", "x@en-", "x@toolonglanguage"):
        assert is_ill_typed(f'"{one}"{kind}')


def test_unknown_types_take_any_text() -> None:
    assert not is_ill_typed('"anything"^^<e:mine>') and not is_ill_typed('"a"@toolong')
    assert not is_ill_typed('"a"') and not is_ill_typed(typed(" a ", "anyURI"))


@pytest.mark.parametrize(
    ("left", "operator", "right", "outcome"),
    [
        # By value, across types.
        (typed("1", "integer"), "<", typed("1.5", "decimal"), True),
        (typed("10", "integer"), ">", typed("9", "byte"), True),
        (typed("1", "integer"), "<=", typed("01", "long"), True),
        (typed("1", "integer"), ">=", typed("1.0", "double"), True),
        (typed("-0.0", "double"), "<", typed("0.0", "double"), False),
        (typed("-INF", "double"), "<", typed("-1e400", "double"), False),
        (typed("INF", "double"), ">", typed("1e308", "double"), True),
        # Identity is of terms, not of values.
        (typed("1", "integer"), "=", typed("01", "integer"), False),
        (typed("1", "integer"), "!=", typed("1", "int"), True),
        ('"a"@en', "=", '"a"@en', True),
        ("<a:b>", "!=", "_:b", True),
        # Texts of one type, by character.
        ('"Z"', "<", '"a"', True),
        ('"10"', "<", '"9"', True),
        ('""', "<=", '""', True),
        ('"\uffff"', "<", '"\U00010000"', True),
        (typed("2024-01-02", "date"), ">", typed("2024-01-01", "date"), True),
        (typed("2024-01-02T00:00:00", "dateTime"), ">", typed("2024-01-01", "dateTime"), True),
        # What has no order has none.
        (typed("2024-01-02", "date"), ">", typed("2024-01-01T00:00:00", "dateTime"), False),
        ('"b"', ">", '"a"@en', False),
        ('"b"@en', ">", '"a"@en', False),
        ("<a:b>", ">", "<a:a>", False),
        (typed("true", "boolean"), ">", typed("false", "boolean"), False),
        (typed("2", "integer"), ">", '"1"', False),
        ('"2"', ">", typed("1", "integer"), False),
        (typed("y", "integer"), ">", typed("x", "integer"), False),
        (typed("300", "byte"), ">", typed("1", "byte"), False),
    ],
)
def test_comparisons(left: str, operator: Operator, right: str, outcome: bool) -> None:
    assert compare(left, operator, right) == outcome


TERMS = [
    *(typed(one, "double") for one in ("1", "NaN", "INF", "-0", "x")),
    *(typed(one, "integer") for one in ("1", "01", "2", "y")),
    *('"a"', '"1"', '"a"@en', "<a:b>", "_:b", typed("2024-01-01", "date")),
]


@pytest.mark.parametrize("left", TERMS)
def test_comparisons_agree_with_each_other(left: str) -> None:
    for right in TERMS:
        assert compare(left, "<", right) == compare(right, ">", left)
        assert compare(left, "<=", right) == compare(right, ">=", left)
        assert compare(left, "=", right) != compare(left, "!=", right)
        assert not (compare(left, "<", right) and compare(left, ">=", right))
        assert compare(left, "<=", right) or not compare(left, "<", right)
        if "NaN" in left + right:
            assert not any(compare(left, op, right) for op in ("<", "<=", ">", ">="))


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("is_literal", ['"a"']),
        ("is_iri", ["<a:b>"]),
        ("is_blank", ["_:b"]),
        ("is_ill_typed", [typed("x", "integer")]),
        ("has_datatype", ['"a"', values.STRING]),
    ],
)
def test_kinds(name: str, terms: list[str]) -> None:
    test = Kind(name, tuple(Term(term) for term in terms))
    assert holds(test, *terms)
    assert not holds(test, '"1"^^<e:x>' if name == "is_iri" else "<a:c>", *terms[1:])
    assert KINDS[name] == len(terms)


def test_unknown_tests_are_refused() -> None:
    with pytest.raises(ValueError, match="is_green"):
        holds(Kind("is_green", ()), "<a:b>")
