"""Tests on terms as SQL, equal to `rules.values` in what they say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from inferlake.rules import values
from inferlake.terms.ids import is_iri_sql, is_resource_sql
from inferlake.terms.shape import quoted

_BY_ID = {
    "is_resource": is_resource_sql,
    "is_iri": is_iri_sql,
    "is_literal": lambda id: f"NOT {is_resource_sql(id)}",
    "is_blank": lambda id: f"({is_resource_sql(id)} AND NOT {is_iri_sql(id)})",
}


def check_sql(name: str, args: Sequence[str | int], texts: Mapping[int, str] | None = None) -> str:
    """Return SQL for a test.

    For tests that ids decide, `args` are SQL for ids. For the others they are aliases of the
    dictionary with the columns that are `VALUED`, or ids of constants whose terms are in `texts`.
    """
    if name in _BY_ID:
        return _BY_ID[name](args[0])
    if name in ("=", "!="):
        return f"{args[0]} {'=' if name == '=' else '<>'} {args[1]}"
    sides = [_constant(texts[arg]) if isinstance(arg, int) and texts else _of(arg) for arg in args]
    if name == "is_ill_typed":
        return sides[0]["ill"]
    if name == "has_datatype":
        return f"coalesce({sides[0]['datatype']} = {sides[1]['term']}, FALSE)"
    return _ordered(name, *sides)


def _ordered(operator: str, left: dict[str, str], right: dict[str, str]) -> str:
    numbers = f"{left['number']} {operator} {right['number']}"
    kinds = _listed(values.TEXTUAL)
    alike = f"{left['datatype']} = {right['datatype']} AND {left['datatype']} IN ({kinds})"
    texts = f"IF({alike}, {left['body']} {operator} {right['body']}, FALSE)"
    return f"coalesce({numbers}, {texts}, FALSE)"


_COLUMNS = ("term", "datatype", "body", "number", "ill")


def _of(alias: str | int) -> dict[str, str]:
    return {column: f"{alias}.{column}" for column in _COLUMNS}


def _literal(text: str) -> str:
    """Return text as SQL, in a query in which braces stand for frames."""
    return quoted(text).replace("{", "{{").replace("}", "}}")


def _constant(term: str) -> dict[str, str]:
    kind, number = values.datatype(term), values.number(term)
    if number is not None and math.isnan(number):
        number = None  # it compares with nothing, and engines have it above all numbers
    return {
        "term": _literal(term),
        "datatype": "CAST(NULL AS STRING)" if kind is None else _literal(kind),
        "body": _literal(values.text(term)) if kind is not None else "''",
        "number": "CAST(NULL AS DOUBLE)" if number is None else f"DOUBLE('{number + 0.0!r}')",
        "ill": "TRUE" if values.is_ill_typed(term) else "FALSE",
    }


VALUED = "id BIGINT, term STRING, body STRING, datatype STRING, number DOUBLE, ill BOOLEAN"


def value_steps_sql() -> Iterator[list[str]]:
    """Yield the columns of select after select that make `VALUED` of a dictionary's `id, term`.

    Each reads those before it. In one select, every part of the last would be written out as often
    as it is used, and engines took longer to plan that than to run it.
    """
    literal = "startswith(term, '\"')"
    end = "length(term) - instr(reverse(term), '\"') + 2"
    yield [
        "id",
        "term",
        f"IF({literal}, substring(term, 2, length(term) - instr(reverse(term), '\"') - 1), NULL)"
        " AS body",
        f"CASE WHEN NOT {literal} THEN NULL"
        f" WHEN endswith(term, '\"') THEN {quoted(values.STRING)}"
        f" WHEN substring(term, {end}, 1) = '@' THEN {quoted(values.LANG_STRING)}"
        f" ELSE substring(term, {end} + 2) END AS datatype",
    ]
    kept = ["id", "term", "body", "datatype"]
    yield [
        *kept,
        f"IF(datatype IN ({_listed(values.BOUNDS)}), regexp_replace(body, '^[+-]?0*', ''), NULL)"
        " AS digits",
    ]
    # A decimal holds 38 digits; any bound is smaller than 37 nines.
    clipped = "IF(length(digits) > 37, repeat('9', 37), digits)"
    sign = "IF(startswith(body, '-'), '-', '')"
    yield [*kept, f"try_cast(concat({sign}, '0', {clipped}) AS DECIMAL(38, 0)) AS whole"]
    yield [*kept, f"{_fits_sql()} AS fits"]
    # Adding zero makes one of the two zeros, which Sail would tell apart.
    value = "try_cast(replace(body, 'INF', 'Infinity') AS DOUBLE) + DOUBLE(0)"
    numeric = f"datatype IN ({_listed(values.NUMERIC)}) AND body <> 'NaN' AND fits"
    yield [*kept, f"IF({numeric}, {value}, NULL) AS number", "coalesce(NOT fits, FALSE) AS ill"]


def typed_sql() -> str:
    """Return SQL over `term` that is false for literals without a datatype: any text fits those."""
    return "NOT endswith(term, '\"')"


def _fits_sql() -> str:
    """Return SQL that is true if a literal's text fits its datatype, or there is no pattern."""
    kinds: dict[str, list[str]] = {}
    for kind, pattern in values.PATTERNS.items():
        kinds.setdefault(pattern, []).append(kind)
    cases = "".join(
        f"WHEN datatype IN ({_listed(some)}) THEN regexp_like(body, {quoted(_whole(pattern))}) "
        for pattern, some in kinds.items()
    )
    bounds = "".join(
        f"WHEN datatype = {quoted(kind)} THEN coalesce({_within(low, high)}, FALSE) "
        for kind, (low, high) in values.BOUNDS.items()
    )
    return f"((CASE {cases}ELSE TRUE END) AND (CASE {bounds}ELSE TRUE END))"


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(map(quoted, sorted(texts)))


def _whole(pattern: str) -> str:
    """Not `$`, which in Java also matches before a line separator at the end."""
    return rf"\A({pattern})\z"


def _within(low: int | None, high: int | None) -> str:
    tests = [f"whole >= {low}"] if low is not None else []
    tests += [f"whole <= {high}"] if high is not None else []
    return " AND ".join(tests)
