"""Triples that come as a PySpark DataFrame instead of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferlake.errors import InputError
from inferlake.input.files import InputFile
from inferlake.terms.shape import SCOPE_PATTERN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ("subject", "predicate", "object")

# Stands for the frame in reports and errors. Blank nodes of frames share one scope, and those that
# have one already keep it: what `KnowledgeBase.facts` gave out may come back.
FRAME = InputFile("the DataFrame", "nt", None, 0, 0, scoped=False)
_SHARED_SCOPE = "f0000000000000000_"


def frame_lines(frame: DataFrame) -> DataFrame:
    """Return the triples of `frame` as lines of N-Triples; rows with a null are no triples.

    Raises `InputError` unless it has the columns subject, predicate and object.
    """
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise InputError(
            f"the DataFrame has no column {missing[0]}: it needs subject, predicate and object,"
            " as text in N-Triples form, for example <http://example.org/a>"
        )
    terms = ", ' ', ".join(_scoped(name) for name in COLUMNS)
    # A line break inside a term would be two lines in a file; here it is one bad statement.
    return frame.selectExpr(
        "0 AS file", "'' AS scope", f"coalesce(concat({terms}, ' .'), 'null') AS value"
    )


def _scoped(term: str) -> str:
    shared = f"concat('_:{_SHARED_SCOPE}', substring({term}, 3))"
    bare = f"startswith({term}, '_:') AND NOT regexp_like({term}, '^_:{SCOPE_PATTERN}')"
    return f"IF({bare}, {shared}, {term})"
