"""What the updates showed, beside a rebuild and beside what others published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inferlake.bench.published import ELSEWHERE, REMOVALS, UPDATES
from inferlake.bench.record import Row
from inferlake.bench.tables import Table, error_of, grouped, ratio, shown, spread

_COUNTS = ("changed", "derived", "withdrawn", "checked", "examined", "derivations", "rounds")

_QUICKER = (
    "DynamiTE has DRed and counting for removals: beside another algorithm of ours stands the"
    " quicker of these."
)

_WHAT = (
    "C are the facts checked for a proof, D those examined for deletion; derivations are rule"
    " instances, backward, forward and in deletion. A rebuild counts none of these. `right` says"
    " that the store then equals what deriving everything again gives."
)

_LANDMARKS = "DynamiTE is on LUBM(1000), Timely on LUBM(50), in memory."

_ONE_UNIVERSITY = "There is no line of remove_2universities: LUBM(1) has no two universities."


def tables(found: Sequence[Row]) -> list[Table]:
    """Return a table for each engine and part that was measured."""
    made = []
    for (part, engine), some in grouped(found, "part", "engine").items():
        make = {"six": _six, "removals": _removals, "cliques": _removals}[part]
        made += make(engine, some)
    return made


def _six(engine: str, found: Sequence[Row]) -> list[Table]:
    changes = grouped(found, "update", "way", "algorithm")
    rebuilds = {
        (update, way): spread(some, "seconds")
        for (update, way, algorithm), some in changes.items()
        if algorithm == "rebuild"
    }
    lines = []
    for (update, way, algorithm), some in changes.items():
        took, first = spread(some, "seconds"), some[0]
        lines.append(
            [
                update or "",
                way or "",
                _by(algorithm, some),
                took,
                ratio(rebuilds.get((update, way)), took),
                *(first.get(name) for name in _COUNTS),
                _of(first, "files"),
                _of(first, "rows"),
                _right(some),
                *_published(update, way, algorithm),
                error_of(some),
            ]
        )
    first = found[0]
    missing = [_ONE_UNIVERSITY] if first["universities"] < 2 else []
    return [
        Table(
            f"DynamiTE's six updates on LUBM({first['universities']}), {first['profile']},"
            f" on {engine}",
            (
                "update",
                "way",
                "by",
                "seconds",
                "rebuild / it",
                "changed",
                "derived",
                "withdrawn",
                "C",
                "D",
                "derivations",
                "rounds",
                "files read",
                "rows read",
                "right",
                "DynamiTE: s",
                "Timely: s",
                "problem",
            ),
            lines,
            (*missing, _WHAT, f"{_LANDMARKS} {ELSEWHERE}", _QUICKER),
            keys=3,
        )
    ]


def _of(row: Row, what: str) -> str:
    read, stored = row.get(f"{what}_read"), row.get(f"{what}_stored")
    return "" if read is None else f"{shown(read)} of {shown(stored)}"


def _by(asked: str | None, some: Sequence[Row]) -> str:
    """Return the algorithm, and what `auto` turned out to be: why so, where it is a rebuild.

    For a rebuild may have been chosen at once, or after a repair that was given up.
    """
    done = " or ".join(dict.fromkeys(filter(None, map(_done, some))))
    return f"auto: {done}" if asked == "auto" and done else asked or ""


def _done(row: Row) -> str:
    by, reason = row.get("done_by", ""), row.get("reason")
    return f"{by} ({reason})" if by == "rebuild" and reason else by


def _right(some: Sequence[Row]) -> bool | None:
    told = [row["right"] for row in some if "right" in row]
    return all(told) if told else None


def _published(update: str | None, way: str, algorithm: str) -> list[float | str | None]:
    """Return DynamiTE's and Timely's seconds for the same kind of update, where there are some."""
    landmark = UPDATES.get((update or "").partition("_")[2])
    if landmark is None or algorithm == "rebuild":
        return [None, None]
    if way == "add":
        return [landmark.add, landmark.timely_add]
    theirs = {"dred": landmark.remove_dred, "counting": landmark.remove_counting}
    quicker = min((one for one in theirs.values() if one is not None), default=None)
    return [theirs.get(algorithm, quicker), landmark.timely_remove]


def _removals(engine: str, found: Sequence[Row]) -> list[Table]:
    by_size = grouped(found, "size", "algorithm")
    lines = []
    for (size, algorithm), some in by_size.items():
        took, first = spread(some, "seconds"), some[0]
        again = spread(by_size.get((size, "rebuild"), []), "seconds")
        lines.append(
            [
                size,
                _by(algorithm, some),
                first.get("withdrawn"),
                took,
                ratio(again, took),
                first.get("checked"),
                first.get("examined"),
                first.get("backward"),
                first.get("forward"),
                first.get("deletion"),
                first.get("derivations"),
                first.get("rounds"),
                _of(first, "rows"),
                _right(some),
                error_of(some),
            ]
        )
    columns = (
        "removed",
        "by",
        "withdrawn",
        "seconds",
        "rebuild / it",
        "C",
        "D",
        "backward",
        "forward",
        "deletion",
        "derivations",
        "rounds",
        "rows read",
        "right",
        "problem",
    )
    first = found[0]
    title = f"Facts removed at random, on {engine}"
    if first["part"] == "cliques":
        title = f"Links removed from cliques, on {engine}"
    else:
        title += f": LUBM({first['universities']}), {first['profile']}"
    if "asserted" in first:
        title += f", E = {first['asserted']:,}, I = {first['implied']:,}"
    ours = Table(title, columns, lines, (_WHAT,), keys=2)
    return [ours] if first["part"] == "cliques" else [ours, _paper()]


def _paper() -> Table:
    lines: list[list[Any]] = [list(one) for one in REMOVALS]
    return Table(
        "Published: Backward/Forward (AAAI 2015), Table 2",
        (
            "data",
            "E-",
            "implied gone",
            "rebuild: s",
            "DRed: s",
            "DRed D",
            "DRed derivations",
            "B/F: s",
            "B/F C",
            "B/F derivations",
        ),
        lines,
        (ELSEWHERE,),
    )
