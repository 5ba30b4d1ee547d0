"""When what statements say happened: how times travel with them, up to the staged triples.

A time is integer milliseconds since 1970, and stands in the place of a graph, whose name nobody
keeps: `<inferlake:at:1700000000000>`. Lines of a stream get it before they are written to files
(`stamped`), rows of a frame by SQL (`stamp_sql`), and the statements of a file that has one time
for all of them (`InputFile.at`) after they are parsed. What a bad line was before is told from what
became of it (`as_it_came`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from inferlake.errors import InputError
from inferlake.input.locate import Bad
from inferlake.input.patch import statement_spans

_TIME = "<inferlake:at:"
# Behind the time, the graph that a line named: an IRI without its angles, or another name.
_IRI, _NAME = "?", "/"
_STAMP = re.compile(rf" ?{_TIME}(-?\d+)(?:([{_IRI}{_NAME}])([^<>]*))?>")

# Before a statement that is no event, because its time is null. No parser takes it for any other.
TIMELESS = "!t "
_NO_TIME = "no time of the event: it is null"


def time_term(at: int) -> str:
    """Return the graph that stands for a time.

    >>> time_term(1_700_000_000_000)
    '<inferlake:at:1700000000000>'
    """
    return f"{_TIME}{at}>"


def stamp_sql(time: str) -> str:
    """Return SQL for a space and the graph that stands for a time; arguments of `concat`."""
    return f"' {_TIME}', STRING({time}), '>'"


def time_sql(graph: str) -> str:
    """Return SQL for the time that a graph stands for, in milliseconds; null if it is null."""
    ends = f"translate(substring({graph}, {len(_TIME) + 1}), '{_NAME}>', '{_IRI}{_IRI}')"
    return f"BIGINT(substring_index({ends}, '{_IRI}', 1))"


def milliseconds_sql(column: str, kinds: Mapping[str, str]) -> str:
    """Return SQL for a column of times in milliseconds; raise `InputError` if it is none."""
    name = column.replace("`", "``")
    match kinds.get(column):
        case "timestamp":
            return f"unix_millis(`{name}`)"
        case "bigint" | "int":
            return f"BIGINT(`{name}`)"
        case None:
            raise InputError(f"the DataFrame has no column {column}: it is to have events' times")
        case kind:
            raise InputError(
                f"the DataFrame's column {column} is {kind}, not a time: make it a timestamp, or a"
                " bigint of milliseconds since 1970"
            )


def stamped(line: bytes, at: int | None) -> bytes:
    """Return a line of N-Quads or RDF Patch with the time of its event, or marked as without one.

    A line that adds or removes nothing stays what it is: a comment, a prefix, or a bad line. What
    removes needs no time, since it counts when it comes.
    """
    found = statement_spans(line)
    if found is None:
        return line
    line = found.text
    if at is None:
        return line if line.lstrip().startswith(b"D") else TIMELESS.encode() + line
    end, graph = found.end, found.graph
    if graph is None:
        return line[:end] + f" {time_term(at)}".encode() + line[end:]
    start, end = graph
    named = line[start:end]
    said = _IRI.encode() + named[1:-1] if named.startswith(b"<") else _NAME.encode() + named
    return line[:start] + f"{_TIME}{at}".encode() + said + b">" + line[end:]


def as_it_came(bad: Bad) -> Bad:
    """Return a bad line as it was before it got a time, and what is wrong with it."""
    text = bad.text
    if text is None:
        return bad
    if text.startswith(TIMELESS):
        return replace(bad, text=text.removeprefix(TIMELESS), message=_NO_TIME)
    for found in _STAMP.finditer(text):
        before = text[: found.start()] + _graph(found) + text[found.end() :]
        # Who writes such a name himself has his line unchanged.
        if stamped(before.encode(), int(found[1])) == text.encode():
            return replace(bad, text=before)
    return bad


def _graph(stamp: re.Match[str]) -> str:
    """Return what stood in the place of a time, with the space before it."""
    kind, name = stamp[2], stamp[3]
    if kind is None:
        return ""
    space = " " if stamp[0].startswith(" ") else ""
    return space + (f"<{name}>" if kind == _IRI else name)
