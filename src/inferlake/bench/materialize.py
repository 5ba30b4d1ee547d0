"""From files, and from stored triples, to a committed closure: on each engine, beside peers.

Peers hold the triples in memory when the clock for the closure starts, and nothing is durable when
it stops; ours are read from the store and committed to it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from inferlake.bench import startup
from inferlake.bench.measure import nothing, numbers, peak, said, store, timed
from inferlake.bench.options import MaterializeOptions
from inferlake.bench.peers import measured_peer, require
from inferlake.bench.process import Case, measured
from inferlake.bench.published import CLOSURES, ELSEWHERE
from inferlake.bench.record import Row
from inferlake.bench.tables import Spread, Table, error_of, grouped, ratio, spread

# Of a change, in their order.
PHASES = ("parse", "terms", "facts", "derive", "commit")


def check(options: MaterializeOptions) -> None:
    """Raise `InputError` unless all peers that are asked for are there."""
    require(options.peers, options.peer_python)


def rows(options: MaterializeOptions, turn: int) -> Generator[Row]:
    """Yield what each system does in one turn. They take turns: a slow minute is everybody's."""
    files = options.data.files(options.universities)
    size = {"universities": options.universities, "profile": options.profile}
    for name in options.peers:
        found = measured_peer(
            name, options.profile, files, python=options.peer_python, limit=options.limit
        )
        for row in found:
            yield {"part": "peer", "peer": name, **size, **row}
    for engine in options.engines:
        for part in ("stored", "file"):
            given = {"files": files, **options.engine}
            if part == "stored":
                given["count"] = not turn
            named = {"engine": engine, "profile": options.profile}
            case = Case(f"materialize.{part}_closure", named, given)
            for row in measured(case, limit=options.limit):
                yield {"part": part, "engine": engine, **size, **row}
    if options.startup:
        for case in startup.cases(options.engines):
            for row in measured(case, limit=options.limit):
                yield {**case.named, **row}


# --- Measured in a process of its own -----------------------------------------------------------


def stored_closure(
    engine: str, profile: str, files: Sequence[str], count: bool, **where: Any
) -> Iterator[Row]:
    """Load without rules; then derive from what is stored, and commit: two numbers.

    With `count`, derive once more, and slower, to count what rules gave before repetitions were
    dropped.
    """
    with store(engine, **where) as (kb, folder):
        seconds, loaded = timed(lambda: kb.load(*files, rules="none"))
        load = {"load_seconds": seconds, "load_phases": dict(loaded.seconds), "load_mb": peak()}
        empty = nothing(folder)
        kb.load(empty)  # the same small work once, so that what it needs is there
        seconds, report = timed(lambda: kb.load(empty, rules=profile))
        size = {"triples": loaded.added, "read": loaded.read, "peak_mb": peak()}
        stats = kb.stats()
        size |= {"bytes": stats.bytes, "closure": stats.asserted + stats.derived}
        row = {**numbers(report, seconds), **load, **size, "said": said(report)}
        if count:
            kb.load(empty, rules="none")
            counted = kb.load(empty, rules=profile, count=True)
            row["derivations"] = sum(done.derived or 0 for done in counted.rounds)
        yield row


def file_closure(engine: str, profile: str, files: Sequence[str], **where: Any) -> Iterator[Row]:
    """Load under rules: from files to the committed closure, in one version."""
    with store(engine, **where) as (kb, _):
        seconds, report = timed(lambda: kb.load(*files, rules=profile))
        size = {"triples": report.added, "closure": report.added + report.derived}
        yield {**numbers(report, seconds), **size, "peak_mb": peak(), "said": said(report)}


# --- Tables --------------------------------------------------------------------------------------


def tables(found: Sequence[Row]) -> list[Table]:
    """Return rates beside peers, phases, rounds, and what others published."""
    made = [_rates(found), _phases(found), published()]
    began = [row for row in found if row.get("part") == "startup"]
    return made + ([startup.table(began)] if began else [])


def _rates(found: Sequence[Row]) -> Table:
    systems = grouped((row for row in found if row["part"] != "startup"), "engine", "peer")
    closures, files = {}, {}
    for name, some in systems.items():
        peers = [row for row in some if row["part"] == "peer"]
        closures[name] = spread([r for r in some if r["part"] == "stored"], "seconds") or spread(
            peers, "closure_seconds"
        )
        files[name] = spread([r for r in some if r["part"] == "file"], "seconds") or spread(
            peers, "file_seconds"
        )
    first = next(iter(found), {})
    triples = max((row.get("triples", 0) for row in found), default=0)
    lines = [_rate_line(name, some, closures, files, triples) for name, some in systems.items()]
    return Table(
        f"LUBM({first.get('universities')}), {triples:,} triples, profile {first.get('profile')}",
        (
            "system",
            "derives",
            "durable",
            "closure",
            "derivations",
            "rounds",
            "stored to closure: s",
            "stored: times the least",
            "stored: triples/s",
            "file to closure: s",
            "file: times the least",
            "file: triples/s",
            "peak MB",
            "problem",
        ),
        lines,
        (
            "Read ratios within one run; seconds are the machine's. Peers hold triples in memory"
            " and store nothing; ours read the store and commit to it. What a system derives"
            " differs: compare the sizes of closures before the times.",
        ),
    )


def _rate_line(
    name: tuple[Any, ...],
    some: Sequence[Row],
    closures: Mapping[tuple[Any, ...], Spread | None],
    files: Mapping[tuple[Any, ...], Spread | None],
    triples: int,
) -> list[Any]:
    engine, peer = name
    whole = [row for row in some if row["part"] != "stored"]
    derives = next((row["derives"] for row in some if "derives" in row), some[0]["profile"])
    memory = spread(whole, "peak_mb")
    return [
        f"inferlake on {engine}" if engine else f"{peer} {_version(some)}".strip(),
        derives,
        "yes" if engine else "no",
        next((row["closure"] for row in some if "closure" in row), None),
        next(
            (row["derivations"] for row in some if row["part"] == "stored" and "error" not in row),
            None,
        ),
        next((row["rounds"] for row in some if "rounds" in row), None),
        *_timed_cells(closures[name], closures, triples),
        *_timed_cells(files[name], files, triples),
        round(memory.median) if memory else None,
        error_of(some),
    ]


def _version(some: Sequence[Row]) -> str:
    return next((row["version"] for row in some if "version" in row), "")


def _timed_cells(
    mine: Spread | None, all_of: Mapping[Any, Spread | None], triples: int
) -> list[Any]:
    if mine is None:
        return [None, None, None]
    fastest = min((one for one in all_of.values() if one), key=lambda one: one.median)
    return [mine, ratio(mine, fastest), round(triples / mine.median)]


def _phases(found: Sequence[Row]) -> Table:
    """Where the time goes: phases of both ways on each engine, and the share of each."""
    lines = []
    for (engine, part), some in grouped(
        (row for row in found if row["part"] in ("stored", "file")), "engine", "part"
    ).items():
        medians = [
            spread(some, lambda row, p=phase: row.get("phases", {}).get(p)) for phase in PHASES
        ]
        total = spread(some, "seconds")
        if total is None:
            continue
        known = sum(one.median for one in medians if one)
        other = f"{total.median - known:.2f} s, {1 - known / total.median:.0%}"
        cells = [
            f"{one.median:.2f} s, {one.median / total.median:.0%}" if one else "" for one in medians
        ]
        lines.append([engine, f"{part} to closure", *cells, other, total])
    notes = [
        f"{row['engine']}, stored to closure, {line}"
        for row in found
        if row["part"] == "stored" and not row.get("turn")
        for line in row.get("said", ())
    ]
    return Table(
        "Where the time goes",
        ("engine", "way", "parse", "terms", "facts", "derive", "commit", "other", "whole: s"),
        lines,
        notes,
    )


def published() -> Table:
    """Return others' closures."""
    return Table(
        "Published",
        ("system", "data", "hardware", "seconds", "triples/s", "memory"),
        [list(one) for one in CLOSURES],
        (ELSEWHERE,),
    )
