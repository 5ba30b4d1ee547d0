"""What a term's form tells by itself: its datatype, its number, whether its text fits its type.

These tables are the one definition; the plan writes the same as SQL, the reference evaluator calls
the functions.
"""

from __future__ import annotations

import re

from inferlake.rules.model import Comparison, Kind

_XSD = "http://www.w3.org/2001/XMLSchema#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
STRING = f"<{_XSD}string>"
LANG_STRING = f"<{_RDF}langString>"

_DIGITS = "[0-9]+"
_INTEGER = f"[+-]?{_DIGITS}"
_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_DOUBLE = rf"({_DECIMAL}([eE][+-]?[0-9]+)?|[+-]?INF|NaN)"
_DATE = r"-?([1-9][0-9]{3,}|0[0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?|24:00:00(\.0+)?)"
_ZONE = r"(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)"


def _repeated(first: str, unit: str, lax: str) -> str:
    """Return `first(unit)*`, in which `lax` may follow upon a hundred units.

    Java's matcher recurses for each turn of a group: a long text would overflow its stack.
    """
    return f"{first}(({unit}){{0,100}}|({unit}){{100}}{lax})"


_TAG = _repeated("[a-zA-Z]{1,8}", "-[a-zA-Z0-9]{1,8}", r"-[a-zA-Z0-9\-]*")
# The characters of XML names, as ranges: not every engine's patterns know the classes of Unicode.
_FIRST = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_INNER = f"\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040{_FIRST}"

# The integer types, with their smallest and largest value.
_INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}
_NUMBERS = {"decimal": _DECIMAL, "double": _DOUBLE, "float": _DOUBLE}
# Texts are in canonical N-Triples: a tab or a break is an escape. Some of these let a bit too much
# pass, for the reason that `_repeated` gives.
_OTHERS = {
    "boolean": "(true|false|1|0)",
    "date": f"{_DATE}{_ZONE}?",
    "dateTime": f"{_DATE}T{_TIME}{_ZONE}?",
    "dateTimeStamp": f"{_DATE}T{_TIME}{_ZONE}",
    "time": f"{_TIME}{_ZONE}?",
    "hexBinary": "([0-9a-fA-F]{2})*",
    "base64Binary": "[A-Za-z0-9+/ ]*(= ?=?)?",
    "language": _TAG,
    "normalizedString": _repeated(r"[^\\]*", r"\\[^tnr][^\\]*", r"\\[^tnr][^\n]*"),
    "token": r"([^ ]|[^ ][^\n]*[^ ])?",
    "NMTOKEN": f"[:{_INNER}]+",
    "Name": f"[:{_FIRST}][:{_INNER}]*",
    "NCName": f"[{_FIRST}][{_INNER}]*",
}

# Types whose text has a pattern: what does not match is ill-typed. Integers with bounds are
# checked by number besides.
PATTERNS: dict[str, str] = {
    **{f"<{_XSD}{name}>": _INTEGER for name in _INTEGERS},
    **{f"<{_XSD}{name}>": pattern for name, pattern in _NUMBERS.items()},
    **{f"<{_XSD}{name}>": pattern for name, pattern in _OTHERS.items()},
    f"<{_RDF}PlainLiteral>": f"[^\\n]*@({_TAG})?",
}
BOUNDS = {
    f"<{_XSD}{name}>": bounds
    for name, bounds in _INTEGERS.items()
    if any(bound is not None for bound in bounds)
}
NUMERIC = frozenset(f"<{_XSD}{name}>" for name in (*_INTEGERS, *_NUMBERS))
# Their texts are in the order of their values, within one time zone.
TEXTUAL = frozenset({STRING, f"<{_XSD}date>", f"<{_XSD}dateTime>"})


def datatype(term: str) -> str | None:
    """Return the datatype of a literal in canonical form, or None of other terms.

    >>> datatype('"a"'), datatype('"a"@en'), datatype('"1"^^<x:int>'), datatype("<a:b>")
    ('<http://www.w3.org/2001/XMLSchema#string>', \
'<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>', '<x:int>', None)
    """
    if not term.startswith('"'):
        return None
    end = term[term.rindex('"') + 1 :]
    if end.startswith("^^"):
        return end[2:]
    return LANG_STRING if end else STRING


def text(term: str) -> str:
    """Return what stands between a literal's quotes, escapes and all."""
    return term[1 : term.rindex('"')]


def number(term: str) -> float | None:
    """Return the value of a numeric literal that is well typed, else None."""
    if datatype(term) not in NUMERIC or is_ill_typed(term):
        return None
    return float(text(term).replace("INF", "inf"))


def is_ill_typed(term: str) -> bool:
    """Tell whether a literal's text is outside its datatype, for the datatypes known here."""
    kind = datatype(term)
    if kind is None or kind not in PATTERNS:
        return False
    # White space counts: RDF takes a datatype's texts as they are, unlike XML documents.
    written = text(term)
    if not re.fullmatch(PATTERNS[kind], written):
        return True
    if kind not in BOUNDS:
        return False
    (low, high), value = BOUNDS[kind], _integer(written)
    return (low is not None and value < low) or (high is not None and value > high)


def _integer(written: str) -> int:
    """Return an integer, or one far beyond all bounds in place of one that is longer yet.

    Python refuses to read more than some thousand digits.
    """
    digits = written.lstrip("+-").lstrip("0")[:40]
    return int(digits or 0) * (-1 if written.startswith("-") else 1)


def holds(test: Comparison | Kind, *terms: str) -> bool:
    """Tell whether `test` holds of the terms that stand for its arguments."""
    if isinstance(test, Kind):
        return _is_kind(test.name, terms)
    return _compares(test.operator, *terms)


def _is_kind(name: str, terms: tuple[str, ...]) -> bool:
    match name:
        case "is_literal":
            return terms[0].startswith('"')
        case "is_iri":
            return terms[0].startswith("<")
        case "is_blank":
            return terms[0].startswith("_:")
        case "is_ill_typed":
            return is_ill_typed(terms[0])
        case "has_datatype":
            return datatype(terms[0]) == terms[1]
    raise ValueError(name)


def _compares(operator: str, left: str, right: str) -> bool:
    if operator == "=":
        return left == right
    if operator == "!=":
        return left != right
    one, other = number(left), number(right)
    if one is None or other is None:
        if datatype(left) not in TEXTUAL or datatype(left) != datatype(right):
            return False
        one, other = text(left), text(right)
    match operator:
        case "<":
            return one < other  # type: ignore[operator]
        case "<=":
            return one <= other  # type: ignore[operator]
        case ">":
            return one > other  # type: ignore[operator]
        case ">=":
            return one >= other  # type: ignore[operator]
    raise ValueError(operator)
