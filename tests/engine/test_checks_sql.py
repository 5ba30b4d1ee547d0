"""Checks as SQL say the same as the functions of `rules.values`, on the nastiest of literals."""

from __future__ import annotations

import pyarrow as pa
import pytest

from inferlake.plan.checks_sql import VALUED, check_sql, typed_sql, value_steps_sql
from inferlake.rules import values
from inferlake.rules.model import IDENTITY, Comparison, Kind, Term
from inferlake.session import Engine
from inferlake.terms import FULL

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
ORDER = ("<", "<=", ">", ">=")

# Texts that some datatype takes and others do not; every datatype meets each of them.
TEXTS = [
    *("", " ", "0", "-0", "+0", "1", "+1", "-1", "01", " 1", "1 ", "1\u2028", "1\u0085", "1_0"),
    *("1.", ".5", ".", "-0.0", "0.0", "1.5", "1e5", "1E-5", "-1.e+05", "1e400", "-1e400", "1e-400"),
    *("INF", "-INF", "+INF", "inf", "Infinity", "-Infinity", "NaN", "-NaN", "nan", "0x10", "1d"),
    *("1f", "1D", "0b1", "1L", "١", "true", "false", "TRUE", "True", "1e", "e1", "--1", "+-1"),
    *("2024-02-29", "2024-02-30", "2024-13-01", "0000-01-01", "-0044-03-15", "12024-01-01"),
    *("02024-01-01", "2024-1-1", "2024-02-29Z", "2024-02-29+14:00", "2024-02-29+14:01"),
    *("2024-02-29T24:00:00", "2024-02-29T23:59:59.999Z", "2024-02-29T24:00:01", "12:00:00"),
    *("24:00:00.0", "2024-02-29T12:00:00-05:00", "2024-02-29 12:00:00", "25:00:00"),
    *("0aF", "0aFF", "YQ==", "YQ= =", "YWI=", "Y===", "en", "en-US", "toolonglanguage", "e_n"),
    *("a b", " a", "a ", "a  b", r"a\tb", r"a\\tb", r"a\nb", r"a\"b", r"a\\", r"\\\"", "a'b"),
    *(
        "a:b",
        ":a",
        "a.b-c",
        "-a",
        "·a",
        "a·",
        "é",
        "x@",
        "x@en",
        "x@en-",
        "x",
        "\U00010000",
        "\uffff",
    ),
    *("a\\u0001b", "$", "^", "[", "(", "{n}", "%", "_", "\u00a0", "\u00a01", "null", "NULL"),
    "1" + "0" * 37,
    "9" * 38,
    "9" * 39,
    "-" + "9" * 39,
    "0" * 60 + "7",
    "-" + "0" * 60 + "7",
    "+" + "0" * 60,
    "9" * 400,
    "-" + "9" * 5000,
    "0." + "1" * 60,
]
BOUNDS = sorted({bound for pair in values.BOUNDS.values() for bound in pair if bound is not None})
AROUND = [str(bound + step) for bound in BOUNDS for step in (-1, 0, 1)]

OTHER_TYPES = [values.STRING, "<e:unknown>", f"<{XSD}anyURI>", f"<{XSD}string2>"]
OTHER_TERMS = [
    "<http://example.org/a>",
    "<a:1>",
    "_:f0000000000000000_b",
    '"a"@en',
    '"1"@en',
    '"a"@en-us',
    r'"quote \" inside"@de',
    r'"^^"^^<e:unknown>',
    r'"@en"',
    r'"\"@en"',
    r'"\"^^<e:x>"',
]


def literal(text: str, kind: str) -> str:
    return f'"{text}"' if kind == values.STRING else f'"{text}"^^{kind}'


KINDS = [*values.PATTERNS, *OTHER_TYPES]
TERMS = list(
    dict.fromkeys(
        [
            *(literal(text, kind) for kind in KINDS for text in TEXTS),
            *(literal(text, kind) for kind in values.NUMERIC for text in AROUND),
            *OTHER_TERMS,
        ]
    )
)
INTEGER, DOUBLE = f"<{XSD}integer>", f"<{XSD}double>"
# For all pairs, the terms that have an order, and some that have none.
PAIRED = [
    *(literal(text, kind) for kind in (INTEGER, DOUBLE) for text in TEXTS),
    *(literal(text, f"<{XSD}decimal>") for text in ("1", "1.0", "0.1", "-0.0", "1e5", "x")),
    *(literal(text, f"<{XSD}float>") for text in ("1", "0.1", "NaN", "INF", "-0")),
    *(literal(text, f"<{XSD}byte>") for text in ("1", "-128", "127", "128", "-0")),
    *(literal(text, values.STRING) for text in ("", "1", "a", "Z", "é", "\uffff", "\U00010000")),
    *(literal(text, values.STRING) for text in (r"\"", r"\\", r"\t", "a'b", "NaN", "INF")),
    *(literal(text, f"<{XSD}date>") for text in ("2024-02-29", "2024-02-29Z", "x", "-0044-03-15")),
    *(literal(text, f"<{XSD}dateTime>") for text in ("2024-02-29T24:00:00", "2024-02-29", "")),
    *(literal(text, f"<{XSD}boolean>") for text in ("true", "false", "1")),
    *OTHER_TERMS,
]
CONSTANTS = [
    *(literal(text, DOUBLE) for text in ("NaN", "INF", "-INF", "-0.0", "0.0", "1e400", "x", "1d")),
    *(literal(text, INTEGER) for text in ("1", "-1", "9" * 39, "-0", " 1", "9" * 400)),
    *(literal(text, values.STRING) for text in ("a", r"\\", "a'b", "", r"\"")),
    literal("2024-02-29", f"<{XSD}date>"),
    literal("300", f"<{XSD}byte>"),
    '"a"@en',
    "<a:1>",
]


def dictionary(engine: Engine, terms: list[str]):
    """Return the terms as an evaluation sees them."""
    ids = pa.array([FULL.of(term) for term in terms], pa.int64())
    table = pa.table({"id": ids, "term": pa.array(terms, pa.string())})
    frame = engine.session.createDataFrame(table)
    for columns in value_steps_sql():
        frame = frame.selectExpr(*columns)
    return frame


def asked(operator: str, left: str, right: str) -> bool:
    return values.holds(Comparison(Term(left), operator, Term(right)), left, right)  # type: ignore[arg-type]


def test_columns_of_terms_are_what_the_functions_say(engine: Engine) -> None:
    rows = dictionary(engine, TERMS).toArrow().to_pylist()
    assert {row["term"] for row in rows} == set(TERMS) and len(rows) == len(TERMS)
    found = {row["term"]: (row["datatype"], row["body"], row["ill"]) for row in rows}
    expected = {
        term: (kind, None if kind is None else values.text(term), values.is_ill_typed(term))
        for term in TERMS
        for kind in (values.datatype(term),)
    }
    assert {t: (found[t], expected[t]) for t in TERMS if found[t] != expected[t]} == {}


def test_what_is_ill_typed_has_a_datatype(engine: Engine) -> None:
    literals = [term for term in TERMS if values.datatype(term) is not None]
    rows = dictionary(engine, literals).where(typed_sql()).toArrow().to_pylist()
    assert {r["term"] for r in rows if r["ill"]} == set(filter(values.is_ill_typed, literals))
    assert {row["term"] for row in rows}.isdisjoint({'"a"', '""', r'"\""'})


def test_the_columns_of_values_are_those_named(engine: Engine) -> None:
    found = dictionary(engine, TERMS).schema
    assert ", ".join(f"{f.name} {f.dataType.simpleString().upper()}" for f in found) == VALUED


def test_numbers_are_what_the_functions_say(engine: Engine) -> None:
    rows = dictionary(engine, TERMS).toArrow().to_pylist()
    # What is not a number compares with nothing, as if there were none.
    expected = {t: None if (n := values.number(t)) is None or n != n else n for t in TERMS}
    found = {row["term"]: row["number"] for row in rows}
    assert {t: (found[t], expected[t]) for t in TERMS if found[t] != expected[t]} == {}


@pytest.mark.parametrize("name", ["is_ill_typed", "has_datatype"])
def test_tests_of_kind_are_never_null(engine: Engine, name: str) -> None:
    frame = dictionary(engine, PAIRED)
    if name == "is_ill_typed":
        sql = f"SELECT t.term, {check_sql(name, ['t'])} AS holds FROM {{terms}} t"
        found = {(row["term"],): row["holds"] for row in engine.sql(sql, terms=frame).collect()}
    else:
        kinds = dictionary(engine, [*KINDS, values.LANG_STRING, '"a"'])
        sql = (
            f"SELECT t.term, k.term AS kind, {check_sql(name, ['t', 'k'])} AS holds"
            " FROM {terms} t CROSS JOIN {kinds} k"
        )
        rows = engine.sql(sql, terms=frame, kinds=kinds).toArrow().to_pylist()
        found = {(row["term"], row["kind"]): row["holds"] for row in rows}
    test = Kind(name, ())
    assert {
        terms: is_so for terms, is_so in found.items() if is_so != values.holds(test, *terms)
    } == {}


def test_comparisons_of_all_pairs_are_what_the_functions_say(engine: Engine) -> None:
    frame = dictionary(engine, PAIRED)
    asked_of = ", ".join(f"{check_sql(op, ['l', 'r'])} AS o{n}" for n, op in enumerate(ORDER))
    sql = f"SELECT l.term AS l, r.term AS r, {asked_of} FROM {{one}} l CROSS JOIN {{other}} r"
    rows = engine.sql(sql, one=frame, other=frame).toArrow().to_pylist()
    assert len(rows) == len(PAIRED) ** 2
    wrong = {
        (row["l"], op, row["r"]): row[f"o{n}"]
        for row in rows
        for n, op in enumerate(ORDER)
        if row[f"o{n}"] != asked(op, row["l"], row["r"])
    }
    assert wrong == {}


@pytest.mark.parametrize("side", ["left", "right"])
def test_comparisons_with_constants_are_what_the_functions_say(engine: Engine, side: str) -> None:
    texts = {FULL.of(term): term for term in CONSTANTS}

    def args(id: int) -> list[str | int]:
        return [id, "t"] if side == "left" else ["t", id]

    columns = ", ".join(
        f"{check_sql(op, args(id), texts)} AS c{n}_{m}"
        for n, id in enumerate(texts)
        for m, op in enumerate(ORDER)
    )
    frame = dictionary(engine, PAIRED)
    rows = engine.sql(f"SELECT t.term, {columns} FROM {{terms}} t", terms=frame).toArrow()
    wrong = {
        pair: row[f"c{n}_{m}"]
        for row in rows.to_pylist()
        for n, constant in enumerate(texts.values())
        for m, op in enumerate(ORDER)
        for pair in [(constant, op, row["term"]) if side == "left" else (row["term"], op, constant)]
        if row[f"c{n}_{m}"] != asked(pair[1], pair[0], pair[2])
    }
    assert wrong == {}


def test_datatypes_asked_of_constants_are_what_the_functions_say(engine: Engine) -> None:
    kinds = {FULL.of(kind): kind for kind in (*KINDS, values.LANG_STRING, '"a"')}
    columns = ", ".join(
        f"{check_sql('has_datatype', ['t', id], kinds)} AS c{n}" for n, id in enumerate(kinds)
    )
    frame = dictionary(engine, PAIRED)
    rows = engine.sql(f"SELECT t.term, {columns} FROM {{terms}} t", terms=frame).toArrow()
    wrong = {
        (row["term"], kind): row[f"c{n}"]
        for row in rows.to_pylist()
        for n, kind in enumerate(kinds.values())
        if row[f"c{n}"] != (values.datatype(row["term"]) == kind)
    }
    assert wrong == {}


def test_tests_of_ids_are_what_the_functions_say(engine: Engine) -> None:
    names = ("is_iri", "is_literal", "is_blank")
    columns = ", ".join(f"{check_sql(name, ['t.id'])} AS {name}" for name in names)
    columns += "".join(
        f", {check_sql(op, ['t.id', 'u.id'])} AS i{n}" for n, op in enumerate(IDENTITY)
    )
    sql = f"SELECT t.term, u.term AS other, {columns} FROM {{terms}} t CROSS JOIN {{terms}} u"
    rows = engine.sql(sql, terms=dictionary(engine, OTHER_TERMS)).toArrow().to_pylist()
    assert len(rows) == len(OTHER_TERMS) ** 2
    for row in rows:
        term, other = row["term"], row["other"]
        assert {name: row[name] for name in names} == {
            name: values.holds(Kind(name, ()), term) for name in names
        }
        assert (row["i0"], row["i1"]) == (term == other, term != other)


def test_very_long_texts_do_not_break_an_engine(engine: Engine) -> None:
    texts = ["0a" * 50_000, "a-" * 20_000 + "a", r"\"" * 20_000, "1" * 50_000, "a b " * 20_000]
    terms = [literal(text, kind) for kind in KINDS for text in texts]
    rows = dictionary(engine, terms).toArrow().to_pylist()
    found = {row["term"]: row["ill"] for row in rows}
    wrong = [term[-60:] for term in terms if found[term] != values.is_ill_typed(term)]
    assert wrong == []
