"""From files, and from stored triples, to a committed closure: on each engine, beside peers.

Peers hold the triples in memory when the clock for the closure starts, and nothing is durable when
it stops; ours are read from the store and committed to it.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from inferlake.bench import startup
from inferlake.bench.measure import nothing, numbers, peak, said, store, timed
from inferlake.bench.options import MaterializeOptions
from inferlake.bench.peers import measured_peer, require, same_rules
from inferlake.bench.process import Case, measured
from inferlake.bench.published import CLOSURES, ELSEWHERE
from inferlake.bench.record import Row
from inferlake.bench.tables import Spread, Table, error_of, grouped, ratio, spread

# Of a change, in their order.
PHASES = ("parse", "terms", "facts", "derive", "commit")


def check(options: MaterializeOptions) -> None:
    """Raise `InputError` unless all peers that are asked for are there."""
    require(options.peers, options.peer_python)


def count(options: MaterializeOptions, turn: int) -> int:
    """Return how many rows a turn has, unless something fails; the first counts derivations."""
    ours = (2 if turn else 3) * len(options.engines)
    began = startup.count(options.engines) if options.startup else 0
    return len(options.peers) + ours + began


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
            for number, row in enumerate(measured(case, limit=options.limit)):
                if number and "error" in row:  # after the row with the seconds
                    row["error"] += " (while derivations were counted)"
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
    dropped. That is a second row: a time limit that ends it leaves what was measured.
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
        done = numbers(report, seconds)
        done.pop("derivations", None)  # of facts withdrawn: here there are none
        yield {**done, **load, **size, "said": said(report)}
        if count:
            kb.load(empty, rules="none")
            counted = kb.load(empty, rules=profile, count=True)
            yield {"derivations": sum(done.derived or 0 for done in counted.rounds)}


def file_closure(engine: str, profile: str, files: Sequence[str], **where: Any) -> Iterator[Row]:
    """Load under rules: from files to the committed closure, in one version."""
    with store(engine, **where) as (kb, _):
        seconds, report = timed(lambda: kb.load(*files, rules=profile))
        size = {"triples": report.added, "closure": report.added + report.derived}
        yield {**numbers(report, seconds), **size, "peak_mb": peak(), "said": said(report)}


def outside_phases(row: Row) -> float:
    """Return what a change took besides its phases, in seconds.

    Phases are clocked apart from the whole, and may seem to take some microseconds more.
    """
    return max(0.0, row["seconds"] - sum(row["phases"].get(phase, 0.0) for phase in PHASES))


# --- Tables --------------------------------------------------------------------------------------


def tables(found: Sequence[Row]) -> list[Table]:
    """Return rates beside peers, phases, rounds, and what others published."""
    made = [_rates(found), _phases(found), published()]
    began = [row for row in found if row.get("part") == "startup"]
    made += [startup.table(began)] if began else []
    return [table for table in made if table.rows]


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
    lines = [_rate_line(name, systems, closures, files, triples) for name in systems]
    counted = f", {triples:,} triples" if triples else ""
    return Table(
        f"LUBM({first.get('universities')}){counted}, profile {first.get('profile')}",
        (
            "system",
            "derives",
            "durable",
            "closure",
            "derivations",
            "rounds",
            "stored: s",
            "stored: times",
            "stored: /s",
            "file: s",
            "file: times",
            "file: /s",
            "peak MB",
            "problem",
        ),
        lines,
        (
            "Stored: from triples in the store to the committed closure; a peer has them in memory,"
            " and stores nothing. File: from files. Times: as long as the quickest of those with"
            " the same rules; other rules are other work, and have no such number. /s: triples of"
            " input a second, on this machine.",
        ),
    )


def _rate_line(
    name: tuple[Any, ...],
    systems: Mapping[tuple[Any, ...], Sequence[Row]],
    closures: Mapping[tuple[Any, ...], Spread | None],
    files: Mapping[tuple[Any, ...], Spread | None],
    triples: int,
) -> list[Any]:
    engine, peer = name
    some = systems[name]
    alike = {other for other, rows in systems.items() if _by_our_rules(rows)}
    whole = [row for row in some if row["part"] != "stored"]
    memory = spread(whole, "peak_mb")
    derives = some[0]["profile"] if engine else _first(some, "derives")
    return [
        f"inferlake on {engine}" if engine else f"{peer} {_first(some, 'version') or ''}".strip(),
        derives if name in alike or not derives else f"{derives}: other rules",
        "yes" if engine else "no",
        _first(some, "closure"),
        _first((row for row in some if row["part"] == "stored"), "derivations"),
        _first(some, "rounds"),
        *_timed_cells(name, closures, alike, triples),
        *_timed_cells(name, files, alike, triples),
        round(memory.median) if memory else None,
        error_of(some),
    ]


def _by_our_rules(some: Sequence[Row]) -> bool:
    """Tell whether a system derives what the profile does, so that their times can be compared."""
    return some[0]["part"] != "peer" or same_rules(some[0]["profile"], _first(some, "derives"))


def _first(some: Iterable[Row], name: str) -> Any:
    return next((row[name] for row in some if name in row), None)


def _timed_cells(
    name: tuple[Any, ...],
    times: Mapping[tuple[Any, ...], Spread | None],
    alike: Collection[tuple[Any, ...]],
    triples: int,
) -> list[Any]:
    mine = times[name]
    if mine is None:
        return [None, None, None]
    # A reader takes a ratio for a race, whatever a note says: none where the work is another.
    others = [time for other, time in times.items() if time and other in alike]
    fastest = min(others, key=lambda one: one.median) if name in alike else None
    return [mine, ratio(mine, fastest), round(triples / mine.median)]


def _phases(found: Sequence[Row]) -> Table:
    """Where the time goes: phases of both ways on each engine, and the share of each."""
    lines = []
    for (engine, part), some in grouped(
        (row for row in found if row["part"] in ("stored", "file")), "engine", "part"
    ).items():
        changes = [row for row in some if "phases" in row]  # not those of counted derivations
        total = spread(changes, "seconds")
        if total is None:
            continue
        parts = [spread(changes, lambda row, p=phase: row["phases"].get(p)) for phase in PHASES]
        parts.append(spread(changes, outside_phases))
        cells = [
            f"{one.median:.2f} s, {one.median / total.median:.0%}" if one else "" for one in parts
        ]
        lines.append([engine, f"{part} to closure", *cells, total])
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
