"""Parsing with pyoxigraph, inside the engine's Python workers.

Two things come here: files in formats that cannot be split by line, and single lines of N-Triples
or N-Quads that the engine's pattern left undecided. Both come out as canonical terms, or as errors
with their place. Runs on workers: it reads files by address and keeps one record batch in memory.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any
from urllib.parse import quote
from xml.parsers import expat

import pyarrow as pa
import pyoxigraph as ox

from inferlake.input.files import LINE_FORMATS, InputFile

PARSED_SCHEMA = pa.schema(
    [
        ("file", pa.int32()),
        ("s", pa.string()),
        ("p", pa.string()),
        ("o", pa.string()),
        ("g", pa.string()),
        # Set on rows that stand for an error; line and column count from 1 where they are known.
        ("message", pa.string()),
        ("line", pa.int64()),
        ("column", pa.int64()),
        ("text", pa.string()),
    ]
)
PARSED_SQL = (
    "file INT, s STRING, p STRING, o STRING, g STRING,"
    " message STRING, line BIGINT, column BIGINT, text STRING"
)

# A bad statement is shown up to here.
SHOWN_TEXT = 500

_BATCH_ROWS = 50_000
_BLOCK_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_IMPLIES = ox.NamedNode("http://www.w3.org/2000/10/swap/log#implies")
_READ_FAILURES = (OSError, EOFError, ValueError, pa.ArrowException)

_Row = tuple[Any, ...]
_MESSAGE, _COLUMN = (
    PARSED_SCHEMA.get_field_index("message"),
    PARSED_SCHEMA.get_field_index("column"),
)


class Parser:
    """A function for `mapInArrow`, with the files that rows name by number."""

    def __init__(self, files: tuple[InputFile, ...]) -> None:
        self.files = files

    def documents(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Parse each file that a row of `batches` numbers, from its first byte to its last."""
        numbers = (n for batch in batches for n in batch.column("file").to_pylist())
        return _in_batches(row for n in numbers for row in self._document(n))

    def lines(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Parse each row's `line`, a whole statement of its file's format, as raw bytes."""
        for batch in batches:
            pairs = zip(
                batch.column("file").to_pylist(), batch.column("line").to_pylist(), strict=True
            )
            groups = itertools.groupby(pairs, key=lambda pair: pair[0])
            yield from _in_batches(
                row
                for n, group in groups
                for row in self._some_lines(n, [(None, raw) for _, raw in group])
            )

    def _document(self, number: int) -> Iterator[_Row]:
        file = self.files[number]
        with file.open() as stream:
            if file.format in LINE_FORMATS:
                yield from self._all_lines(number, stream)
            elif file.format == "rdf":
                yield from _xml(number, stream, file)
            else:
                try:
                    _skip_mark(stream)
                except _READ_FAILURES as exc:
                    yield _error(number, f"cannot be read: {exc}")
                    return
                yield from _statements(number, stream, file, _Numbered(file.scope))

    def _all_lines(self, number: int, stream: IO[bytes]) -> Iterator[_Row]:
        """Parse a file of lines that the engine cannot read, as it would, a block at a time."""
        line = 0
        while True:
            try:
                block = stream.readlines(_BLOCK_BYTES)
            except _READ_FAILURES as exc:
                yield _error(number, f"cannot be read: {exc}")
                return
            if not block:
                return
            # A lone carriage return ends a line too, as it does for the engines.
            pieces = ((n, piece) for n, raw in enumerate(block, 1) for piece in raw.splitlines())
            yield from self._some_lines(number, [(line + n, piece) for n, piece in pieces])
            line += len(block)

    def _some_lines(self, number: int, lines: list[tuple[int | None, bytes]]) -> list[_Row]:
        """Parse lines together, and one by one only if that fails: a call costs more than a line.

        A bad line gives one row that says so and no statement, whatever the parser made of it.
        """
        file = self.files[number]
        scope = _Labelled(file.scope)
        # Some editors begin a file with this mark, and only some engines take it off.
        lines = [(line, raw.removeprefix(_BYTE_ORDER_MARK)) for line, raw in lines]
        together = list(_statements(number, b"\n".join(raw for _, raw in lines), file, scope))
        if all(row[_MESSAGE] is None for row in together):
            return together
        rows: list[_Row] = []
        for line, raw in lines:
            found = list(_statements(number, raw, file, scope))
            bad = next((row for row in found if row[_MESSAGE] is not None), None)
            if bad is None:
                rows += found
            else:
                text = raw.decode(errors="replace")[:SHOWN_TEXT]
                rows.append(_error(number, bad[_MESSAGE], line, bad[_COLUMN], text))
        return rows


class _Labelled:
    """Names a blank node by its label: lines of one file are parsed apart from each other."""

    def __init__(self, scope: str) -> None:
        self.scope = scope

    def __call__(self, node: ox.BlankNode) -> str:
        return f"_:{self.scope}{node.value}"


class _Numbered:
    """Names blank nodes in the order they appear, since the parser invents labels for `[]`."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.seen: dict[str, int] = {}

    def __call__(self, node: ox.BlankNode) -> str:
        return f"_:{self.scope}b{self.seen.setdefault(node.value, len(self.seen))}"


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


def _statements(number: int, source: Any, file: InputFile, name: Any) -> Iterator[_Row]:
    """Yield a row for each statement and each error of `source`.

    After an error the parser goes on where it can; several errors at one place are told once.
    """
    kind = ox.RdfFormat.from_extension(file.format)
    assert kind is not None, file.format
    base = None if file.format in LINE_FORMATS else _base(file.address)
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
                yield _error(number, _explained(exc), exc.lineno, exc.offset, exc.text)
            previous = place
        except _READ_FAILURES as exc:
            yield _error(number, f"cannot be read: {exc}")
            return
        else:
            if formulas is not None and formulas.opens(quad):
                message = "a formula { ... } of N3 is not RDF; leave it out"
                yield _error(number, message, text=str(quad)[:SHOWN_TEXT])
            elif formulas is not None and formulas.touch(quad):
                continue  # told when the formula began
            elif formulas is not None and quad.predicate == _IMPLIES:
                yield _error(number, "a rule ( => ) of N3 is not RDF; leave it out")
            else:
                yield _row(number, quad, name)


def _xml(number: int, stream: IO[bytes], file: InputFile) -> Iterator[_Row]:
    """Yield the rows of an RDF/XML document, and an error where it is not well-formed XML.

    pyoxigraph takes a document that is cut short for a whole one, and goes on behind a wrong end
    tag as if it were right: what it finds there may hang on the wrong subject.
    """
    checked = _Checked(stream)
    for row in _statements(number, checked, file, _Numbered(file.scope)):
        if row[_MESSAGE] is not None and checked.failure is not None:
            break
        yield row
    failure = checked.failure
    if failure is not None:
        reason = f"not well-formed XML: {expat.ErrorString(failure.code)}"
        yield _error(number, reason, failure.lineno, failure.offset + 1)


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


def _row(number: int, quad: ox.Quad, name: Any) -> _Row:
    terms = (quad.subject, quad.predicate, quad.object)
    if any(isinstance(term, ox.Triple) for term in terms):
        message = "a triple inside a triple (RDF 1.2) is not supported; leave the statement out"
        return _error(number, message, text=str(quad)[:SHOWN_TEXT])
    s, p, o = (name(t) if isinstance(t, ox.BlankNode) else str(t) for t in terms)
    graph = quad.graph_name
    if isinstance(graph, ox.DefaultGraph):
        g = None
    else:
        g = name(graph) if isinstance(graph, ox.BlankNode) else str(graph)
    return (number, s, p, o, g, None, None, None, None)


def _error(
    number: int,
    message: str,
    line: int | None = None,
    column: int | None = None,
    text: str | None = None,
) -> _Row:
    return (number, None, None, None, None, message, line, column, text)


def _explained(exc: SyntaxError) -> str:
    """Return what the parser found wrong, without the place, which has columns of its own."""
    message = re.sub(r"^Parser error [^:]*: ", "", str(exc.msg))
    if "LoadDocumentCallback" in message:
        return "a remote @context is not fetched; write the context itself into the document"
    if message.startswith("variables are not allowed"):
        return "a variable of N3 is not RDF; leave the rule or formula around it out"
    return message


def _skip_mark(stream: io.BufferedReader) -> None:
    """Skip a byte order mark, which the parsers of XML and JSON know and the others do not."""
    if stream.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
        stream.read(len(_BYTE_ORDER_MARK))


def _base(address: str) -> str:
    """Return the IRI that relative references in a document are resolved against."""
    return address if "://" in address else f"file://{quote(address)}"


def _in_batches(rows: Iterable[_Row]) -> Iterator[pa.RecordBatch]:
    remaining = iter(rows)
    while some := list(itertools.islice(remaining, _BATCH_ROWS)):
        columns = zip(*some, strict=True)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, PARSED_SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=PARSED_SCHEMA)
