"""A steady stream into a store: how far behind it the store is, and at which rate it falls behind.

A file a second appears in a folder, and a stream follows the folder: Structured Streaming on Apache
Spark, each batch on the engine that the stream chooses for it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from inferlake.bench.data import lines_of
from inferlake.bench.measure import peak
from inferlake.bench.options import StreamOptions
from inferlake.bench.process import Case, measured
from inferlake.bench.record import Row
from inferlake.bench.tables import Table, error_of, grouped, spread
from inferlake.errors import InputError
from inferlake.kb import KnowledgeBase
from inferlake.stream.report import BatchReport, quantile

PART = "steady"

# A lag grows if in the second half it is so many times, and seconds, more than in the first.
_TIMES, _SECONDS = 1.5, 1.0

# Before the first rate counts, the stream is fed at it for so long.
_FIRST_SECONDS = 5

# What a university has at least, on average.
_TRIPLES = 100_000


def rows(options: StreamOptions) -> Iterator[Row]:
    """Yield every batch of every rate, each with a row that says whether the rate was held."""
    size = options.universities
    triples = options.rates[0] * _FIRST_SECONDS + sum(options.rates) * options.seconds
    coming = -(-triples // _TRIPLES)
    named = {"part": PART, "universities": size, "profile": options.profile}
    given = {
        "files": options.data.files(size),
        "coming": [str(f) for f in sorted(options.data.lubm(coming, first=size).glob("*.nt*"))],
        "rates": list(options.rates),
        "seconds": options.seconds,
        **options.engine,
    }
    for row in measured(Case("steady.fed", named, given), limit=options.limit):
        yield {**named, **row}


# --- Measured in a process of its own -----------------------------------------------------------


def fed(
    part: str,
    universities: int,
    profile: str,
    files: Sequence[str],
    coming: Sequence[str],
    rates: Sequence[int],
    seconds: int,
    **where: Any,
) -> Iterator[Row]:
    """Feed a store at one rate after another, until it does not keep up, and check the end."""
    with tempfile.TemporaryDirectory(prefix="inferlake-bench-") as folder:
        at = Path(folder)
        kb = KnowledgeBase(at / "kb", **where)
        kb.load(*files, rules=profile)
        kb.compact()
        lines = lines_of(coming)
        inbox = at / "inbox"
        inbox.mkdir()
        running = kb.stream(inbox).start()
        # The first batches start threads and compile plans, which a steady stream does once.
        _feed(_cut(at / "first", lines, rates[0], _FIRST_SECONDS), inbox)
        running.process_all_available()
        for rate in rates:
            seconds_of_rate = _cut(at / f"rate-{rate}", lines, rate, seconds)
            known = {one.batch for one in running.reports}
            began = time.time()
            _feed(seconds_of_rate, inbox)
            fed_for = time.time() - began
            running.process_all_available()
            late = time.time() - began - fed_for
            batches = [one for one in running.reports if one.batch not in known]
            for one in batches:
                yield {"rate": rate, **_numbers(one)}
            held = is_held([one.lag for one in batches if one.lag is not None], late)
            yield {"rate": rate, "held": held, "late": late, "peak_mb": peak()}
            if not held:
                break
        running.stop()
        yield {"right": kb.verify().ok, "asserted": kb.stats().asserted}


def is_held(lags: Sequence[float], late: float) -> bool:
    """Tell whether a store kept up: the lag did not grow, nor was more left over at the end."""
    half = len(lags) // 2
    if not half:
        return False
    before, after = (quantile(sorted(some), 0.95) for some in (lags[:half], lags[half:]))
    most = _TIMES * before + _SECONDS
    return after <= most and late <= most


def _cut(folder: Path, lines: Iterator[str], rate: int, seconds: int) -> list[Path]:
    """Write the files of so many seconds."""
    folder.mkdir()
    made = []
    for second in range(seconds):
        file = folder / f"{folder.name}-{second:05}.nt"
        some = [f"{line}\n" for line in islice(lines, rate)]
        if len(some) < rate:
            raise InputError(f"data end after {second} s at {rate:,} triples/s: feed for less long")
        file.write_text("".join(some))
        made.append(file)
    return made


def _feed(files: Sequence[Path], inbox: Path) -> None:
    """Let a file appear every second, as of now."""
    began = time.time()
    for number, file in enumerate(files):
        time.sleep(max(0.0, began + number - time.time()))
        os.utime(file)
        file.rename(inbox / file.name)


def _numbers(one: BatchReport) -> Row:
    names = ("batch", "lines", "added", "derived", "seconds", "lag", "engine", "rows_read")
    return {name: getattr(one, name) for name in names}


# --- Tables --------------------------------------------------------------------------------------


def tables(found: Sequence[Row]) -> list[Table]:
    """Return how far behind each rate the store was, if rates were asked for."""
    some = [row for row in found if row.get("part") == PART]
    if not some:
        return []
    lines = [
        _line(rate, of_rate)
        for (rate,), of_rate in grouped((r for r in some if "rate" in r), "rate").items()
    ]
    ends = [row for row in some if "right" in row]
    notes = [
        "A rate is held if the lag of its second half is not over 1.5 times that of its first half,"
        " and a second, and no more is left over at its end. A lag is the age of the oldest line"
        " of a batch when its version was there.",
    ]
    if ends:
        equal = all(row["right"] for row in ends)
        notes.append(f"In the end the store {'equals' if equal else 'DOES NOT EQUAL'} a rebuild.")
    if error_of(some):
        notes.append(f"Problem: {error_of(some)}")
    return [
        Table(
            f"A steady stream into LUBM({some[0]['universities']}), {some[0]['profile']}",
            (
                "triples/s",
                "batches",
                "lines",
                "batch: s",
                "batch: p95",
                "lag: s",
                "lag: p95",
                "lag: most",
                "left over: s",
                "held",
                "on",
            ),
            lines,
            notes,
        )
    ]


def _line(rate: int, found: Sequence[Row]) -> list[Any]:
    """Return what a rate came to: of each number the median of all turns, and how far they went."""
    turns = [_numbers_of_turn(some) for some in grouped(found, "turn").values()]
    medians = [spread(turns, name) for name in turns[0] if name not in ("held", "on")]
    held = [one["held"] for one in turns if one["held"] is not None]
    on = sorted({engine for one in turns for engine in one["on"]})
    return [rate, *medians, all(held) if held else None, ", ".join(on)]


def _numbers_of_turn(found: Sequence[Row]) -> Row:
    batches = [row for row in found if "batch" in row]
    end = next((row for row in found if "held" in row), {})
    lags = sorted(row["lag"] for row in batches if row["lag"] is not None)
    times = sorted(row["seconds"] for row in batches)
    return {
        "batches": len(batches),
        "lines": sum(row["lines"] for row in batches),
        **{f"seconds {share}": quantile(times, share) for share in (0.5, 0.95)},
        **{f"lag {share}": quantile(lags, share) for share in (0.5, 0.95, 1.0)},
        "late": end.get("late"),
        "held": end.get("held"),
        "on": {row["engine"] for row in batches},
    }
