"""Parsing with pyoxigraph, inside the engine's Python workers.

Two things come here: files in formats that cannot be split by line, and single lines of N-Triples
or N-Quads that the engine's pattern left undecided. Both come out as canonical terms, or as errors
with their place. Runs on workers: it reads files by address and keeps one record batch in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyoxigraph as ox

from inferlake.input.files import InputFile

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

_BATCH_ROWS = 50_000
_SHOWN_TEXT = 500

_Row = tuple[Any, ...]


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
                row for n, group in groups for row in self._some_lines(n, [raw for _, raw in group])
            )

    def _document(self, number: int) -> Iterator[_Row]:
        file = self.files[number]
        with file.open() as stream:
            yield from _statements(number, stream, file, _Numbered(file.scope))

    def _some_lines(self, number: int, lines: list[bytes]) -> list[_Row]:
        """Parse lines together, and one by one only if that fails: a call costs more than a line."""
        file = self.files[number]
        scope = _Labelled(file.scope)
        together = list(_statements(number, b"\n".join(lines), file, scope))
        if all(row[5] is None for row in together):
            return together
        rows: list[_Row] = []
        for raw in lines:
            for row in _statements(number, raw, file, scope):
                # The line's own number in its file is not known here, and its text is.
                text = raw.decode(errors="replace")[:_SHOWN_TEXT]
                rows.append(row if row[5] is None else (*row[:6], None, row[7], text))
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


def _statements(number: int, source: Any, file: InputFile, name: Any) -> Iterator[_Row]:
    """Yield a row for each statement and each error of `source`.

    After an error the parser goes on where it can; a second error at the same place ends it.
    """
    kind = ox.RdfFormat.from_extension(file.format)
    assert kind is not None, file.format
    base = None if file.format in ("nt", "nq") else _base(file.address)
    statements = ox.parse(source, format=kind, base_iri=base)
    previous: tuple[Any, Any] | None = None
    while True:
        try:
            quad = next(statements)
        except StopIteration:
            return
        except SyntaxError as exc:
            place = (exc.lineno, exc.offset)
            if place == previous:
                return
            previous = place
            message = str(exc.msg).split(": ", 1)[-1]
            yield (number, None, None, None, None, message, exc.lineno, exc.offset, exc.text)
        except (OSError, EOFError, ValueError, pa.ArrowException) as exc:
            yield (number, None, None, None, None, f"cannot be read: {exc}", None, None, None)
            return
        else:
            yield _row(number, quad, name)


def _row(number: int, quad: ox.Quad, name: Any) -> _Row:
    terms = (quad.subject, quad.predicate, quad.object)
    if any(isinstance(term, ox.Triple) for term in terms):
        message = "a triple inside a triple (RDF 1.2) is not supported; leave the statement out"
        return (number, None, None, None, None, message, None, None, str(quad)[:_SHOWN_TEXT])
    s, p, o = (name(t) if isinstance(t, ox.BlankNode) else str(t) for t in terms)
    graph = quad.graph_name
    g = None if isinstance(graph, ox.DefaultGraph) else str(graph)
    return (number, s, p, o, g, None, None, None, None)


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
