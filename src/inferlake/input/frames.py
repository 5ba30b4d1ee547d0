"""Triples that come as a PySpark DataFrame instead of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferlake.errors import InputError
from inferlake.input.files import InputFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("subject", "predicate", "object")

# Stands for the frame in reports and errors. Blank nodes of frames share one scope, and those that
# have one already keep it: what `KnowledgeBase.facts` gave out may come back.
FRAME = InputFile("the DataFrame", "nt", None, 0, 0, scoped=False, stored_labels=True)


def frame_lines(frame: DataFrame) -> DataFrame:
    """Return the triples of `frame` as lines of N-Triples; rows with a null are bad statements.

    Raises `InputError` unless it has the columns subject, predicate and object.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(
            f"the DataFrame has no column {missing[0]}: it needs subject, predicate and object,"
            " as text in N-Triples form, for example <http://example.org/a>"
        )
    terms = ", ' ', ".join(COLUMNS)
    # Text that would be a comment, two lines, or terms of other columns is one bad statement: the
    # mark in front of it lets no parser take it for anything else.
    shown = "translate(concat_ws(' ', subject, predicate, object), '\\n\\r', '  ')"
    line = f"IF(coalesce({_ONE_STATEMENT}, FALSE), concat({terms}, ' .'), concat('! ', {shown}))"
    return frame.selectExpr("0 AS file", f"'{FRAME.scope}' AS scope", f"{line} AS value")


# Subject and predicate are one word each, and no term has a line break.
_ONE_STATEMENT = " AND ".join(
    [
        "(startswith(subject, '<') OR startswith(subject, '_:')) AND instr(subject, ' ') = 0",
        "startswith(predicate, '<') AND instr(predicate, ' ') = 0 AND object <> ''",
        *(f"instr({name}, '\\{end}') = 0" for name in COLUMNS for end in "nr"),
    ]
)
