"""Triples that come as a PySpark DataFrame instead of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from inferlake.errors import InputError
from inferlake.input.files import InputFile
from inferlake.input.times import time_term_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("subject", "predicate", "object")

# Stands for the frame in reports and errors. Blank nodes of frames share one scope, and those that
# have one already keep it: what `KnowledgeBase.facts` gave out may come back.
FRAME = InputFile("the DataFrame", "nt", None, 0, 0, scoped=False, stored_labels=True)


# The same with the time of its event in each row, which travels as the graph of a quad.
TIMED = replace(FRAME, format="nq")

_MARK = "! "
_TIMELESS = "!t "
_NOT_A_TRIPLE = (
    "not a triple: subject, predicate and object are one term each, in N-Triples form, and none is"
    " null"
)


def frame_error(text: str | None, message: str) -> tuple[str | None, str]:
    """Return a bad row of the frame as it was, and what is wrong with it."""
    if text is not None and text.startswith(_TIMELESS):
        return text.removeprefix(_TIMELESS), "no time of the event: it is null"
    if text is None or not text.startswith(_MARK):
        return text, message
    return text.removeprefix(_MARK), _NOT_A_TRIPLE


def frame_lines(frame: DataFrame, time_column: str | None = None) -> DataFrame:
    """Return the triples of `frame` as lines of N-Triples; rows with a null are bad statements.

    With a `time_column`, as lines of N-Quads whose graphs stand for times. Raises `InputError`
    unless it has the columns subject, predicate and object, and that one.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(
            f"the DataFrame has no column {missing[0]}: it needs subject, predicate and object,"
            " as text in N-Triples form, for example <http://example.org/a>"
        )
    kinds = dict(frame.dtypes)
    for name in COLUMNS:
        if kinds[name] != "string":
            raise InputError(
                f"the DataFrame's column {name} is {kinds[name]}, not text: write terms in"
                ' N-Triples form, for example "5"^^<http://www.w3.org/2001/XMLSchema#integer>'
            )
    terms, time = ", ' ', ".join(COLUMNS), None
    if time_column is not None:
        time = _milliseconds(time_column, kinds)
        terms += f", ' ', {time_term_sql(time)}"
    # Text that would be a comment, two lines, or terms of other columns is one bad statement: the
    # mark in front of it lets no parser take it for anything else.
    words = ", ".join(f"coalesce({name}, 'NULL')" for name in COLUMNS)
    shown = f"translate(concat_ws(' ', {words}), '\\n\\r', '  ')"
    bad = f"concat('{_MARK}', {shown})"
    line = f"IF(coalesce({_ONE_STATEMENT}, FALSE), concat({terms}, ' .'), {bad})"
    if time is not None:
        line = f"IF({time} IS NULL, concat('{_TIMELESS}', {shown}), {line})"
    return frame.selectExpr("0 AS file", f"'{FRAME.scope}' AS scope", f"{line} AS value")


def _milliseconds(column: str, kinds: Mapping[str, str]) -> str:
    """Return SQL for a column of times in milliseconds."""
    match kinds.get(column):
        case "timestamp":
            return f"unix_millis(`{column}`)"
        case "bigint" | "int":
            return f"BIGINT(`{column}`)"
        case None:
            raise InputError(f"the DataFrame has no column {column}: it is to have events' times")
        case kind:
            raise InputError(
                f"the DataFrame's column {column} is {kind}, not a time: make it a timestamp, or a"
                " bigint of milliseconds since 1970"
            )


# Subject and predicate are one word each, and no term has a line break.
_ONE_STATEMENT = " AND ".join(
    [
        "(startswith(subject, '<') OR startswith(subject, '_:')) AND instr(subject, ' ') = 0",
        "startswith(predicate, '<') AND instr(predicate, ' ') = 0 AND object <> ''",
        *(f"instr({name}, '\\{end}') = 0" for name in COLUMNS for end in "nr"),
    ]
)
