"""Cells of tables to terms and back, as SQL that both engines evaluate alike.

What went in comes out the same: the text of a number stays as it was written, and `007` is text. A
term that no cell stands for, such as `"chat"@fr`, is written as N-Triples has it.

The patterns have braces, which `Engine.sql` would take for frames: use these with `selectExpr`.
"""

from __future__ import annotations

from inferlake.terms.shape import quoted

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_DECIMAL = rf"{_INTEGER}\.[0-9]+"
# As N-Triples has it: the pattern of `terms.shape` is narrower, and would make a port text.
_IRI = r'<[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>"{}|^`\\]*>'

_BACKSLASH = "\\"

# The escapes of canonical N-Triples. Those beside the usual ones are so rare that a text is first
# asked whether it has one.
_USUAL = {'"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_RARE_CODES = (*range(8), 0x0B, *range(0x0E, 0x20), 0x7F, 0xFFFE, 0xFFFF)
_RARE = {chr(code): f"\\u{code:04X}" for code in _RARE_CODES}
_HAS_RARE = r"[\x00-\x07\x0b\x0e-\x1f\x7f\x{fffe}\x{ffff}]"
_ESCAPED_RARE = r"\\u[0-9A-F]{4}"

# A stand-in for an escaped backslash: canonical text never has this character itself. (Not the
# character 0, which Java's `translate` takes for "delete".)
_STAND_IN = "\x01"


def term_of_cell_sql(cell: str) -> str:
    """Return SQL for the term of a cell of a text file: a number, an IRI in brackets, or text."""
    return (
        f"CASE WHEN {_matches(cell, _INTEGER)} THEN {typed_sql(cell, 'integer')}"
        f" WHEN {_matches(cell, _DECIMAL)} THEN {typed_sql(cell, 'decimal')}"
        f" WHEN {_matches(cell, _IRI)} THEN {cell} ELSE {text_sql(cell)} END"
    )


def typed_sql(text: str, datatype: str) -> str:
    """Return SQL for the literal of an XSD datatype; `text` needs no escapes."""
    end = '"^^<' + _XSD + datatype + ">"
    return f"concat('\"', {text}, {quoted(end)})"


def double_sql(value: str) -> str:
    """Return SQL for the term of a number with a binary fraction."""
    text = (
        f"CASE WHEN isnan({value}) THEN 'NaN' WHEN {value} = DOUBLE('Infinity') THEN 'INF'"
        f" WHEN {value} = DOUBLE('-Infinity') THEN '-INF' ELSE CAST({value} AS STRING) END"
    )
    return typed_sql(text, "double")


def text_sql(text: str) -> str:
    """Return SQL for the literal that says just `text`."""
    usual = _replaced(text, {_BACKSLASH: _BACKSLASH * 2, **_USUAL})
    escaped = f"IF(regexp_like({text}, {quoted(_HAS_RARE)}), {_replaced(usual, _RARE)}, {usual})"
    return f"concat('\"', {escaped}, '\"')"


def cell_of_term_sql(term: str) -> str:
    """Return SQL for the cell of a term, the inverse of `term_of_cell_sql` and its like."""
    kinds = (("integer", _INTEGER), ("decimal", _DECIMAL), ("double", ".*"))
    cases = "".join(_number_case(term, *kind) for kind in kinds)
    body = f"substring({term}, 2, length({term}) - 2)"
    return (
        f"CASE WHEN NOT startswith({term}, '\"') THEN {term}"
        f" WHEN endswith({term}, '\"') THEN {_unescaped(body)} {cases}ELSE {term} END"
    )


def field_sql(cell: str, separator: str) -> str:
    """Return SQL for a cell in a line of CSV: quoted where it must be (RFC 4180).

    An empty cell is quoted too, because an empty line would be no row.
    """
    marks = ("'\"'", _sql("\n"), _sql("\r"), _sql(separator))
    special = " OR ".join(f"instr({cell}, {mark}) > 0" for mark in marks)
    doubled = f"concat('\"', replace({cell}, '\"', '\"\"'), '\"')"
    return f"IF({cell} = '' OR {special}, {doubled}, {cell})"


def _number_case(term: str, datatype: str, pattern: str) -> str:
    end = '"^^<' + _XSD + datatype + ">"
    # Sail fails on a negative length, even in a row that another case is for.
    body = f"substring({term}, 2, greatest(length({term}) - {len(end) + 1}, 0))"
    return f"WHEN endswith({term}, {quoted(end)}) AND {_matches(body, pattern)} THEN {body} "


def _unescaped(text: str) -> str:
    """Return SQL for a literal's text without escapes."""
    usual = _replaced(
        text,
        {_BACKSLASH * 2: _STAND_IN, **{escape: char for char, escape in _USUAL.items()}},
    )
    plain = _replaced(usual, {_STAND_IN: _BACKSLASH})
    # At last only the stand-in's own escape has a backslash. It becomes the backslash alone, which
    # then changes places with the stand-ins.
    others = {escape: char for char, escape in _RARE.items() if char != _STAND_IN}
    rare = {**others, _RARE[_STAND_IN]: _BACKSLASH}
    one, other = _sql(_BACKSLASH), _sql(_STAND_IN)
    swapped = f"translate({_replaced(usual, rare)}, concat({one}, {other}), concat({other}, {one}))"
    has_rare = f"regexp_like({text}, {quoted(_ESCAPED_RARE)})"
    return f"IF(instr({text}, {one}) = 0, {text}, IF({has_rare}, {swapped}, {plain}))"


def _replaced(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        text = f"replace({text}, {_sql(old)}, {_sql(new)})"
    return text


def _matches(text: str, pattern: str) -> str:
    # Not `$`, which in Java also matches before a line break at the end.
    whole = rf"\A(?:{pattern})\z"
    return f"regexp_like({text}, {quoted(whole)})"


def _sql(text: str) -> str:
    """Return text as SQL, with control characters by number: not every parser lets them pass."""
    if len(text) == 1 and (text < " " or text == "\x7f"):
        return f"char({ord(text)})"
    return quoted(text)
