"""Batches that arrive one after another, with schema in all of them: repair, or rebuild each time.

LUBM is cut as Farvardin, Colazzo, Belhajjame and Sartiani cut their data (2021, section 5): a
quarter of data and schema is there at first, the rest comes in batches.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

from inferlake.bench import steady
from inferlake.bench.data import lines_of
from inferlake.bench.measure import numbers, store, timed
from inferlake.bench.options import StreamOptions
from inferlake.bench.process import Case, measured
from inferlake.bench.published import ELSEWHERE, STREAMS
from inferlake.bench.record import Row
from inferlake.bench.tables import Table, error_of, grouped, ratio, spread
from inferlake.generate.lubm_schema import axioms
from inferlake.kb import KnowledgeBase

How = Literal["repair", "rebuild"]
HOWS: tuple[How, ...] = ("repair", "rebuild")

# What is there before the first batch.
INITIAL = 0.25

# One triple in so many goes again, if batches take back.
_TAKEN_BACK = 10

# Batches to a line of the table.
_LINE = 10


def count(options: StreamOptions, turn: int) -> int:
    """Return how many rows a turn has; of a steady stream nobody knows."""
    # The first quarter is a batch, too, and the end is a row.
    return 0 if options.rates else len(options.engines) * len(HOWS) * (options.batches + 2)


def rows(options: StreamOptions, turn: int) -> Generator[Row]:
    """Yield every batch, repaired and rebuilt, in one turn; or those of steady streams."""
    if options.rates:
        yield from steady.rows(options)
        return
    files = [str(file) for file in sorted(options.data.lubm(options.universities).glob("*.nt*"))]
    for engine in options.engines:
        named = {
            "engine": engine,
            "universities": options.universities,
            "profile": options.profile,
        }
        given = {
            "files": files,
            "batches": options.batches,
            "compact_every": options.compact_every,
            "removals": options.removals,
            "verify": options.verify,
            **options.engine,
        }
        case = Case("stream.batches_of", named, given)
        for row in measured(case, limit=options.limit):
            yield {**named, **row}


# --- Measured in a process of its own -----------------------------------------------------------


def batches_of(
    engine: str,
    universities: int,
    profile: str,
    files: Sequence[str],
    batches: int,
    compact_every: int,
    removals: bool,
    verify: bool,
    **where: Any,
) -> Iterator[Row]:
    """Load the first quarter as batch 0, apply the others, and check the end.

    Both ways take turns, each in a store of its own: a slow minute of the machine is both's. With
    `removals`, a batch also takes back a share of what the one before it brought; `verify` checks
    what each batch leaves.
    """
    initial, later = cut(list(lines_of(files)), axioms(), batches)
    with store(engine, **where) as (_, folder):
        stores: dict[How, KnowledgeBase] = {
            how: KnowledgeBase(folder / how, engine=engine, **where)  # type: ignore[arg-type]
            for how in HOWS
        }
        first = _written(folder / "initial.nt", initial)
        for how, kb in stores.items():
            seconds, report = timed(lambda kb=kb: kb.load(first, rules=profile))
            yield {"how": how, "batch": 0, **numbers(report, seconds)}
        for number, (before, lines) in enumerate(pairwise([initial, *later]), 1):
            batch = {"add": _written(folder / "batch.nt", lines)}
            if removals:
                # The latest are data or schema of that batch alone, with no blank nodes to meet.
                gone = [line for line in before[::-_TAKEN_BACK] if "_:" not in line]
                batch["remove"] = _written(folder / "gone.nt", gone[: len(lines) // _TAKEN_BACK])
            for how, kb in stores.items():
                row = _applied(kb, batch, number, how)
                if verify:
                    row["right"] = kb.verify().ok
                if compact_every and number % compact_every == 0:
                    row["compact_seconds"] = sum(kb.compact().seconds.values())
                yield {"how": how, "batch": number, **row}
        for how, kb in stores.items():
            yield {"how": how, "part": "end", **_end(kb)}


def _applied(kb: KnowledgeBase, batch: Mapping[str, Path], number: int, how: How) -> Row:
    """Apply one batch, once, as a stream does."""
    algorithm = "rebuild" if how == "rebuild" else "auto"
    once = ("bench-stream", number)
    seconds, report = timed(
        lambda: kb.update(**batch, transaction=once, algorithm=algorithm)  # type: ignore[arg-type]
    )
    return numbers(report, seconds)


def _end(kb: KnowledgeBase) -> Row:
    stats = kb.stats()
    counts = {"asserted": stats.asserted, "implied": stats.derived, "files": stats.files}
    return {**counts, "right": kb.verify().ok}


def _written(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def cut(
    data: Sequence[str], schema: Sequence[Sequence[str]], batches: int
) -> tuple[list[str], list[list[str]]]:
    """Return the first quarter of data and schema, and the rest in so many batches.

    Axioms stay whole: blank nodes of two batches would never meet. They are dealt in turn, so that
    each batch has some of classes and some of properties.
    """
    known, coming = round(INITIAL * len(data)), round(INITIAL * len(schema))
    step = max(1, round(1 / INITIAL))
    early = [axiom for at, axiom in enumerate(schema) if at % step == 0]
    late = [axiom for at, axiom in enumerate(schema) if at % step]
    assert abs(len(early) - coming) <= 1
    bounds = [known + n * (len(data) - known) // batches for n in range(batches + 1)]
    parts = [list(data[a:b]) for a, b in pairwise(bounds)]
    for at, axiom in enumerate(late):
        parts[at % batches].extend(axiom)
    return [*data[:known], *(line for axiom in early for line in axiom)], parts


# --- Tables --------------------------------------------------------------------------------------


def tables(found: Sequence[Row]) -> list[Table]:
    """Return seconds and rows by batch, the sums, and the published figures; or lags by rate."""
    if any(row.get("part") == steady.PART for row in found):
        return steady.tables(found)
    made = [_by_batch(engine, some) for (engine,), some in grouped(found, "engine").items()]
    return [*made, _sums(found), _paper()]


def _by_batch(engine: str, found: Sequence[Row]) -> Table:
    """Figures 7, 12 and 14: seconds of both, their sums, and rows fetched, in lines of batches."""
    batches = [row for row in found if "batch" in row]
    last = max((row["batch"] for row in batches), default=0)
    spans = [(0, 0), *((n, min(n + _LINE - 1, last)) for n in range(1, last + 1, _LINE))]
    totals = {how: _totals(batches, how) for how in HOWS}
    lines = []
    for start, stop in spans:
        repaired, rebuilt = (
            [r for r in batches if r["how"] == how and start <= r["batch"] <= stop] for how in HOWS
        )
        one, other = spread(repaired, "seconds"), spread(rebuilt, "seconds")
        fetched, all_fetched = spread(repaired, "rows_read"), spread(rebuilt, "rows_read")
        stored = spread(repaired, "rows_stored")
        lines.append(
            [
                "load" if stop == 0 else f"{start}-{stop}",
                one,
                other,
                ratio(other, one) if stop else None,
                spread(repaired, _deriving),
                spread(rebuilt, _deriving),
                totals["repair"].get(stop),
                totals["rebuild"].get(stop),
                round(fetched.median) if fetched else None,
                round(all_fetched.median) if all_fetched else None,
                round(stored.median) if stored else None,
                max((row["rounds"] for row in repaired), default=None),
                round(spread(repaired, "derived").median) if one else None,  # type: ignore[union-attr]
            ]
        )
    first = found[0]
    return Table(
        f"Batches of LUBM({first['universities']}), {first['profile']}, on {engine}",
        (
            "batches",
            "repair: s",
            "rebuild: s",
            "rebuild / repair",
            "repair, derive: s",
            "rebuild, derive: s",
            "repair, sum: s",
            "rebuild, sum: s",
            "rows fetched, repair",
            "rows fetched, rebuild",
            "rows stored",
            "rounds",
            "derived",
        ),
        lines,
        (
            "A line gives the median of its batches (and the least and the most). A rebuild reads"
            " the stored triples, derives everything again and commits; it does not read files"
            " again. Both parse a batch, and look for what of it is new: only `derive` differs. The"
            " load is the same for both.",
        ),
    )


def _totals(batches: Sequence[Row], how: str) -> dict[int, float]:
    """Return the seconds of all batches up to each, medians of turns, without the load."""
    each = grouped((r for r in batches if r["how"] == how and r["batch"]), "batch")
    medians = [(number, spread(some, _with_compaction)) for (number,), some in each.items()]
    sums = accumulate(one.median if one else 0.0 for _, one in medians)
    return dict(zip((number for number, _ in medians), sums, strict=True))


def _deriving(row: Row) -> float | None:
    return row["phases"].get("derive")


def _with_compaction(row: Row) -> float:
    return row["seconds"] + row.get("compact_seconds", 0.0)


def _sums(found: Sequence[Row]) -> Table:
    lines = []
    for (engine, how), some in grouped(found, "engine", "how").items():
        if how is None:  # of the process that both run in
            lines.append([engine, "", *(None for _ in range(8)), error_of(some)])
            continue
        end = next((row for row in some if row.get("part") == "end"), {})
        checks = [row["right"] for row in some if "right" in row]
        totals = _totals([row for row in some if "batch" in row], how)
        rebuilt = _totals([r for r in found if "batch" in r and r["engine"] == engine], "rebuild")
        mine, theirs = (max(one.values(), default=0.0) for one in (totals, rebuilt))
        lines.append(
            [
                engine,
                how,
                len(totals),
                mine,
                theirs / mine if mine and len(rebuilt) == len(totals) else None,
                *(end.get(name) for name in ("asserted", "implied", "files")),
                all(checks) if checks else None,
                len(checks),
                error_of(some),
            ]
        )
    return Table(
        "All batches",
        (
            "engine",
            "how",
            "batches",
            "sum: s",
            "rebuild / it",
            "asserted",
            "derived",
            "files",
            "right",
            "checks",
            "problem",
        ),
        lines,
        keys=2,
    )


def _paper() -> Table:
    return Table(
        "Published: RDFInStream beside Cichlid, which rebuilds",
        ("figure", "data", "repair", "rebuild"),
        [list(one) for one in STREAMS],
        (ELSEWHERE,),
    )
