"""Pictures: what they show, and how matplotlib draws them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inferlake.errors import InputError
from inferlake.paths import require_writable

FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Line:
    """A named line, or the bars of one name."""

    name: str
    xs: Sequence[Any]
    ys: Sequence[float]


@dataclass(frozen=True)
class Plot:
    """A picture: lines over an axis, or bars over words, stacked or side by side.

    `name` is the file's, `title` what is shown, and `about` of what.
    """

    name: str
    title: str
    about: str
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
    require_writable(folder, purpose="plots", option="--plot")


def write(plots: Iterable[Plot], folder: Path) -> list[Path]:
    """Write plots into a folder, as PNG and SVG, and return the files."""
    from matplotlib import rc_context  # an optional dependency

    files = []
    for plot in plots:
        figure = drawn(plot)
        for suffix in FORMATS:
            file = folder / f"{plot.name}.{suffix}"
            # Text stays text, and the file small.
            with rc_context({"svg.fonttype": "none"}):
                figure.savefig(file, dpi=120)
            files.append(file)
    return files


def drawn(plot: Plot) -> Any:
    """Return a plot as a figure of matplotlib."""
    from matplotlib.figure import Figure  # as above

    figure: Any = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    {"line": _lines, "stack": _stack, "bars": _bars}[plot.kind](axes, plot)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    axes.set_title(f"{plot.title}\n{plot.about}", fontsize="medium")
    if plot.log:
        axes.set_yscale("log")
    axes.legend(fontsize="small")
    return figure


def _lines(axes: Any, plot: Plot) -> None:
    for line in plot.lines:
        axes.plot(line.xs, line.ys, label=line.name, marker="o", markersize=3)
    # Batches and triples are counted.
    axes.locator_params(axis="x", integer=True)
    if not plot.log:
        axes.set_ylim(bottom=0)  # else what hardly differs looks as if it did


def _stack(axes: Any, plot: Plot) -> None:
    below = [0.0] * len(plot.lines[0].ys)
    for line in plot.lines:
        axes.bar(line.xs, line.ys, bottom=below, label=line.name)
        below = [low + high for low, high in zip(below, line.ys, strict=True)]


def _bars(axes: Any, plot: Plot) -> None:
    width = 0.8 / len(plot.lines)
    for at, line in enumerate(plot.lines):
        shift = (at - (len(plot.lines) - 1) / 2) * width
        axes.bar([x + shift for x in range(len(line.xs))], line.ys, width=width, label=line.name)
    names = plot.lines[0].xs
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
