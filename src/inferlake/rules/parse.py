"""Rule files to programs. Errors name file, line and column, and what to do about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

import pyoxigraph as ox
from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedEOF, UnexpectedInput, VisitError

from inferlake.errors import RuleError
from inferlake.rules.check import complaints
from inferlake.rules.model import (
    KINDS,
    TRIPLE,
    Atom,
    Comparison,
    Kind,
    Program,
    Rule,
    Slot,
    Source,
    Term,
    Test,
    Var,
)

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_TYPE = Term(f"<{PREFIXES['rdf']}type>")
_BOOLEANS = ("true", "false")

# Files of this name have one rule to a line without a dot, and call the relation of triples TE.
VLOG_SUFFIX = ".dlog"
_VLOG_TRIPLE = "TE"


def parse(text: str, file: str = "rules") -> Program:
    """Return the program written in `text`; `file` is its name in errors and reports.

    Raises one `RuleError` for all statements that make no sense, and what is wrong with the others.
    """
    wrong: list[str] = []
    if file.endswith(VLOG_SUFFIX):
        statements = list(_lines(text, file, wrong))
    else:
        statements = list(_parsed("program", text, file, {**PREFIXES}, 1, wrong))
    rules = [found for found in statements if isinstance(found, Rule)]
    schema = [atom for found in statements if isinstance(found, tuple) for atom in found]
    program = Program(tuple(rules), tuple(schema))
    if wrong:
        raise RuleError.of([*wrong, *complaints(program)])
    return program


def _lines(text: str, file: str, wrong: list[str]) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):  # splitlines also breaks inside literals
        words = line.strip()
        if words and not words.startswith(("%", "#", "//")):
            try:
                yield from _parsed("line", line, file, PREFIXES, number, wrong)
            except RuleError as exc:  # go on, to tell of the other lines too
                wrong.append(str(exc))


def _parsed(
    start: str, text: str, file: str, prefixes: dict[str, str], line: int, wrong: list[str]
) -> Iterator[Any]:
    """Yield the statements of a text, and add what is wrong with the others to `wrong`.

    Raises `RuleError` if the text cannot be read as statements at all.
    """
    reader = _Reader(file, prefixes, line)
    try:
        tree = _grammar().parse(text, start=start)
    except UnexpectedInput as exc:
        raise _syntax_error(exc, text, file, line) from None
    for statement in tree.children:
        try:
            yield reader.transform(statement)  # type: ignore[arg-type]  # trees, both
        except VisitError as exc:
            if not isinstance(exc.orig_exc, RuleError):
                raise
            wrong.append(str(exc.orig_exc))  # go on, to tell of the other statements too


@cache
def _grammar() -> Lark:
    text = resources.files("inferlake.rules").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start=["program", "line"], maybe_placeholders=True)


class _Reader(Transformer):
    """Turns the tree of a file into rules, from the leaves up.

    Prefixes are declared before they are used, and leaves are visited in the order of the text.
    """

    def __init__(self, file: str, prefixes: dict[str, str], line: int) -> None:
        super().__init__()
        self._file, self._prefixes, self._offset = file, prefixes, line - 1
        self._fresh = itertools.count()
        self._vlog = file.endswith(VLOG_SUFFIX)

    def prefix(self, found: list[Token]) -> None:
        name, iri = found
        self._prefixes[name[:-1]] = self._iri(iri, iri[1:-1]).text[1:-1]

    def schema(self, atoms: list[tuple[Atom | Kind, Token]]) -> tuple[Atom, ...]:
        self._fresh = itertools.count()
        return self._atoms(atoms, "use it in the body of a rule")

    def rule(self, found: list[Rule]) -> Rule:
        return found[0]

    def rule_body(self, found: list[Any]) -> Rule:
        name, heads, body = found
        body = body or []
        first = heads[0][1]
        # Fresh names begin again: the same rule in two files is one rule.
        self._fresh = itertools.count()
        atoms = tuple(item for item, _ in body if isinstance(item, Atom))
        tests = tuple(item for item, _ in body if isinstance(item, Test))
        label = name or f"line{first.line + self._offset}"
        made = self._atoms(heads, "use it in the body")
        return Rule(label, made, atoms, tests, self._source(first))

    def _atoms(
        self, found: Sequence[tuple[Atom | Kind | None, Token]], remedy: str
    ) -> tuple[Atom, ...]:
        """Return atoms that are stated rather than asked; `false` stands for none."""
        for item, token in found:
            if isinstance(item, Kind):
                raise self._error("R110", token, f"{item.name} is a test; {remedy}")
        return tuple(item for item, _ in found if isinstance(item, Atom))

    def name(self, found: list[Token]) -> str:
        return str(found[0])

    def contradiction(self, found: list[Token]) -> list[Any]:
        return [(None, found[0])]

    heads = body = list

    def triple(self, slots: list[tuple[Slot | str, Token]]) -> tuple[Atom, Token]:
        subject, predicate, object = slots
        if predicate[0] == "a":
            predicate = (_TYPE, predicate[1])
        args = tuple(self._term(slot, token) for slot, token in (subject, predicate, object))
        return Atom(TRIPLE, args), subject[1]

    def relation(self, found: list[Any]) -> tuple[Atom | Kind, Token]:
        name, *slots = found
        args = tuple(self._term(*slot) for slot in slots if slot is not None)
        if name in KINDS:
            if len(args) != KINDS[name]:
                raise self._error("R104", name, f"{name} takes {KINDS[name]} arguments")
            return Kind(str(name), args), name
        triples = name == TRIPLE or (self._vlog and name == _VLOG_TRIPLE)
        return Atom(TRIPLE if triples else str(name), args), found[0]

    def comparison(self, found: list[Any]) -> tuple[Comparison, Token]:
        left, operator, right = found
        test = Comparison(self._term(*left), operator.value, self._term(*right))
        return test, left[1]

    def negation(self, found: list[tuple[Atom, Token]]) -> None:
        raise self._error(
            "R108", found[0][1], "negation is not supported; say what holds, or compare with !="
        )

    def variable(self, found: list[Token]) -> tuple[Slot, Token]:
        return Var(found[0][1:]), found[0]

    def word(self, found: list[Token]) -> tuple[Slot | str, Token]:
        """A bare word: a variable as Datalog has them, a boolean, or `a` for rdf:type."""
        word = found[0]
        if word == "_":
            # No variable that someone writes begins with a digit.
            return Var(str(next(self._fresh))), word
        if word in _BOOLEANS:
            return Term(f'"{word}"^^<{PREFIXES["xsd"]}boolean>'), word
        return (Var(str(word)) if word[0].isupper() else str(word)), word

    def iri(self, found: list[Token]) -> tuple[Slot, Token]:
        return self._iri(found[0], found[0][1:-1]), found[0]

    def prefixed(self, found: list[Token]) -> tuple[Slot, Token]:
        return self._iri(found[0], self._expanded(found[0])), found[0]

    def literal(self, found: list[Token | None]) -> tuple[Slot, Token]:
        text, *kinds = found
        assert text is not None
        kind = next((kind for kind in kinds if kind is not None), None)
        try:
            if kind is None:
                written = ""
            elif kind.type == "LANGUAGE":
                written = str(kind)
            else:
                iri = kind[1:-1] if kind.type == "IRI" else self._expanded(kind)
                written = f"^^<{iri}>"
            # Escapes, language tags and the omitted xsd:string are N-Triples' business.
            line = f"<s:s> <p:p> {text}{written} ."
            quad = next(iter(ox.parse(line, format=ox.RdfFormat.N_TRIPLES)))
            return Term(str(quad.object)), text
        except (ValueError, SyntaxError) as exc:
            raise self._error("R101", text, f"not a literal: {exc}") from exc

    def integer(self, found: list[Token]) -> tuple[Slot, Token]:
        return self._number(found[0], "integer")

    def decimal(self, found: list[Token]) -> tuple[Slot, Token]:
        return self._number(found[0], "decimal")

    def double(self, found: list[Token]) -> tuple[Slot, Token]:
        return self._number(found[0], "double")

    def blank(self, found: list[Token]) -> tuple[Slot, Token]:
        raise self._error(
            "R107", found[0], "a blank node means nothing outside its file; use a variable or IRI"
        )

    def _number(self, token: Token, kind: str) -> tuple[Slot, Token]:
        return Term(f'"{token}"^^<{PREFIXES["xsd"]}{kind}>'), token

    def _expanded(self, token: Token) -> str:
        name, _, local = token.partition(":")
        if name not in self._prefixes:
            raise self._error(
                "R105", token, f"unknown prefix {name}: — declare it: @prefix {name}: <http://…> ."
            )
        return self._prefixes[name] + local

    def _iri(self, token: Token, iri: str) -> Term:
        try:
            return Term(str(ox.NamedNode(iri)))
        except ValueError as exc:
            raise self._error("R101", token, f"not an absolute IRI: {iri}") from exc

    def _term(self, slot: Slot | str, token: Token) -> Slot:
        if isinstance(slot, str):
            raise self._error(
                "R106",
                token,
                f"{slot} is neither a variable nor a term; write ?{slot} for a variable,"
                f' "{slot}" for text, or a prefixed name such as ex:{slot}',
            )
        return slot

    def _source(self, token: Token) -> Source:
        return Source(self._file, (token.line or 1) + self._offset, token.column or 1)

    def _error(self, code: str, token: Token, message: str) -> RuleError:
        return RuleError(f"{code} {self._source(token)}: {message}")


_EXPECTED = {
    "DOT": "a dot at the end of the statement",
    "COMMA": "a comma",
    "RPAR": "a closing parenthesis",
    "RSQB": "a closing bracket",
    "LPAR": "arguments in parentheses",
    "VARIABLE": "a variable such as ?x, or a term",
}


def _syntax_error(exc: UnexpectedInput, text: str, file: str, line: int) -> RuleError:
    accepted = set(getattr(exc, "accepts", None) or getattr(exc, "expected", None) or ())
    accepted |= set(getattr(exc, "allowed", None) or ())
    hopes = [words for name, words in _EXPECTED.items() if name in accepted]
    remedy = f"; expected {' or '.join(hopes)}" if hopes else ""
    ended = isinstance(exc, UnexpectedEOF) or _token_type(exc) == "$END"
    if ended or exc.line < 1:
        at = Source(file, line + text.rstrip().count("\n"), len(text.rstrip().split("\n")[-1]) + 1)
        return RuleError(f"R101 {at}: the file ends in the middle of a statement{remedy}")
    shown = text.split("\n")[exc.line - 1][exc.column - 1 :].split()
    found = f"cannot read {shown[0][:40]!r} here" if shown else "cannot read this"
    return RuleError(f"R101 {Source(file, exc.line + line - 1, exc.column)}: {found}{remedy}")


def _token_type(exc: UnexpectedInput) -> str | None:
    return getattr(getattr(exc, "token", None), "type", None)


__all__ = ["PREFIXES", "VLOG_SUFFIX", "parse"]
