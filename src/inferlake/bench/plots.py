"""Recordings to pictures: what of the tables is better seen than read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inferlake.bench.materialize import PHASES
from inferlake.bench.record import Recording, Row
from inferlake.bench.steady import PART
from inferlake.bench.stream import HOWS
from inferlake.bench.tables import grouped, spread
from inferlake.errors import InputError

FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Line:
    """A named line, or the bars of one name."""

    name: str
    xs: Sequence[Any]
    ys: Sequence[float]


@dataclass(frozen=True)
class Plot:
    """A picture: lines over an axis, or bars over words, stacked or side by side."""

    name: str
    title: str
    x: str
    y: str
    lines: Sequence[Line]
    kind: str = "line"
    log: bool = False


def require_matplotlib() -> None:
    """Raise `InputError`, with the remedy, where nothing can be drawn."""
    if find_spec("matplotlib") is None:
        raise InputError(
            "plots need matplotlib: pip install matplotlib, or inferlake[bench]; without --plot"
            " the tables are printed all the same"
        )


def require_folder(folder: Path) -> None:
    """Raise `InputError` unless plots can be drawn, and drawn there. Makes the folder."""
    require_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        raise InputError(f"{folder}: no folder for plots: {exc.strerror}; name another") from exc


def draw(recording: Recording, folder: Path) -> list[Path]:
    """Write every plot of a recording into `folder`, as PNG and SVG, and return the files."""
    require_folder(folder)
    from matplotlib import rc_context  # type: ignore[import-not-found]  # an optional dependency
    from matplotlib.figure import Figure  # type: ignore[import-not-found]

    files = []
    for plot in plots(recording.benchmark, recording.rows):
        figure: Any = Figure(figsize=(8, 4.5), layout="constrained")
        _fill(figure.subplots(), plot)
        for suffix in FORMATS:
            file = folder / f"{plot.name}.{suffix}"
            # Text stays text, and the file small.
            with rc_context({"svg.fonttype": "none"}):
                figure.savefig(file, dpi=120)
            files.append(file)
    return files


def _fill(axes: Any, plot: Plot) -> None:
    below = None
    for at, line in enumerate(plot.lines):
        if plot.kind == "line":
            axes.plot(line.xs, line.ys, label=line.name, marker="o", markersize=3)
        elif plot.kind == "stack":
            below = below or [0.0] * len(line.ys)
            axes.bar(line.xs, line.ys, bottom=below, label=line.name)
            below = [low + high for low, high in zip(below, line.ys, strict=True)]
        else:
            width = 0.8 / len(plot.lines)
            places = [x + at * width for x in range(len(line.xs))]
            axes.bar(places, line.ys, width=width, label=line.name)
            axes.set_xticks(range(len(line.xs)), line.xs, rotation=30, ha="right")
    axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
    if plot.log:
        axes.set_yscale("log")
    axes.legend(fontsize="small")


def plots(benchmark: str, rows: Sequence[Row]) -> list[Plot]:
    """Return what to draw of a recording; what was not measured is left out."""
    good = [row for row in rows if "error" not in row]
    made = {"materialize": _materialize, "updates": _updates, "stream": _stream, "scale": _scale}
    return [plot for plot in made[benchmark](good) if any(line.ys for line in plot.lines)]


def _median(rows: Sequence[Row], value: Any) -> float:
    found = spread(rows, value)
    return found.median if found else 0.0


def _subject(rows: Sequence[Row]) -> str:
    """Return what rows are about: sizes, profiles and engines, as far as these are told."""
    named = [_told(rows, name) for name in ("universities", "profile", "engine")]
    sizes, profiles, engines = (", ".join(map(str, some)) for some in named)
    words = [f"LUBM({sizes})" if sizes else "", profiles, f"on {engines}" if engines else ""]
    return ", ".join(filter(None, words))


def _told(rows: Sequence[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows if row.get(name) is not None))


def _materialize(rows: Sequence[Row]) -> Iterator[Plot]:
    ours = grouped((row for row in rows if row["part"] in ("stored", "file")), "engine", "part")
    names = [f"{engine}, {part}" for engine, part in ours]
    lines = [
        Line(
            phase,
            names,
            [_median(some, lambda r, p=phase: r["phases"].get(p, 0.0)) for some in ours.values()],
        )
        for phase in PHASES
    ]
    lines.append(Line("other", names, [_median(some, _outside_phases) for some in ours.values()]))
    about = _subject([row for row in rows if row["part"] != "startup"])
    title = f"Where the time goes: {about}"
    yield Plot("phases", title, "", "seconds", lines, "stack")
    systems = grouped((row for row in rows if row["part"] in ("peer", "file")), "engine", "peer")
    whole = [
        _median(some, lambda r: r.get("file_seconds", r.get("seconds")))
        for some in systems.values()
    ]
    words = [engine or peer for engine, peer in systems]
    yield Plot(
        "systems",
        f"From files to the closure: {about}",
        "",
        "seconds",
        [Line("file to closure", words, whole)],
        "bars",
    )


def _outside_phases(row: Row) -> float:
    return max(0.0, row["seconds"] - sum(row["phases"].get(phase, 0.0) for phase in PHASES))


def _updates(rows: Sequence[Row]) -> Iterator[Plot]:
    six = [row for row in rows if row["part"] == "six"]
    for way in ("add", "remove"):
        some = [row for row in six if row["way"] == way]
        names = list(dict.fromkeys(row["update"] for row in some))
        lines = [
            Line(
                algorithm,
                names,
                [_median([r for r in mine if r["update"] == name], "seconds") for name in names],
            )
            for (algorithm,), mine in grouped(some, "algorithm").items()
        ]
        title = f"Six updates, {way}: {_subject(six)}"
        yield Plot(f"six-{way}", title, "", "seconds (log)", lines, "bars", log=True)
    removed = [row for row in rows if row["part"] == "removals"]
    for what, axis in (("seconds", "seconds"), ("examined", "D: facts examined for deletion")):
        lines = [
            Line(algorithm, [r["size"] for r in some], [r[what] for r in some])
            # A rebuild counts nothing.
            for (algorithm,), some in grouped(
                (r for r in removed if what in r), "algorithm"
            ).items()
        ]
        title = f"Facts removed at random: {_subject(removed)}"
        yield Plot(f"removals-{what}", title, "facts removed", axis, lines)


def _stream(rows: Sequence[Row]) -> Iterator[Plot]:
    steady = [row for row in rows if row.get("part") == PART and "batch" in row]
    lags = [
        Line(f"{rate:,} triples/s", range(1, len(some) + 1), [row["lag"] or 0.0 for row in some])
        for (rate,), some in grouped(steady, "rate").items()
    ]
    yield Plot("stream-lags", "A steady stream", "batch", "lag in seconds", lags)
    batches = (row for row in rows if row.get("batch") and "how" in row)
    for (engine,), some in grouped(batches, "engine").items():
        for what, name in (("seconds", "seconds a batch"), ("rows_read", "rows fetched a batch")):
            lines = []
            for how in HOWS:
                batches = grouped((r for r in some if r["how"] == how), "batch")
                lines.append(
                    Line(how, [n for (n,) in batches], [_median(b, what) for b in batches.values()])
                )
            title = f"Batches: {_subject(some)}"
            yield Plot(f"stream-{engine}-{what}", title, "batch", name, lines)
            if what == "seconds":
                sums = [Line(one.name, one.xs, _summed(one.ys)) for one in lines]
                yield Plot(
                    f"stream-{engine}-sum", title, "batch", "seconds of all batches so far", sums
                )


def _summed(values: Sequence[float]) -> list[float]:
    return [sum(values[: at + 1]) for at in range(len(values))]


def _scale(rows: Sequence[Row]) -> Iterator[Plot]:
    sizes = [row for row in rows if row["part"] == "scale"]
    for what, name in (("load_seconds", "load"), ("seconds", "closure")):
        lines = []
        for (engine,), some in grouped(sizes, "engine").items():
            each = grouped(some, "triples")
            rates = [triples / _median(mine, what) for (triples,), mine in each.items()]
            lines.append(Line(engine, [triples for (triples,) in each], rates))
        title = f"LUBM by size, {name}: {', '.join(_told(sizes, 'profile'))}"
        yield Plot(f"scale-{name}", title, "triples", "triples/s", lines)
