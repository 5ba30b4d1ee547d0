"""The benchmarks by name, and the loop over their turns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inferlake.bench import materialize, scale, stream, updates
from inferlake.bench.options import Options, StreamOptions
from inferlake.bench.record import Recording, Row, is_wrong
from inferlake.bench.tables import Table
from inferlake.engines.machine import require_java
from inferlake.errors import JavaMissing
from inferlake.progress import counted


@dataclass(frozen=True)
class Benchmark:
    """How to measure one turn, row by row, and what to show of the rows of all turns."""

    rows: Callable[[Any, int], Generator[Row]]
    tables: Callable[[Any], list[Table]]
    # How many rows a turn has, if all goes well; 0 if nobody can tell.
    count: Callable[[Any, int], int] = lambda options, turn: 0
    # Raises `InputError` for options that cannot be met, before anything is made or measured.
    check: Callable[[Any], None] = lambda options: None


BENCHMARKS = {
    "materialize": Benchmark(
        materialize.rows, materialize.tables, materialize.count, materialize.check
    ),
    "updates": Benchmark(updates.rows, updates.tables, updates.count, updates.check),
    "stream": Benchmark(stream.rows, stream.tables, stream.count),
    "scale": Benchmark(scale.rows, scale.tables, scale.count),
}


def run(
    name: str,
    options: Options,
    *,
    file: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Recording:
    """Run a benchmark, and record each row as it comes: in `file`, if one is given."""
    if isinstance(options, StreamOptions) and options.rates:
        require_java()  # Structured Streaming is Spark's
    elif "spark" in options.engines and options.master is None:
        _require_java()
    BENCHMARKS[name].check(options)
    options.data.check()
    # Last: an older recording is replaced by a run that can begin, and by no other.
    recording = Recording.begin(name, asdict(options), file)
    tell(f"data are kept in {options.folder}")
    try:
        for turn in range(options.repeat):
            _measure(recording, options, turn, tell)
    except (KeyboardInterrupt, SystemExit):
        if recording.rows and recording.is_saved:
            print(f"what was measured: inferlake bench show {file}", file=sys.stderr)
        raise
    recording.finish()
    if file is not None and not recording.is_saved:
        tell(f"{file} is as it was: nothing was measured")
    return recording


def _measure(
    recording: Recording, options: Options, turn: int, tell: Callable[[str], None]
) -> None:
    benchmark = BENCHMARKS[recording.benchmark]
    expected = sum(benchmark.count(options, one) for one in range(options.repeat))
    # Closed at once when a user interrupts it, and the process of its case with it.
    with closing(benchmark.rows(options, turn)) as rows:
        for found in rows:
            row = {"turn": turn, **found}
            recording.add(row)
            place = f"{len(recording.rows)} of {expected}, " if expected else ""
            tell(f"{place}{line_of(row)}")


def _require_java() -> None:
    try:
        require_java()
    except JavaMissing as exc:
        raise JavaMissing(f"{exc}; here, that is --engine sail after the benchmark's name") from exc


def line_of(row: Row) -> str:
    """Return a row in short, for who watches."""
    names = ("part", "engine", "peer", "universities", "update", "way", "size", "algorithm")
    words = [
        f"{row[name]}"
        for name in (*names, "rate", "how", "batch", "command")
        if row.get(name) is not None
    ]
    seconds = row.get("seconds", row.get("file_seconds"))
    done = "derivations counted" if "derivations" in row else "done"
    took = row.get("error") or (f"{seconds:.2f} s" if seconds is not None else done)
    wrong = "; WRONG: the store does not equal a rebuild" if is_wrong(row) else ""
    return f"turn {row.get('turn', 0) + 1}: {' '.join(words)}: {took}{wrong}"


def shown(recording: Recording, *, width: int | None = None) -> str:
    """Return a recording as text: the machine, the command, and its tables.

    Tables are Markdown, unless there is a `width` that they do not fit into.
    """
    made = BENCHMARKS[recording.benchmark].tables(recording.rows) if recording.rows else []
    tables = [str(table) if width is None else table.fitted(width) for table in made]
    return "\n\n".join([*_head(recording), *tables])


def _head(recording: Recording) -> Iterator[str]:
    machine = recording.machine
    versions = ", ".join(f"{name} {one}" for name, one in machine["versions"].items())
    yield (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB,"
        f" Python {machine['python']}, {versions}; load average {machine['load_average']} at the"
        " start"
    )
    yield f"{recording.began}: {' '.join(recording.command)}"
    asked = recording.options.get("repeat", 1)
    turns = 1 + max((row.get("turn", 0) for row in recording.rows), default=0)
    if not recording.complete:
        count = counted(len(recording.rows), "row")
        where = f" in turn {turns} of {asked}" if asked > 1 else ""
        yield f"The run was ended early{where}: here is what came of it, {count}."
    if turns == asked == 1:
        yield "One turn: on a busy machine the next may differ by half; --repeat 3 tells."
