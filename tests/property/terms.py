"""Strategies for terms of RDF, right and wrong: what the pattern of `terms.shape` must judge.

Terms are put together from pieces that are mostly harmless and sometimes not, so that most of them
are almost canonical: those are the ones a pattern gets wrong.
"""

from __future__ import annotations

from typing import TypeVar

from hypothesis import given, seed, settings
from hypothesis import strategies as st

T = TypeVar("T")

_CHUNK = 250

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

# The edges of what RFC 3987, XML and Unicode allow here or there.
EDGES = (
    *"\t\n\x0b\x0c\r\x1c\x1f\x7f\x80\x85\x9f\xa0\xad\u0300\u200e\u2028\u2029\u202e\ud7ff",
    *"\ue000\uf8ff\uf900\ufdcf\ufdd0\ufdef\ufdf0\ufeff\uffef\ufff0\ufff9\ufffc\ufffd\ufffe\uffff",
    *"\U00010000\U0001fffd\U0001fffe\U0001ffff\U00020000\U000e0001\U000e1000\U000f0000\U0010ffff",
)

characters = st.characters(exclude_categories=["Cs"])


def pieces(common: str, *rare: str, most: int = 5) -> st.SearchStrategy[str]:
    """Text of mostly `common` characters, with pieces from `rare` and from the edges of Unicode."""
    usual = st.text(st.sampled_from(common), min_size=1, max_size=6)
    unusual = st.sampled_from((*rare, *EDGES)) | characters
    piece = st.integers(0, 5).flatmap(lambda n: unusual if n == 0 else usual)
    return st.lists(piece, max_size=most).map("".join)


PERCENT = ("%20", "%2f", "%C3%A9", "%", "%2", "%zz", "%%41")
NOT_IN_IRIS = (" ", '"', "<", ">", "\\", "^", "`", "{", "|", "}", "\\u0041", "\\u0020", "[", "]")

scheme = st.sampled_from(
    ["http", "https", "urn", "HTTP", "a", "a+b-c.d", "mailto", "file", "tag", "", "1a", "é", "a_b"]
)
host = st.sampled_from(
    (
        *("example.org", "a-b.c_d~e", "é.example", "[::1]", "[::1", "::1]", "[v1.x:y]"),
        *("EXAMPLE.org", "127.0.0.1", "a%20b", "a b", "", "..", "a..b", "xn--bcher-kva"),
    )
)
userinfo = st.sampled_from(["", "", "", "user@", "user:pass@", "@", "us%65r@", "a@b@"])
port = st.sampled_from(["", "", "", ":80", ":", ":99999", ":x", ":-1", ":80:80"])
authority = st.tuples(userinfo, host, port).map("".join)
path = pieces("abz09-._~!$&'()*+,;=:@/é", *PERCENT, *NOT_IN_IRIS, "//", "/../", "/./", "..", "?")
query = st.one_of(st.just(""), path.map("?{}".format))
fragment = st.one_of(st.just(""), path.map("#{}".format), path.map("#{}#".format))
hierarchy = st.one_of(
    st.tuples(st.just("//"), authority, st.sampled_from(["", "/", ""]), path).map("".join),
    path,
    path.map("/{}".format),
)


def _written(parts: tuple[str, str, str, str]) -> str:
    name, rest, asked, part = parts
    return f"<{name}:{rest}{asked}{part}>"


ordinary_iris = st.sampled_from(
    (
        *("<http://example.org/a>", "<http://example.org/ns#p>", "<urn:isbn:0451450523>"),
        *("<mailto:a@example.org>", "<http://example.org>", "<http://example.org/?q=1#x>", "<a:>"),
    )
)
iris = st.one_of(
    ordinary_iris,
    st.tuples(scheme, hierarchy, query, fragment).map(_written),
    st.tuples(scheme, hierarchy, query, fragment).map(_written),
    st.sampled_from(["<>", "<a>", "<#a>", "</a>", "<//a>", "<a:b", "a:b>", "<a:<b>>", "< a:b>"]),
)

ESCAPES = (r"\t", r"\b", r"\n", r"\r", r"\f", r"\"", r"\\", r"\'", r"\u0041", r"\U00000041")
BAD_ESCAPES = (r"\u000B", r"\u007F", r"\uD800", r"\uFFFE", r"\U00110000", r"\u00e9", r"\u00E9")
quoted = pieces("abz 09.,'<>_:@^#|{}é", *ESCAPES, *BAD_ESCAPES, '"', "\\", r"\x", r"\u12", most=8)
languages = st.sampled_from(
    (
        *("en", "de-ch", "zh-hant", "zh-hant-tw", "EN", "en-US", "sr-Latn", "i-klingon", "é"),
        *("en-", "-en", "e", "englishman", "de-1996", "en-x-a", "en--ltr", "en--LTR", "en--", ""),
        *("sl-rozaj-biske", "de-ch-1901", "a-b", "abc-abcd-ab", "abcd", "en-gb-oed", "es-419"),
    )
)
datatypes = st.one_of(
    st.sampled_from([f"<{XSD}{name}>" for name in ("integer", "string", "date", "String")]),
    st.sampled_from([f"<{RDF}{name}>" for name in ("langString", "dirLangString", "HTML")]),
    iris,
)
literals = st.one_of(
    quoted.map('"{}"'.format),
    st.tuples(quoted, languages).map(lambda two: f'"{two[0]}"@{two[1]}'),
    st.tuples(quoted, datatypes).map(lambda two: f'"{two[0]}"^^{two[1]}'),
    st.tuples(quoted, datatypes).map(lambda two: f'"{two[0]}" ^^{two[1]}'),
    quoted.map("'{}'".format),
    quoted.map('"{}'.format),
)

labels = pieces("abz09_", "-", ".", ":", "·", "\u203f", "\u0660", "é", "..", "-.-", most=4)
SCOPE = "f0123456789abcdef_"
blanks = st.one_of(
    labels.map(f"_:{SCOPE}{{}}".format), labels.map("_:{}".format), labels.map("_: {}".format)
)

endings = st.sampled_from(["", "", "", "", "", "", "", "\n", "\r", " ", "\u2028", "\x85", "."])
terms = st.tuples(st.one_of(iris, literals, literals, blanks), endings).map("".join)


def many(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Return about `count` values, the same on every run: a batch for an engine.

    Made in chunks, because what Hypothesis does to avoid repetitions grows with their number.
    """
    found: list[T] = []

    @settings(max_examples=min(count, _CHUNK))
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    for number in range(-(-count // _CHUNK)):
        seed(number)(collect)()
    return found
