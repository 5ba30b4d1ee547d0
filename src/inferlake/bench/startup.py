"""What a command costs before it does anything: from the shell's prompt and back to it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from inferlake.bench.measure import store
from inferlake.bench.process import Case
from inferlake.bench.record import Row
from inferlake.bench.tables import Table, grouped, ratio, spread
from inferlake.engines.machine import has_java

# The first of them finds nothing in the page cache.
_TIMES = 6


def cases(engines: Sequence[str]) -> list[Case]:
    """Return one case for all commands."""
    return [Case("startup.commands", {"part": "startup"}, {"engines": list(engines)})]


def count(engines: Sequence[str]) -> int:
    """Return how many rows they give."""
    return 2 + len(engines)


def commands(part: str, engines: Sequence[str]) -> Iterator[Row]:
    """Time Python alone, `--help`, and `stats` of a tiny store on each engine."""
    with store("sail") as (kb, folder):
        line = folder / "one.nt"
        line.write_text("<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n")
        kb.load(line)
        said = "from inferlake.cli import main; main()"
        asked = {"python -c pass": ["-c", "pass"], "inferlake --help": ["-c", said, "--help"]}
        for engine in engines:
            if engine == "sail" or has_java():
                name = f"inferlake --engine {engine} stats KB"
                asked[name] = ["-c", said, "--engine", engine, "stats", kb.path]
        for name, arguments in asked.items():
            yield {"command": name, "times": [_seconds(arguments) for _ in range(_TIMES)][1:]}


def _seconds(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


def table(rows: Sequence[Row]) -> Table:
    """Return seconds by command, beside those of Python itself."""
    found = grouped([one for row in rows for one in _each(row)], "command")
    python = spread(found.get(("python -c pass",), []), "seconds")
    lines = [
        [name, str(took), ratio(took, python)]
        for (name,), some in found.items()
        if (took := spread(some, "seconds"))
    ]
    return Table(
        "What a command costs before it does anything",
        ("command", "seconds: median (least-most)", "times Python itself"),
        lines,
    )


def _each(row: Row) -> Iterator[Row]:
    for seconds in row.get("times", ()):
        yield {"command": row["command"], "seconds": seconds}
