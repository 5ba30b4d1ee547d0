"""The rows that parsers on the workers give out: statements in canonical terms, and errors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyoxigraph as ox

from inferlake.input.files import InputFile, require_readable

PARSED_SCHEMA = pa.schema(
    [
        ("file", pa.int32()),
        ("s", pa.string()),
        ("p", pa.string()),
        ("o", pa.string()),
        ("g", pa.string()),
        # Set in files of changes: 1 adds and -1 deletes, and the order in which they stand.
        ("sign", pa.int32()),
        ("place", pa.int64()),
        # Set on rows that stand for an error; line and column count from 1 where they are known.
        ("message", pa.string()),
        ("line", pa.int64()),
        ("column", pa.int64()),
        ("text", pa.string()),
    ]
)
PARSED_SQL = (
    "file INT, s STRING, p STRING, o STRING, g STRING, sign INT, place BIGINT,"
    " message STRING, line BIGINT, column BIGINT, text STRING"
)

# A bad statement is shown up to here.
SHOWN_TEXT = 500

# Some editors begin a file with this.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# What opening and reading a file may raise: it is missing, cut short, or not what its suffix says.
READ_FAILURES = (OSError, EOFError, ValueError, pa.ArrowException)

_BATCH_ROWS = 50_000
# No file has more statements than this: the places of files come one after the other.
_PLACES_A_FILE = 1 << 40

# What a blank node of a file is called in the store.
Naming = Callable[[ox.BlankNode], str]


class Row(NamedTuple):
    """A statement, or what is wrong with one, in the columns of `PARSED_SCHEMA`."""

    file: int
    s: str | None = None
    p: str | None = None
    o: str | None = None
    g: str | None = None
    sign: int | None = None
    place: int | None = None
    message: str | None = None
    line: int | None = None
    column: int | None = None
    text: str | None = None


def statement(
    number: int, quad: ox.Quad, name: Naming, sign: int | None = None, place: int | None = None
) -> Row:
    """Return the row of a statement in the file of that number, or of the error that it is."""
    terms = (quad.subject, quad.predicate, quad.object)
    if any(isinstance(term, ox.Triple) for term in terms):
        message = "a triple inside a triple (RDF 1.2) is not supported; leave the statement out"
        return error(number, message, text=str(quad))
    s, p, o = (name(t) if isinstance(t, ox.BlankNode) else str(t) for t in terms)
    graph = quad.graph_name
    if isinstance(graph, ox.DefaultGraph):
        g = None
    else:
        g = name(graph) if isinstance(graph, ox.BlankNode) else str(graph)
    return Row(number, s, p, o, g, sign, place)


def error(
    number: int,
    message: str,
    line: int | None = None,
    column: int | None = None,
    text: str | None = None,
) -> Row:
    """Return the row that says what is wrong in the file of that number, and where."""
    shown = None if text is None else text[:SHOWN_TEXT]
    return Row(number, message=message, line=line, column=column, text=shown)


def no_text(number: int, file: InputFile, exc: Exception) -> Row:
    """Return the row of a file that was given up where it is no text. Reads it once more.

    Raises `InputError` if it cannot be read to its end: what is lost of it may be any number of
    statements, so it is no bad one that could be skipped.
    """
    require_readable(file)
    return error(number, f"cannot be read: {exc}")


def explained(exc: SyntaxError) -> str:
    """Return what the parser found wrong, without the place, which has columns of its own."""
    message = re.sub(r"^Parser error [^:]*: ", "", str(exc.msg))
    if "LoadDocumentCallback" in message:
        return "a remote @context is not fetched; write the context itself into the document"
    if message.startswith("variables are not allowed"):
        return "a variable of N3 is not RDF; leave the rule or formula around it out"
    return message


def first_place(number: int) -> int:
    """Return the place before the first statement of a file; those of `add` and `remove` are less.

    >>> 1 < first_place(0) < first_place(1)
    True
    """
    return (number + 1) * _PLACES_A_FILE


def in_batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yield the rows as record batches, with one of them in memory at a time."""
    remaining = iter(rows)
    while some := list(itertools.islice(remaining, _BATCH_ROWS)):
        columns = zip(*some, strict=True)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, PARSED_SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=PARSED_SCHEMA)
