"""The shape of canonical terms, as SQL that both engines evaluate alike.

The pattern accepts a *subset* of the valid canonical terms: whatever it does not accept is not
wrong, only undecided, and goes to a real parser. So it must never accept a term that the parser
would reject or write differently, and may be as narrow as speed likes.

Java's matcher recurses once for each turn of a repeated group, so long terms are left to the
parser, and character classes come as single characters first, which Java tests with one look-up.
"""

from __future__ import annotations

import string

LONGEST_MATCHED = 2000

_ALNUM = string.ascii_letters + string.digits
_PATH = _ALNUM + "-._~!$&'()*+,;=:@/?"
# ucschar of RFC 3987 in the basic plane; the rare rest goes to the parser.
_UCS = r"\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}"
_QUOTED = "".join(chr(c) for c in range(32, 127) if chr(c) not in '"\\')
_BEYOND_ASCII = r"\x{a0}-\x{d7ff}\x{e000}-\x{fdcf}\x{fdf0}-\x{fffc}\x{10000}-\x{1fffd}"

# A blank node's label is prefixed with the scope of its file: `_:f0123456789abcdef_label`.
SCOPE_PATTERN = "f[0-9a-f]{16}_"
SCOPE_LENGTH = 18
# The scope of labels that mean the same node wherever they come from.
SHARED_SCOPE = "f0000000000000000_"


def _class(characters: str, ranges: str = "") -> str:
    escaped = "".join("\\" + c if c in "\\^-][&~" else c for c in characters)
    return f"[{escaped}{ranges}]"


def _repeated(unit: str, escape: str) -> str:
    """Return `(unit|escape)*`, unrolled so that only escapes cost a turn of a group."""
    return f"{unit}*(?:{escape}{unit}*)*"


def _iri() -> str:
    part = _repeated(_class(_PATH, _UCS), "%[0-9a-fA-F]{2}")
    first = _class(_PATH.replace("/", ""), _UCS)
    authority = f"//{_class(_ALNUM + '._~-')}*(?:[/?]{part})?"
    rootless = f"/?(?:{first}{part})?"
    return f"<[a-zA-Z][a-zA-Z0-9+.\\-]*:(?:{authority}|{rootless})(?:#{part})?>"


def _literal() -> str:
    text = _repeated(_class(_QUOTED, _BEYOND_ASCII), r'\\[tbnrf"\\]')
    language = "@[a-z]{2,3}(?:-[a-z]{4})?(?:-[a-z]{2})?"
    return f'"{text}"(?:{language}|\\^\\^{_iri()})?'


_BLANK = f"_:{SCOPE_PATTERN}[a-zA-Z0-9_](?:[a-zA-Z0-9_.\\-]*[a-zA-Z0-9_\\-])?"

# Not `$`, which in Java also matches before a line separator at the end.
CANONICAL_TERM = f"\\A(?:{_iri()}|{_literal()}|{_BLANK})\\z"

# Literals are not written with these: the first is left out, the others come with a language.
_NOT_WRITTEN = (
    '"^^<http://www.w3.org/2001/XMLSchema#string>',
    '"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>',
    '"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>',
)


def quoted(text: str) -> str:
    """Return `text` as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_canonical_sql(term: str) -> str:
    """Return SQL that is true only if `term` (a SQL expression) is a valid canonical term."""
    unwritten = " OR ".join(f"endswith({term}, {quoted(end)})" for end in _NOT_WRITTEN)
    return (
        f"(octet_length({term}) <= {LONGEST_MATCHED}"
        f" AND regexp_like({term}, {quoted(CANONICAL_TERM)}) AND NOT ({unwritten}))"
    )


def scoped_sql(term: str, scope: str, *, stored_labels: bool = False) -> str:
    """Return SQL for `term` with a blank node's label moved into the scope of its file.

    With `stored_labels`, a label that has a scope already names a stored node, and stays.
    """
    label = f"concat('_:', {scope}, substring({term}, 3))"
    moved = f"startswith({term}, '_:')"
    if stored_labels:
        moved += f" AND NOT regexp_like({term}, '^_:{SCOPE_PATTERN}')"
    return f"IF({moved}, {label}, {term})"
