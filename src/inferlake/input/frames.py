"""Triples that come as a PySpark DataFrame instead of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inferlake.errors import InputError
from inferlake.input.files import InputFile
from inferlake.input.locate import Bad
from inferlake.input.times import TIMELESS, as_it_came, milliseconds_sql, stamp_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("subject", "predicate", "object")

# Stands for the frame in reports and errors. Blank nodes of frames share one scope, and those that
# have one already keep it: what `KnowledgeBase.facts` gave out may come back.
FRAME = InputFile("the DataFrame", "nt", None, 0, 0, scoped=False, stored_labels=True)


# The same with the time of its event in each row.
TIMED = replace(FRAME, format="nq", stamped=True)

_MARK = "! "
_NOT_A_TRIPLE = (
    "not a triple: subject, predicate and object are one term each, in N-Triples form, and none is"
    " null"
)


def frame_error(bad: Bad) -> Bad:
    """Return a bad row of the frame as it was, and what is wrong with it."""
    if bad.text is None or not bad.text.startswith(_MARK):
        return as_it_came(bad)
    return replace(bad, text=bad.text.removeprefix(_MARK), message=_NOT_A_TRIPLE)


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
        time = milliseconds_sql(time_column, kinds)
        terms += f", {stamp_sql(time)}"
    # Text that would be a comment, two lines, or terms of other columns is one bad statement: the
    # mark in front of it lets no parser take it for anything else.
    words = ", ".join(f"coalesce({name}, 'NULL')" for name in COLUMNS)
    shown = f"translate(concat_ws(' ', {words}), '\\n\\r', '  ')"
    bad = f"concat('{_MARK}', {shown})"
    line = f"IF(coalesce({_ONE_STATEMENT}, FALSE), concat({terms}, ' .'), {bad})"
    if time is not None:
        line = f"IF({time} IS NULL, concat('{TIMELESS}', {shown}), {line})"
    return frame.selectExpr("'0' AS file", f"'{FRAME.scope}' AS scope", f"{line} AS value")


# Subject and predicate are one word each, and no term has a line break.
_ONE_STATEMENT = " AND ".join(
    [
        "(startswith(subject, '<') OR startswith(subject, '_:')) AND NOT contains(subject, ' ')",
        "startswith(predicate, '<') AND NOT contains(predicate, ' ') AND object <> ''",
        *(f"NOT contains({name}, '\\{end}')" for name in COLUMNS for end in "nr"),
    ]
)
