"""Times of events, which travel with their statements as the names of graphs."""

from __future__ import annotations

_BEFORE, _BEHIND = "<inferlake:at:", ">"


def time_term(time: int | str) -> str:
    """Return the graph that stands for a time in milliseconds since 1970.

    >>> time_term(1_700_000_000_000)
    '<inferlake:at:1700000000000>'
    """
    return f"{_BEFORE}{time}{_BEHIND}"


def time_term_sql(time: str) -> str:
    """Return SQL for the graph that stands for a time."""
    return f"concat('{_BEFORE}', STRING({time}), '{_BEHIND}')"


def time_sql(graph: str, default: str) -> str:
    """Return SQL for the time that a graph stands for, or the default if it is another's name."""
    start, extra = len(_BEFORE) + 1, len(_BEFORE) + len(_BEHIND)
    digits = f"substring({graph}, {start}, length({graph}) - {extra})"
    # Tried, because the name may go on with what is no number.
    found = f"IF(startswith({graph}, '{_BEFORE}'), TRY_CAST({digits} AS BIGINT), NULL)"
    return f"coalesce({found}, {default})"
