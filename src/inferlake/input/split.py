"""Splitting lines of N-Triples and N-Quads into terms, and putting them together again.

A line is split at its first two spaces and its last dot, with hardly a look at what is between:
whether the pieces are terms is asked later, once for each distinct piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inferlake.terms import TermHash, scoped_sql
from inferlake.terms.shape import SCOPE_LENGTH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Subject, space, predicate, space, object, space, dot: anything else stays whole.
_WHOLE_SQL = """NOT coalesce(
    endswith(get(word, 2), ' .') AND startswith(get(word, 1), '<')
    AND (startswith(value, '<') OR startswith(value, '_:'))
    AND is_valid_utf8(value), FALSE)"""

# A last word that looks like a name and has no quote in it is the graph of a quad: inside a
# literal there would be a quote behind it.
_LAST_SQL = "substring_index(tail, ' ', -1)"
_GRAPH_SQL = f"""IF({_LAST_SQL} <> tail AND instr({_LAST_SQL}, '"') = 0
    AND (startswith({_LAST_SQL}, '<') OR startswith({_LAST_SQL}, '_:')), {_LAST_SQL}, NULL)"""
_BEFORE_GRAPH_SQL = "IF(graph IS NULL, tail, left(tail, length(tail) - length(graph) - 1))"


def split_lines(
    lines: DataFrame, hash: TermHash, *, graphs: bool, stored_labels: bool
) -> DataFrame:
    """Return the statements of `lines` as terms and ids, or whole as `rest`, and `blank`."""
    graph, object = (_GRAPH_SQL, _BEFORE_GRAPH_SQL) if graphs else ("STRING(NULL)", "tail")
    s_term, o_term, g_term = (
        scoped_sql(name, "scope", stored_labels=stored_labels)
        for name in ("subject", "object", "graph")
    )
    scoped = {"s_term": s_term, "p_term": "predicate", "o_term": o_term, "g_term": g_term}
    statement = ("file", "scope", "value", "subject", "predicate", "whole")
    return (
        lines.where("value <> '' AND NOT startswith(value, '#')")
        .selectExpr("*", "split(value, ' ', 3) AS word")
        .selectExpr(
            *("file", "scope", "value", f"{_WHOLE_SQL} AS whole"),
            *("get(word, 0) AS subject", "get(word, 1) AS predicate"),
            "left(get(word, 2), length(get(word, 2)) - 2) AS tail",
        )
        .selectExpr(*statement, "tail", f"{graph} AS graph")
        .selectExpr(*statement, "graph", f"{object} AS object")
        .selectExpr(
            "file",
            # Whether a blank node may be in it; footers tell whether any line has one.
            "INT(contains(value, '_:')) AS blank",
            *(f"IF(whole, NULL, {sql}) AS {name}" for name, sql in scoped.items()),
            "IF(whole, value, NULL) AS rest",
        )
        .selectExpr("*", *(f"{hash.sql(f'{c}_term')} AS {c}" for c in "spo"))
    )


def line_sql() -> str:
    """Return SQL for the line that a split row with its `scope` came from.

    Splitting at spaces loses nothing, and a label that is in the scope of its file means the same
    node without it.
    """
    s, o, g = (_unscoped(f"{c}_term") for c in "sog")
    return f"concat({s}, ' ', p_term, ' ', {o}, coalesce(concat(' ', {g}), ''), ' .')"


def _unscoped(term: str) -> str:
    label = f"concat('_:', substring({term}, {SCOPE_LENGTH + 3}))"
    return f"IF(startswith({term}, concat('_:', scope)), {label}, {term})"
