"""Input that is small: parsed here on the driver, sooner than an engine would start to read it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from inferlake.input.files import InputFile
from inferlake.input.parse import Parser
from inferlake.input.rows import PARSED_SCHEMA
from inferlake.terms import TermHash

# So many bytes of text parse in some milliseconds; more are worth a job.
_BYTES = 128 * 2**10
_FILES = 64

_TERMS = ("s", "p", "o", "g")
_OTHERS = ("sign", "place", "message", "line", "column", "text")


def is_small(files: Iterable[InputFile]) -> bool:
    """Tell whether files are few and short."""
    some = tuple(files)
    return len(some) <= _FILES and sum(file.text_size for file in some) <= _BYTES


def parsed_here(files: tuple[InputFile, ...], hash: TermHash) -> pa.Table:
    """Return the rows that the parser makes of files, with the ids of their terms."""
    numbers = pa.table({"file": pa.array(range(len(files)), pa.int32())})
    batches = Parser(files).documents(iter(numbers.to_batches()))
    parsed = pa.Table.from_batches(batches, PARSED_SCHEMA)
    columns = {"file": parsed.column("file")}
    columns |= {f"{name}_term": parsed.column(name) for name in _TERMS}
    for name in ("s", "p", "o"):
        ids = [None if term is None else hash.of(term) for term in parsed.column(name).to_pylist()]
        columns[name] = pa.chunked_array([pa.array(ids, pa.int64())])
    columns |= {name: parsed.column(name) for name in _OTHERS}
    return pa.table(columns)


def terms_here(parsed: pa.Table) -> pa.Table:
    """Return the distinct terms of the triples that are added."""
    signs = parsed.column("sign").to_pylist()
    found: dict[tuple[int, str], None] = {}
    for name in ("s", "p", "o"):
        ids, terms = parsed.column(name).to_pylist(), parsed.column(f"{name}_term").to_pylist()
        for id, term, sign in zip(ids, terms, signs, strict=True):
            if term is not None and sign != -1:
                found[id, term] = None
    ids, terms = zip(*found, strict=True) if found else ((), ())
    return pa.table({"id": pa.array(ids, pa.int64()), "term": pa.array(terms, pa.string())})
