"""RDF Patch: lines that add and delete statements, perhaps in transactions.

https://afs.github.io/rdf-delta/rdf-patch.html, with prefixed names, which `PA` declares, besides
full ones. What a line is made of is told by patterns here; what its terms mean, and whether they
are terms, is Turtle's business. Lines outside any transaction count as they stand.

Lines of a stream (the format `LINES`) are the same, and plain statements besides, which are added.
There every line counts when it comes: nobody can wait for the end of a transaction.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyoxigraph as ox

from inferlake.input.blanks import Labelled
from inferlake.input.files import LINES, InputFile
from inferlake.input.rows import (
    BYTE_ORDER_MARK,
    READ_FAILURES,
    Row,
    error,
    explained,
    first_place,
    no_text,
    statement,
)

# So many lines go to the parser at once: a call costs more than a line.
_TOGETHER = 10_000


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


# Where the terms of a line begin and end. Nobody can write two statements, or a part of one, in
# these patterns: that is what lets many lines go to the parser together.
_LETTER = r"""[^\s<>"'#,;()\[\]{}@\\:]"""
_LOCAL = rf"(?:{_LETTER}|:|\\\S)*(?<!\.)"
_NAME = rf"(?:<[^<>\s]*+>|{_LETTER}*+:(?:{_LOCAL})?)"
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_OBJECT = rf"(?:{_NAME}|{_QUOTED}(?:@[\w-]+|\^\^{_NAME})?|[\w.+-]*\w)"
_END = r"\s*\.?\s*(?:#.*)?"

_STATEMENT = rf"(?P<s>{_NAME})\s+(?:{_NAME}|a)\s+(?P<o>{_OBJECT})(?:\s+(?P<g>{_NAME}))?{_END}"
_CHANGE = _compiled(rf"\s*(?P<verb>[AD])\s+{_STATEMENT}")
_PLAIN = _compiled(rf"\s*(?=<|_:){_STATEMENT}")
_PREFIX = r'\s+"?([^\s":<>]*+):?"?'
_PREFIX_ADDED = _compiled(rf'\s*PA{_PREFIX}\s+(?:<([^<>\s]*+)>|"([^"\s]*+)"){_END}')
_PREFIX_DROPPED = _compiled(rf"\s*PD{_PREFIX}{_END}")
_BOUNDARY = _compiled(rf"\s*(TX|TC|TA){_END}")
_IDLE = _compiled(r"\s*(?:(?:H\s|#).*)?")

# Another way to write a blank node, which in a string is just text.
_ANGLED = _compiled(rf"{_QUOTED}|<(_:[^<>\s]*+)>")


def read_patch(number: int, file: InputFile) -> Iterator[Row]:
    """Yield the rows of the patch that has that number among the files.

    Reads it twice: whether a transaction counts is said at its end, which may be far away.
    """
    try:
        boundaries = [
            (line, found[1].decode())
            for line, raw in _lines(file)
            if (found := _BOUNDARY.fullmatch(raw))
        ]
    except READ_FAILURES as exc:
        yield no_text(number, file, exc)
        return
    if file.format == LINES:
        bad, void = [_too_late(number, line) for line, said in boundaries if said == "TA"], {}
    else:
        bad, void = _transactions(number, boundaries)
    yield from bad
    yield from _Patch(number, file).rows(_outside(void, _lines(file)))


def _lines(file: InputFile) -> Iterator[tuple[int, bytes]]:
    with file.open() as stream:
        for line, raw in enumerate(stream, 1):
            text = raw.removeprefix(BYTE_ORDER_MARK) if line == 1 else raw
            yield line, text.rstrip(b"\r\n")


def _transactions(
    number: int, boundaries: Iterable[tuple[int, str]]
) -> tuple[list[Row], dict[int, int]]:
    """Return what is wrong with the boundaries of transactions, and which ones do not count.

    Those that do not are told by their first and their last line.
    """
    bad: list[Row] = []
    void: dict[int, int] = {}
    opened: int | None = None
    for line, boundary in boundaries:
        if boundary == "TX" and opened is None:
            opened = line
        elif boundary == "TX":
            message = f"the transaction at line {opened} is not closed; end it with TC before TX"
            bad.append(error(number, message, line))
        elif opened is None:
            message = f"{boundary} ends no transaction; begin it with TX, or leave this line out"
            bad.append(error(number, message, line))
        else:
            if boundary == "TA":
                void[opened] = line
            opened = None
    if opened is not None:
        message = f"the transaction at line {opened} is not closed; end it with TC, or cancel it"
        bad.append(error(number, f"{message} with TA", opened))
        void[opened] = sys.maxsize
    return bad, void


def _too_late(number: int, line: int) -> Row:
    message = "TA takes nothing back in a stream, where lines count as they come; send what undoes"
    return error(number, f"{message} them instead", line, text="TA .")


def _outside(
    void: dict[int, int], lines: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are in none of the transactions that do not count."""
    last = 0
    for line, raw in lines:
        last = void.get(line, last)
        if line > last:
            yield line, raw


class _Change(NamedTuple):
    """A line that adds or deletes, and what it is in Turtle, with every term where it was."""

    line: int
    raw: bytes
    sign: int
    turtle: bytes
    has_graph: bool


class _Patch:
    """The lines of a patch, with the prefixes declared so far."""

    def __init__(self, number: int, file: InputFile) -> None:
        self.number = number
        self.name = Labelled(file)
        self.takes_plain = file.format == LINES
        self.prefixes: dict[bytes, bytes] = {}

    def rows(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[Row]:
        changes: list[_Change] = []
        for line, raw in lines:
            change = _change(line, raw, plain=self.takes_plain)
            if change is not None:
                changes.append(change)
                if len(changes) < _TOGETHER:
                    continue
            elif _is_idle(raw):
                continue
            yield from self._parsed(changes)
            changes = []
            if change is None:
                yield from self._prefix(line, raw)
        yield from self._parsed(changes)

    def _prefix(self, line: int, raw: bytes) -> Iterator[Row]:
        """Declare a prefix, or drop one, or tell that the line does neither."""
        if added := _PREFIX_ADDED.fullmatch(raw):
            name, iri = added[1], added[2] if added[3] is None else added[3]
            declaration = b"@prefix %b: <%b> .\n" % (name, iri)
            try:
                list(ox.parse(declaration, format=ox.RdfFormat.TURTLE))
            except SyntaxError as exc:
                yield self._bad(line, raw, explained(exc))
            else:
                self.prefixes[name] = declaration
        elif dropped := _PREFIX_DROPPED.fullmatch(raw):
            self.prefixes.pop(dropped[1], None)
        else:
            message = "no line of RDF Patch; write A or D with three or four terms, or PA, PD, TX"
            if self.takes_plain and is_plain(raw):
                yield self._bad(line, raw, *_refusal(raw))
                return
            if self.takes_plain:
                message = f"no statement, and {message}"
            yield self._bad(line, raw, f"{message}, TC, TA, H")

    def _parsed(self, changes: list[_Change]) -> list[Row]:
        """Parse changes together, and one by one only if that fails."""
        try:
            return self._statements(changes)
        except SyntaxError:
            rows: list[Row] = []
        for change in changes:
            try:
                rows += self._statements([change])
            except SyntaxError as exc:
                rows.append(self._bad(change.line, change.raw, explained(exc), exc.offset))
        return rows

    def _statements(self, changes: list[_Change]) -> list[Row]:
        text = b"".join([*self.prefixes.values(), *(change.turtle for change in changes)])
        triples = ox.parse(text, format=ox.RdfFormat.TURTLE)
        rows = []
        for change in changes:
            quad = next(triples)
            if change.has_graph:
                quad = ox.Quad(quad.subject, quad.predicate, quad.object, next(triples).object)
            place = first_place(self.number) + change.line
            rows.append(statement(self.number, quad, self.name, change.sign, place))
        return rows

    def _bad(self, line: int, raw: bytes, message: str, column: int | None = None) -> Row:
        return error(self.number, message, line, column, raw.decode(errors="replace"))


class Spans(NamedTuple):
    """A line that adds or deletes: where its object ends, and where its graph is, if it has one."""

    text: bytes
    end: int
    graph: tuple[int, int] | None


def statement_spans(raw: bytes) -> Spans | None:
    """Return a line of a stream with the places of its terms.

    None for one that adds and deletes nothing, or cannot be read.
    """
    found = _matched(raw, plain=True)
    if found is None:
        return None
    text = found.string if is_plain(raw) else raw

    def span(name: str) -> tuple[int, int]:
        start, end = found.span(name)
        angled = text[end : end + 1] == b">"  # a blank node, matched without its angles
        return start - angled, end + angled

    return Spans(text, span("o")[1], span("g") if found["g"] else None)


def _is_idle(raw: bytes) -> bool:
    """Tell whether the line is empty, a comment or a header, or was read before."""
    return bool(_IDLE.fullmatch(raw) or _BOUNDARY.fullmatch(raw))


def _change(line: int, raw: bytes, *, plain: bool) -> _Change | None:
    found = _matched(raw, plain=plain)
    if found is None:
        return None
    written = found.string
    turtle = b" " * found.start("s") + written[found.start("s") : found.end("o")]
    if found["g"]:
        # The graph becomes a second object, and a comma takes the place of a space before it.
        turtle += b"," + written[found.end("o") + 1 : found.end("g")]
    sign = -1 if found.groupdict().get("verb") == b"D" else 1
    return _Change(line, raw, sign, turtle + b" .\n", bool(found["g"]))


def _matched(raw: bytes, *, plain: bool) -> re.Match[bytes] | None:
    """Find the terms of a line that adds or deletes, with every one where it was.

    A plain statement is N-Quads, and nothing else that Turtle or RDF Patch would let pass: what it
    means must not depend on the lines beside it. If it has no spaces, it gets some.
    """
    if plain and is_plain(raw):
        spaced = _respaced(raw)
        return None if spaced is None else _PLAIN.fullmatch(raw) or _PLAIN.fullmatch(spaced)
    written = _ANGLED.sub(_plain, raw) if b"<_:" in raw else raw
    return _CHANGE.fullmatch(written)


def is_plain(raw: bytes) -> bool:
    """Tell whether a line of a stream is to be a statement by itself."""
    return raw.lstrip().startswith((b"<", b"_:"))


def _respaced(raw: bytes) -> bytes | None:
    """Return a valid line of N-Quads with one space between its terms; None for any other."""
    try:
        quads = list(ox.parse(raw, format=ox.RdfFormat.N_QUADS))
    except (SyntaxError, ValueError):
        return None
    if len(quads) != 1 or isinstance(quads[0].object, ox.Triple):
        return None
    return f"{quads[0]} .".encode()


def _refusal(raw: bytes) -> tuple[str, int | None]:
    """Return what is wrong with a line that is no statement, and in which column."""
    try:
        list(ox.parse(raw, format=ox.RdfFormat.N_QUADS))
    except SyntaxError as exc:
        return explained(exc), exc.offset
    except ValueError as exc:
        return str(exc), None
    return "not one statement of N-Triples or N-Quads", None


def _plain(found: re.Match[bytes]) -> bytes:
    """Return a blank node without its angles, and no other length."""
    return b" %b " % found[1] if found[1] else found[0]
