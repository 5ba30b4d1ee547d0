"""Parsing with pyoxigraph, inside the engine's Python workers.

Two things come here: files in formats that cannot be split by line, and single lines of N-Triples
or N-Quads that the engine's pattern left undecided. Both come out as canonical terms, or as errors
with their place. Runs on workers: it reads files by address and keeps one record batch in memory.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from typing import IO, Any
from xml.parsers import expat

import pyarrow as pa
import pyoxigraph as ox

from inferlake.input.blanks import Labelled, Numbered
from inferlake.input.files import LINE_FORMATS, LINES, InputFile
from inferlake.input.patch import read_patch
from inferlake.input.rows import (
    BYTE_ORDER_MARK,
    PARSED_SCHEMA,
    READ_FAILURES,
    SHOWN_TEXT,
    Naming,
    Row,
    error,
    explained,
    first_place,
    in_batches,
    no_text,
    statement,
)
from inferlake.input.sparql import read_update
from inferlake.input.times import time_term

_BLOCK_BYTES = 1 << 20
_IMPLIES = ox.NamedNode("http://www.w3.org/2000/10/swap/log#implies")


class Parser:
    """A function for `mapInArrow`, with the files that rows name by number."""

    def __init__(self, files: tuple[InputFile, ...]) -> None:
        self.files = files

    def documents(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Parse each file that a row of `batches` numbers, from its first byte to its last."""
        numbers = (n for batch in batches for n in batch.column("file").to_pylist())
        return in_batches(row for n in numbers for row in _dated(self.files[n], self._document(n)))

    def lines(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Parse each row's `line`, a whole statement of its file's format, as raw bytes."""
        for batch in batches:
            pairs = zip(
                batch.column("file").to_pylist(), batch.column("line").to_pylist(), strict=True
            )
            groups = itertools.groupby(pairs, key=lambda pair: pair[0])
            yield from in_batches(
                row
                for n, group in groups
                for row in _dated(
                    self.files[n], self.some_lines(n, [(None, raw) for _, raw in group])
                )
            )

    def _document(self, number: int) -> Iterator[Row]:
        file = self.files[number]
        if file.format in ("rdfp", LINES):
            return read_patch(number, file)
        if file.format == "ru":
            return read_update(number, file)
        rows = self._triples(number, file)
        return (_added(row) for row in rows) if file.in_turn else rows

    def _triples(self, number: int, file: InputFile) -> Iterator[Row]:
        with file.open() as stream:
            if file.format in LINE_FORMATS:
                yield from self._all_lines(number, stream)
            elif file.format == "rdf":
                yield from _xml(number, stream, file)
            else:
                try:
                    _skip_mark(stream)
                except READ_FAILURES as exc:
                    yield no_text(number, file, exc)
                    return
                yield from _statements(number, stream, file, Numbered(file))

    def _all_lines(self, number: int, stream: IO[bytes]) -> Iterator[Row]:
        """Parse a file of lines that the engine cannot read, as it would, a block at a time."""
        line = 0
        while True:
            try:
                block = stream.readlines(_BLOCK_BYTES)
            except READ_FAILURES as exc:
                yield no_text(number, self.files[number], exc)
                return
            if not block:
                return
            # A lone carriage return ends a line too, as it does for the engines.
            pieces = ((n, piece) for n, raw in enumerate(block, 1) for piece in raw.splitlines())
            yield from self.some_lines(number, [(line + n, piece) for n, piece in pieces])
            line += len(block)

    def some_lines(self, number: int, lines: list[tuple[int | None, bytes]]) -> list[Row]:
        """Parse lines together, and one by one only if that fails: a call costs more than a line.

        A bad line gives one row that says so and no statement, whatever the parser made of it.
        """
        file = self.files[number]
        scope = Labelled(file)
        # Some editors begin a file with this mark, and only some engines take it off.
        lines = [(line, raw.removeprefix(BYTE_ORDER_MARK)) for line, raw in lines]
        together = list(_statements(number, b"\n".join(raw for _, raw in lines), file, scope))
        if all(row.message is None for row in together):
            return together
        rows: list[Row] = []
        for line, raw in lines:
            found = list(_statements(number, raw, file, scope))
            bad = next((row for row in found if row.message is not None), None)
            if bad is None:
                rows += found
            else:
                text = raw.decode(errors="replace")[:SHOWN_TEXT]
                rows.append(bad._replace(line=line, text=text))
        return rows


def _added(row: Row) -> Row:
    """Return the row of a statement as an addition at its file's turn; an error stays one."""
    return row if row.message else row._replace(sign=1, place=first_place(row.file))


def _dated(file: InputFile, rows: Iterable[Row]) -> Iterable[Row]:
    """Return the rows of a file, with the time of all of it, if it has one."""
    if file.at is None:
        return rows
    time = time_term(file.at)
    return (row if row.message else row._replace(g=time) for row in rows)


class _Formulas:
    """Tells which statements of an N3 document belong to formulas, which RDF does not have."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def opens(self, quad: ox.Quad) -> bool:
        """Tell whether `quad` is the first statement in a formula."""
        new = not isinstance(quad.graph_name, ox.DefaultGraph) and quad.graph_name not in self.seen
        if new:
            self.seen.add(quad.graph_name)
        return new

    def touch(self, quad: ox.Quad) -> bool:
        """Tell whether `quad` is inside a formula seen before, or says something of one."""
        return not self.seen.isdisjoint((quad.graph_name, quad.subject, quad.object))


def _statements(number: int, source: Any, file: InputFile, name: Naming) -> Iterator[Row]:
    """Yield a row for each statement and each error of `source`.

    After an error the parser goes on where it can; several errors at one place are told once.
    """
    kind = ox.RdfFormat.from_extension(file.format)
    assert kind is not None, file.format
    base = None if file.format in LINE_FORMATS else file.base
    statements = ox.parse(source, format=kind, base_iri=base)
    formulas = _Formulas() if file.format == "n3" else None
    previous: tuple[Any, Any] | None = None
    while True:
        try:
            quad = next(statements)
        except StopIteration:
            return
        except SyntaxError as exc:
            place = (exc.lineno, exc.offset)
            if place != previous or exc.lineno is None:
                yield error(number, explained(exc), exc.lineno, exc.offset, exc.text)
            previous = place
        except READ_FAILURES as exc:
            yield no_text(number, file, exc)
            return
        else:
            if formulas is not None and formulas.opens(quad):
                message = "a formula { ... } of N3 is not RDF; leave it out"
                yield error(number, message, text=str(quad))
            elif formulas is not None and formulas.touch(quad):
                continue  # told when the formula began
            elif formulas is not None and quad.predicate == _IMPLIES:
                yield error(number, "a rule ( => ) of N3 is not RDF; leave it out")
            else:
                yield statement(number, quad, name)


def _xml(number: int, stream: IO[bytes], file: InputFile) -> Iterator[Row]:
    """Yield the rows of an RDF/XML document, and an error where it is not well-formed XML.

    pyoxigraph takes a document that is cut short for a whole one, and goes on behind a wrong end
    tag as if it were right: what it finds there may hang on the wrong subject.
    """
    checked = _Checked(stream)
    for row in _statements(number, checked, file, Numbered(file)):
        if row.message is not None and checked.failure is not None:
            break
        yield row
    failure = checked.failure
    if failure is not None:
        reason = f"not well-formed XML: {expat.ErrorString(failure.code)}"
        yield error(number, reason, failure.lineno, failure.offset + 1)


class _Checked:
    """Reads from a stream, and keeps the first thing that is wrong with the XML in it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.failure: expat.ExpatError | None = None
        self.expat = expat.ParserCreate()

    def read(self, size: int = -1) -> bytes:
        block = self.stream.read(size)
        if self.failure is None:
            try:
                self.expat.Parse(block, not block)
            except expat.ExpatError as exc:
                self.failure = exc
        return block


def _skip_mark(stream: io.BufferedReader) -> None:
    """Skip a byte order mark, which the parsers of XML and JSON know and the others do not."""
    if stream.peek(len(BYTE_ORDER_MARK)).startswith(BYTE_ORDER_MARK):
        stream.read(len(BYTE_ORDER_MARK))


__all__ = ["PARSED_SCHEMA", "Parser"]
