"""Recordings to pictures: what of the tables is better seen than read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inferlake.bench.drawing import Line, Plot, require_folder, write
from inferlake.bench.materialize import PHASES, outside_phases
from inferlake.bench.record import Recording, Row
from inferlake.bench.steady import PART
from inferlake.bench.stream import HOWS
from inferlake.bench.tables import grouped, spread


def draw(recording: Recording, folder: Path) -> list[Path]:
    """Write every plot of a recording into `folder`, as PNG and SVG, and return the files."""
    require_folder(folder)
    return write(plots(recording.benchmark, recording.rows), folder)


def plots(benchmark: str, rows: Sequence[Row]) -> list[Plot]:
    """Return what to draw of a recording; what was not measured is left out.

    Numbers are medians of turns. Of several engines each has a line, or a plot with its name.
    """
    good = [row for row in rows if "error" not in row]
    made = {"materialize": _materialize, "updates": _updates, "stream": _stream, "scale": _scale}
    found = [plot for plot in made[benchmark](good) if any(line.ys for line in plot.lines)]
    if len({row.get("turn", 0) for row in good}) > 1:
        return found
    return [
        replace(plot, about=", ".join(filter(None, (plot.about, "one turn")))) for plot in found
    ]


def _median(rows: Sequence[Row], value: Any) -> float:
    found = spread(rows, value)
    return found.median if found else 0.0


def _subject(rows: Sequence[Row], *, profile: bool = True, engine: bool = True) -> str:
    """Return what rows are about: sizes, profiles and engines, as far as these are told."""
    named = [_told(rows, name) for name in ("universities", "profile", "engine")]
    sizes, profiles, engines = (", ".join(map(str, some)) for some in named)
    words = [
        f"LUBM({sizes})" if sizes else "",
        profiles if profile else "",
        f"on {engines}" if engine and engines else "",
    ]
    return ", ".join(filter(None, words))


def _told(rows: Sequence[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows if row.get(name) is not None))


def _materialize(rows: Sequence[Row]) -> Iterator[Plot]:
    measured = [row for row in rows if row["part"] != "startup"]
    # The row of a count of derivations has no phases.
    ours = grouped((row for row in measured if "phases" in row), "engine", "part")
    names = [f"{engine}, {part}" for engine, part in ours]
    lines = [
        Line(
            phase,
            names,
            [_median(some, lambda r, p=phase: r["phases"].get(p, 0.0)) for some in ours.values()],
        )
        for phase in PHASES
    ]
    lines.append(Line("other", names, [_median(some, outside_phases) for some in ours.values()]))
    about = _subject([row for some in ours.values() for row in some])
    yield Plot("phases", "Where the time goes", about, "", "seconds", lines, "stack")
    systems = grouped(measured, "engine", "peer")
    labels = [_system(some[0]) for some in systems.values()]
    lines = [
        Line(name, labels, [_median(some, value) for some in systems.values()])
        for name, value in (("file to closure", _from_files), ("stored to closure", _from_store))
    ]
    # Each under the rules that its label names: a peer does not derive what a profile does.
    about = _subject(measured, profile=False, engine=False)
    yield Plot("systems", "Seconds to the closure", about, "", "seconds", lines, "bars")


def _system(row: Row) -> str:
    if row["part"] == "peer":
        return f"{row['peer']} ({row['derives']}, in memory)"
    return f"{row['engine']} ({row['profile']})"


def _from_files(row: Row) -> float | None:
    return row.get("file_seconds") if row["part"] == "peer" else _seconds_of(row, "file")


def _from_store(row: Row) -> float | None:
    return row.get("closure_seconds") if row["part"] == "peer" else _seconds_of(row, "stored")


def _seconds_of(row: Row, part: str) -> float | None:
    return row.get("seconds") if row["part"] == part else None


def _updates(rows: Sequence[Row]) -> Iterator[Plot]:
    for (part, engine), some in grouped(rows, "part", "engine").items():
        if part == "six":
            yield from _six(engine, some)
        elif part == "removals":
            yield from _removals(engine, some)


def _six(engine: str, rows: Sequence[Row]) -> Iterator[Plot]:
    for (way,), some in grouped(rows, "way").items():
        names = _told(some, "update")
        lines = [
            Line(
                algorithm,
                names,
                [_median([r for r in mine if r["update"] == name], "seconds") for name in names],
            )
            for (algorithm,), mine in grouped(some, "algorithm").items()
        ]
        what = {"add": "additions", "remove": "removals"}[way]
        title = f"Six updates, each applied and then taken back: {what}"
        name, about = f"six-{engine}-{way}", _subject(some)
        yield Plot(name, title, about, "", "seconds (log)", lines, "bars", log=True)


def _removals(engine: str, rows: Sequence[Row]) -> Iterator[Plot]:
    for what, axis in (("seconds", "seconds"), ("examined", "D: facts examined for deletion")):
        lines = []
        # A rebuild counts nothing.
        for (algorithm,), some in grouped((r for r in rows if what in r), "algorithm").items():
            sizes = grouped(some, "size")
            medians = [_median(mine, what) for mine in sizes.values()]
            lines.append(Line(algorithm, [size for (size,) in sizes], medians))
        title = f"Facts removed at random: {what}"
        yield Plot(f"removals-{engine}-{what}", title, _subject(rows), "facts removed", axis, lines)


def _stream(rows: Sequence[Row]) -> Iterator[Plot]:
    yield _lags([row for row in rows if row.get("part") == PART and "batch" in row])
    batches = (row for row in rows if row.get("batch") and "how" in row)
    for (engine,), some in grouped(batches, "engine").items():
        about = _subject(some)
        seconds, fetched = (_by_batch(some, what) for what in ("seconds", "rows_read"))
        sums = [Line(one.name, one.xs, _summed(one.ys)) for one in seconds]
        for name, title, axis, lines in (
            ("seconds", "Seconds a batch", "seconds", seconds),
            ("rows_read", "Rows fetched a batch", "rows", fetched),
            ("sum", "Seconds of all batches so far", "seconds", sums),
        ):
            yield Plot(f"stream-{engine}-{name}", title, about, "batch", axis, lines)


def _lags(rows: Sequence[Row]) -> Plot:
    """Draw a line a turn: two turns do not have the same batches, which are as time cuts them."""
    several = len(_told(rows, "turn")) > 1
    lines = []
    for (rate, turn), some in grouped(rows, "rate", "turn").items():
        name = f"{rate:,} triples/s" + (f", turn {turn + 1}" if several else "")
        lags = [row["lag"] or 0.0 for row in some]
        lines.append(Line(name, range(1, len(some) + 1), lags))
    title = "A steady stream: how far behind the store is"
    return Plot("stream-lags", title, _subject(rows), "batch", "lag in seconds", lines)


def _by_batch(rows: Sequence[Row], what: str) -> list[Line]:
    lines = []
    for how in HOWS:
        batches = grouped((row for row in rows if row["how"] == how), "batch")
        medians = [_median(some, what) for some in batches.values()]
        lines.append(Line(how, [number for (number,) in batches], medians))
    return lines


def _summed(values: Sequence[float]) -> list[float]:
    return [sum(values[: at + 1]) for at in range(len(values))]


def _scale(rows: Sequence[Row]) -> Iterator[Plot]:
    sizes = [row for row in rows if row["part"] == "scale"]
    for what, name, title in (
        ("load_seconds", "load", "Loads by size"),
        ("seconds", "closure", "Closures by size"),
    ):
        lines = []
        for (engine,), some in grouped(sizes, "engine").items():
            each = grouped(some, "triples")
            rates = [triples / _median(mine, what) for (triples,), mine in each.items()]
            lines.append(Line(engine, [triples for (triples,) in each], rates))
        # A load runs without rules.
        about = _subject(sizes, profile=name == "closure", engine=False)
        yield Plot(f"scale-{name}", title, about, "triples", "triples/s", lines)
