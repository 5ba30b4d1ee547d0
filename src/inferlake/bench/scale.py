"""How loads and closures grow: LUBM of several sizes, on each engine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from inferlake.bench import startup
from inferlake.bench.materialize import published
from inferlake.bench.options import ScaleOptions
from inferlake.bench.process import Case, measured
from inferlake.bench.record import Row
from inferlake.bench.tables import Table, error_of, grouped, ratio, spread


def count(options: ScaleOptions, turn: int) -> int:
    """Return how many rows a turn has, unless something fails."""
    began = startup.count(options.engines) if options.startup else 0
    return len(options.universities) * len(options.engines) + began


def rows(options: ScaleOptions, turn: int) -> Generator[Row]:
    """Yield a load and a closure for each size and engine, in one turn."""
    for size in options.universities:
        for engine in options.engines:
            named = {"engine": engine, "profile": options.profile}
            given = {"files": options.data.files(size), "count": False, **options.engine}
            case = Case("materialize.stored_closure", named, given)
            for row in measured(case, limit=options.limit):
                yield {"part": "scale", "universities": size, **named, **row}
    if options.startup:
        for case in startup.cases(options.engines):
            for row in measured(case, limit=options.limit):
                yield {**case.named, **row}


def tables(found: Sequence[Row]) -> list[Table]:
    """Return seconds, rates, memory and disk by size, and each engine beside the other."""
    began = [row for row in found if row.get("part") == "startup"]
    sizes = grouped((row for row in found if row["part"] == "scale"), "universities", "engine")
    lines = [_line(size, engine, some, sizes) for (size, engine), some in sizes.items()]
    profile = next((row["profile"] for row in found if "profile" in row), "")
    table = Table(
        f"LUBM by size, profile {profile}",
        (
            "universities",
            "engine",
            "triples",
            "load: s",
            "load: times",
            "load: /s",
            "load: MB",
            "closure: s",
            "closure: times",
            "closure: /s",
            "closure: MB",
            "rounds",
            "derived",
            "rows read",
            "bytes/fact",
            "problem",
        ),
        lines,
        (
            "A load is from files to a committed version without rules; the closure from there to"
            " committed inferences. Times: as long as on the quicker engine. /s: triples of input a"
            " second. MB: the peak of memory. Bytes on disk are of both tables, terms too, by fact"
            " asserted or derived.",
        ),
        keys=2,
    )
    return [table, published()] + ([startup.table(began)] if began else [])


def _line(
    size: int, engine: str, some: Sequence[Row], sizes: dict[tuple[Any, ...], list[Row]]
) -> list[Any]:
    load, closure = spread(some, "load_seconds"), spread(some, "seconds")
    good = next((row for row in some if "error" not in row), {})
    others = [
        (spread(rows, "load_seconds"), spread(rows, "seconds"))
        for (n, _), rows in sizes.items()
        if n == size
    ]
    least = [
        min((one for one in column if one), key=lambda one: one.median, default=None)
        for column in zip(*others, strict=True)
    ]
    triples = good.get("triples")
    return [
        size,
        engine,
        triples,
        load,
        ratio(load, least[0]),
        round(triples / load.median) if triples and load else None,
        good.get("load_mb"),
        closure,
        ratio(closure, least[1]),
        round(triples / closure.median) if triples and closure else None,
        good.get("peak_mb"),
        good.get("rounds"),
        good.get("derived"),
        good.get("rows_read"),
        round(good["bytes"] / good["closure"], 1) if good.get("closure") else None,
        error_of(some),
    ]
