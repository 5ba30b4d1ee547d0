"""The command `bench` and what comes after it: measure, record, show."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from inferlake.errors import InputError

if TYPE_CHECKING:
    from inferlake.bench.options import Options
    from inferlake.bench.record import Recording
    from inferlake.cli.app import Settings

# As in `bench.options` and `bench.peers`, which import engines.
_PROFILES = ("rdfs", "rdfs-full", "owl-horst", "owl2rl")
_ALGORITHMS = ("auto", "bf", "dred", "counting", "rebuild")
_PARTS = ("six", "removals", "cliques")

# A steady stream is fed by the second to a store of its own, on an engine that it chooses.
_NOT_WITH_RATES = ("batches", "compact_every", "removals", "verify", "engines")


class Several(click.ParamType):
    """Words or numbers with commas between them, each once; choices in upper or lower case."""

    def __init__(self, *choices: str, number: bool = False) -> None:
        self.choices, self.number = choices, number
        self.name = "|".join(choices) + "[,...]" if choices else "N[,N...]" if number else "NAMES"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name  # as it is written; click would put it in upper case

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        words = tuple(dict.fromkeys(word.strip() for word in value.split(",")))
        if self.choices:
            words = tuple(dict.fromkeys(word.lower() for word in words))
        if not all(words):
            self.fail(f"{value!r}: nothing stands before or after a comma", param, ctx)
        wrong = [word for word in words if self.choices and word not in self.choices]
        if wrong:
            self.fail(f"{wrong[0]!r} is none of {', '.join(self.choices)}", param, ctx)
        if self.number and not all(word.isdecimal() and int(word) for word in words):
            self.fail(f"{value!r}: write numbers from 1 on, such as 1,5,10", param, ctx)
        return tuple(map(int, words)) if self.number else words


def _common(engines: str, profiles: str = "rdfs") -> Callable[..., Any]:
    """Add the options of all benchmarks."""
    options = (
        click.option(
            "--engine",
            "engines",
            type=Several("sail", "spark"),
            help=f"Where to run, one or both.  [default: {engines}]",
        ),
        click.option(
            "--profile",
            type=click.Choice(_PROFILES),
            help=f"The rules to derive by.  [default: {profiles}]",
        ),
        click.option(
            "--repeat",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="Turns; tables then give the median, the least and the most.",
        ),
        click.option(
            "--limit",
            type=click.FloatRange(1),
            default=600,
            show_default=True,
            metavar="SECONDS",
            help="End a case that takes longer.",
        ),
        click.option(
            "--data", "folder", metavar="DIR", help="Where generated data are, or go and stay."
        ),
        click.option("--json", "file", metavar="FILE", help="Record here, after every row."),
        click.option("--plot", metavar="DIR", help="Draw PNG and SVG there; needs matplotlib."),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@click.group("bench")
def bench_group() -> None:
    """Measure loads, closures, updates and streams, beside peers and rebuilds.

    Data are generated. Times depend on the machine: read the ratios of one run.
    """


@bench_group.command()
@click.option(
    "--universities",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="The size of LUBM.",
)
@click.option(
    "--peers", type=Several(), default=(), help="reasonable, maplib, owlrl; with commas between."
)
@click.option("--peer-python", metavar="PYTHON", help="A Python that has the peers; this one.")
@click.option("--startup", is_flag=True, help="Also measure what a command costs at all.")
@_common("sail,spark")
@click.pass_obj
def materialize(settings: Settings, **asked: Any) -> None:
    """From files, and from stored triples, to a committed closure; where the time goes."""
    from inferlake.bench.options import MaterializeOptions

    _run(settings, "materialize", MaterializeOptions, asked)


@bench_group.command()
@click.option(
    "--universities", type=click.IntRange(1), default=5, show_default=True, help="The size of LUBM."
)
@click.option("--algorithms", type=Several(*_ALGORITHMS), help="Which ones.  [default: all]")
@click.option("--parts", type=Several(*_PARTS), help="Which tables.  [default: all]")
@click.option(
    "--updates", metavar="DIR", help="DynamiTE's published updates; by default made alike."
)
@_common("sail", "rdfs, and owl-horst for removals; cliques have rules of their own")
@click.pass_obj
def updates(settings: Settings, **asked: Any) -> None:
    """DynamiTE's six updates, facts removed at random, and cliques; each beside a rebuild."""
    from inferlake.bench.options import UpdatesOptions

    asked["removal_profile"] = asked["profile"]
    _run(settings, "updates", UpdatesOptions, asked)


@bench_group.command()
@click.option(
    "--universities", type=click.IntRange(1), default=5, show_default=True, help="The size of LUBM."
)
@click.option(
    "--batches",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="Pieces of what is not there at first.",
)
@click.option(
    "--compact-every",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Fold small files after so many batches, in both ways; 0 for never.",
)
@click.option("--removals", is_flag=True, help="Take back a tenth of the batch before, too.")
@click.option("--verify", is_flag=True, help="Check what every batch leaves, not just the last.")
@click.option(
    "--rates",
    type=Several(number=True),
    default=(),
    help="Instead: feed a folder at these triples a second, in turn, while the stream keeps up.",
)
@click.option(
    "--seconds",
    type=click.IntRange(4, 900),  # a stream keeps the reports of its last thousand batches
    default=60,
    show_default=True,
    help="How long to feed at each rate.",
)
@_common("sail")
@click.pass_obj
def stream(settings: Settings, **asked: Any) -> None:
    """Batches of data and schema, one after another, repaired and rebuilt; or steady streams."""
    from inferlake.bench.options import StreamOptions

    _check_rates(click.get_current_context(), asked)
    _run(settings, "stream", StreamOptions, asked)


def _check_rates(context: click.Context, asked: dict[str, Any]) -> None:
    """Raise `UsageError` for what --rates would ignore, or could not come to the end of."""
    said = {
        str(option.name): option.opts[0]
        for option in context.command.params
        if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    }
    rates, seconds, limit = asked["rates"], asked["seconds"], asked["limit"]
    if not rates:
        if "seconds" in said:
            raise click.UsageError("--seconds is for each of --rates, and there are none: add them")
        return
    ignored = [said[name] for name in _NOT_WITH_RATES if name in said]
    if ignored:
        raise click.UsageError(f"--rates has no use for {', '.join(ignored)}: leave one or other")
    if len(rates) * seconds >= limit:
        raise click.UsageError(
            f"--seconds {seconds} at each of --rates is {len(rates) * seconds} s in all, and"
            f" --limit {limit:g} ends it before: feed for less long, or allow more"
        )


@bench_group.command()
@click.option(
    "--universities",
    type=Several(number=True),
    default="1,5,10,50,100",
    show_default=True,
    help="Sizes of LUBM.",
)
@click.option("--startup", is_flag=True, help="Also measure what a command costs at all.")
@_common("sail,spark")
@click.pass_obj
def scale(settings: Settings, **asked: Any) -> None:
    """Loads and closures by size: seconds, rates, memory and bytes on disk."""
    from inferlake.bench.options import ScaleOptions

    _run(settings, "scale", ScaleOptions, asked)


@bench_group.command()
@click.argument("file", metavar="FILE.json")
@click.option("--plot", metavar="DIR", help="Draw PNG and SVG there; needs matplotlib.")
@click.pass_obj
def show(settings: Settings, file: str, plot: str | None) -> None:
    """Print the tables of a recording, also of a run that was ended early."""
    from inferlake.bench.drawing import require_folder
    from inferlake.bench.record import read
    from inferlake.bench.run import BENCHMARKS

    recording = read(Path(file))
    if recording.benchmark not in BENCHMARKS:
        raise InputError(
            f"{file}: of a benchmark {recording.benchmark!r}, and this release has"
            f" {', '.join(BENCHMARKS)}; show it by the release that measured it"
        )
    if plot is not None:
        require_folder(Path(plot))
    try:
        _show(settings, recording, plot)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        # Rows are what some other release, or a hand, made them.
        raise InputError(
            f"{file}: has rows that this release cannot show ({exc!r}); show it by the release that"
            f" measured it, {recording.machine['versions'].get('inferlake', 'whichever that was')}"
        ) from exc


def _run(settings: Settings, name: str, options: type[Options], asked: dict[str, Any]) -> None:
    """Run a benchmark with what was asked for, show it, and fail if a case of ours failed."""
    from inferlake.bench.drawing import require_folder
    from inferlake.bench.process import ended_in_order
    from inferlake.bench.run import line_of, run

    plot, file = asked.pop("plot"), asked.pop("file")
    if plot is not None:
        require_folder(Path(plot))  # before any work
    chosen = options.asked(
        before=settings.engine, master=settings.master, conf=settings.conf, **asked
    )
    with ended_in_order():
        recording = run(
            name,
            chosen,
            file=None if file is None else Path(file),
            tell=lambda line: None if settings.quiet else print(line, file=sys.stderr),
        )
    _show(settings, recording, plot)
    for row in recording.failures:
        print(f"failed: {line_of(row)}", file=sys.stderr)
    if recording.failures:
        sys.exit(1)


def _show(settings: Settings, recording: Recording, plot: str | None) -> None:
    from inferlake.bench.plots import draw
    from inferlake.bench.run import shown

    if settings.json:
        settings.say("", recording.as_dict())
    else:
        # Piped, it is Markdown for others to use; a terminal cannot scroll sideways.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(shown(recording, width=width))
    if plot is not None:
        for picture in draw(recording, Path(plot)) or ["nothing: no row has what the plots show"]:
            print(f"drew {picture}", file=sys.stderr)
