"""SPARQL Update, as far as it is data: INSERT DATA and DELETE DATA.

A grammar finds the operations and their braces, and TriG reads what is inside. An operation is one
statement: if a part of it is bad, none of it counts. The file is in memory as a whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import pyoxigraph as ox
from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from inferlake.input.blanks import Numbered
from inferlake.input.files import InputFile
from inferlake.input.rows import (
    READ_FAILURES,
    Row,
    error,
    explained,
    first_place,
    no_text,
    statement,
)

_SIGNS = {"INSERT": 1, "DELETE": -1}


def read_update(number: int, file: InputFile) -> Iterator[Row]:
    """Yield the rows of the update that has that number among the files."""
    try:
        with file.open() as stream:
            text = stream.read().decode("utf-8-sig")
    except READ_FAILURES as exc:
        yield no_text(number, file, exc)
        return
    try:
        request = _grammar().parse(text)
    except UnexpectedInput as exc:
        yield _unexpected(number, text, exc)
        return
    yield from _Update(number, file, text).rows(request)


@cache
def _grammar() -> Lark:
    text = resources.files("inferlake.input").joinpath("sparql.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start="request")


def _unexpected(number: int, text: str, exc: UnexpectedInput) -> Row:
    if isinstance(exc, UnexpectedToken) and exc.token.type == "$END":
        lines = text.rstrip().split("\n")
        line, column, found = len(lines), len(lines[-1]) + 1, "the file ends in an operation"
    else:
        word = text[exc.pos_in_stream :].split(maxsplit=1)[0]
        line, column, found = exc.line, exc.column, f"cannot read {word[:40]!r} here"
    message = f"{found}; only INSERT DATA {{ ... }} and DELETE DATA {{ ... }} are read"
    return error(number, message, line, column)


class _Bad(Exception):
    """What is wrong with an operation, and where."""

    def __init__(self, message: str, line: int | None, column: int | None) -> None:
        super().__init__(message)
        self.place = (line, column)


class _Update:
    """The operations of an update, with the prefixes and the base declared so far."""

    def __init__(self, number: int, file: InputFile, text: str) -> None:
        self.number = number
        self.base = file.base
        self.text = text
        self.prologue = ""
        self.name = Numbered(file)
        self.places = itertools.count(first_place(number))

    def rows(self, request: Any) -> Iterator[Row]:
        for part in request.children:
            try:
                if part.data == "declaration":
                    self._declare(part.children)
                else:
                    yield from self._operation(*part.children)
            except _Bad as exc:
                yield error(self.number, str(exc), *exc.place)

    def _declare(self, words: list[Token]) -> None:
        self._parsed(words[0], words[-1])
        # On one line, so that only the first line of what comes behind it is moved.
        self.prologue += " ".join(words) + " "

    def _operation(self, verb: Token, *parts: Any) -> list[Row]:
        quads = [quad for part in parts for quad in self._quads(part)]
        if verb.type == "DELETE":
            _check_named(quads, verb)
        number, name, sign = self.number, self.name, _SIGNS[verb.type]
        return [statement(number, quad, name, sign, next(self.places)) for quad in quads]

    def _quads(self, part: Any) -> list[ox.Quad]:
        """Parse the triples in braces, or a graph with a name and braces of its own."""
        if isinstance(part, Token):
            # The last line may be a comment, and the last dot may be missing.
            return self._parsed(part, part, "{", "\n}")
        return self._parsed(part.children[0], part.children[-1])

    def _parsed(
        self, first: Token, last: Token, opening: str = "", closing: str = ""
    ) -> list[ox.Quad]:
        """Parse the text from one token to another as TriG, with what makes it a document."""
        before = self.prologue + opening
        written = self.text[first.start_pos : last.end_pos]
        source = f"{before}{written}{closing}"
        try:
            return list(ox.parse(source, format=ox.RdfFormat.TRIG, base_iri=self.base))
        except SyntaxError as exc:
            line, column = exc.lineno or 1, exc.offset or 1
            if line == 1:
                column += (first.column or 1) - 1 - len(before)
            elif line > written.count("\n") + 1:
                raise _Bad(explained(exc), last.end_line, last.end_column) from None
            raise _Bad(explained(exc), line + (first.line or 1) - 1, column) from None


def _check_named(quads: list[ox.Quad], verb: Token) -> None:
    for quad in quads:
        if any(isinstance(term, ox.BlankNode) for term in quad):
            message = (
                "DELETE DATA cannot name a blank node; delete it with an RDF Patch (.rdfp) or"
                " --remove, by the label that the store gave it"
            )
            raise _Bad(message, verb.line, verb.column)
