"""Updates, by each algorithm, beside a rebuild: DynamiTE's six, the B/F paper's table, cliques.

Every update is made and taken back: what `add_*` has added is then removed, and what `remove_*` has
removed is then added. So both directions of one set are measured, from parsing to the commit, and
the next update finds the store as the first one did.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inferlake.bench.cliques import Cliques
from inferlake.bench.data import UPDATES, WAYS, lines_of
from inferlake.bench.measure import numbers, peak, store, timed, warm
from inferlake.bench.options import ALGORITHMS, UpdatesOptions
from inferlake.bench.process import Case, measured
from inferlake.bench.record import Row
from inferlake.bench.updates_tables import tables
from inferlake.errors import InputError
from inferlake.kb import KnowledgeBase

__all__ = ["check", "cliques", "count", "removals", "rows", "six", "tables"]

# Facts to remove: so many, or such a share of all that is asserted. The shares are the paper's,
# of LUBM-1k-L: 2.5 and 10 of 133.6 million.
SIZES = (100, 5_000, 0.0187, 0.0749)

# Equal seeds choose equal facts.
_SEED = 1


# Where all rules are recursive, counting does what bf does: it tells nothing there.
_TELLING = tuple(one for one in ALGORITHMS if one != "counting")


def check(options: UpdatesOptions) -> None:
    """Raise `InputError` unless the published updates are there, and something is to be done."""
    if options.updates is not None and "six" in options.parts:
        _sets(options, options.updates)
    if "six" not in options.parts and not set(options.algorithms) & set(_TELLING):
        raise InputError(
            "counting does in removals and cliques what bf does, and is not measured there: "
            "say --algorithms bf, or --parts six"
        )


def count(options: UpdatesOptions, turn: int) -> int:
    """Return how many rows a turn has, unless something fails."""
    telling = len(set(options.algorithms) & set(_TELLING))
    rows = {
        "six": len(_names(options)) * len(options.algorithms) * len(WAYS),
        "removals": len(SIZES) * telling,
        "cliques": telling,
    }
    return len(options.engines) * sum(rows[part] for part in options.parts)


def rows(options: UpdatesOptions, turn: int) -> Generator[Row]:
    """Yield every update by every algorithm, in one turn. The first one verifies each result."""
    for engine in options.engines:
        for case in _cases(options, engine, verify=not turn):
            for row in measured(case, limit=options.limit):
                yield {**case.named, **row}


def _sets(options: UpdatesOptions, folder: Path) -> dict[str, list[str]]:
    """Return the files of each update of a folder."""
    return {name: options.data.update(folder, *name.split("_", 1)) for name in _names(options)}


def _names(options: UpdatesOptions) -> list[str]:
    """Return the updates, such as `add_update1`."""
    names = [f"{way}_{name}" for name in UPDATES for way in WAYS]
    if options.universities < 2:
        names.remove("remove_2universities")  # there are no two
    return names


def _cases(options: UpdatesOptions, engine: str, *, verify: bool) -> Iterator[Case]:
    data, size = options.data, options.universities
    given = {"algorithms": list(options.algorithms), "verify": verify, **options.engine}
    telling = {**given, "algorithms": [one for one in options.algorithms if one in _TELLING]}
    if "six" in options.parts:
        sets = _sets(options, options.updates or data.updates())
        named = {"part": "six", "engine": engine, "universities": size, "profile": options.profile}
        base = data.base(size, options.updates)
        yield Case("updates.six", named, {"files": base, "sets": sets, **given})
    if not telling["algorithms"]:
        return
    if "removals" in options.parts:
        named = {
            "part": "removals",
            "engine": engine,
            "universities": size,
            "profile": options.removal_profile,
        }
        schema = [str(data.ontology())]
        facts = [file for file in data.files(size) if file not in schema]
        yield Case("updates.removals", named, {"files": facts, "schema": schema, **telling})
    if "cliques" in options.parts:
        yield Case("updates.cliques", {"part": "cliques", "engine": engine}, telling)


# --- Measured in a process of its own -----------------------------------------------------------


def six(
    part: str,
    engine: str,
    universities: int,
    profile: str,
    files: Sequence[str],
    sets: Mapping[str, Sequence[str]],
    algorithms: Sequence[str],
    verify: bool,
    **where: Any,
) -> Iterator[Row]:
    """Make each update and take it back, by each algorithm, in one store."""
    with store(engine, **where) as (kb, folder):
        kb.load(*files, rules=profile)
        warm(kb, folder)
        kb.compact()
        for name, some in sets.items():
            there = name.partition("_")[0]
            back = "remove" if there == "add" else "add"
            for algorithm in algorithms:
                told = {"update": name, "algorithm": algorithm}
                row = _changed(kb, algorithm, verify, **{there: some})
                yield {**told, "way": there, **row}
                row = _changed(kb, algorithm, verify, **{back: [_last_change(kb, folder)]})
                yield {**told, "way": back, **row}
                kb.compact()


def _last_change(kb: KnowledgeBase, folder: Path) -> str:
    """Return a file of the triples that the last change added, or removed: it did one of both.

    An update may add what is there already, or remove what is not: to take that back as well would
    change what the next update finds.
    """
    patch, file = folder / "last.rdfp", folder / "last.nt"
    kb.export_changes(patch, layer="asserted")
    lines = (line for line in lines_of([str(patch)]) if line[:2] in ("A ", "D "))
    file.write_text("".join(f"{line[2:]}\n" for line in lines))
    return str(file)


def _changed(kb: KnowledgeBase, algorithm: str, verify: bool, **sets: Sequence[str]) -> Row:
    seconds, report = timed(
        lambda: kb.update(**sets, algorithm=algorithm)  # type: ignore[arg-type]
    )
    row = {"algorithm": algorithm, **numbers(report, seconds), "peak_mb": peak()}
    return {**row, "right": kb.verify().ok} if verify else row


def removals(
    part: str,
    engine: str,
    universities: int,
    profile: str,
    files: Sequence[str],
    schema: Sequence[str],
    algorithms: Sequence[str],
    verify: bool,
    sizes: Sequence[float] = SIZES,
    **where: Any,
) -> Iterator[Row]:
    """Remove facts at random, each set within the next, by each algorithm; and add them again.

    The schema stays: it is the paper's rules.
    """
    lines = sorted(set(lines_of(files)))
    sized = (round(size * len(lines)) if size < 1 else int(size) for size in sizes)
    counts = sorted({min(count, len(lines)) for count in sized})
    chosen = random.Random(_SEED).sample(lines, max(counts))
    with store(engine, **where) as (kb, folder):
        loaded = kb.load(*files, *schema, rules=profile)
        warm(kb, folder)
        kb.compact()
        asserted = {"asserted": loaded.added, "implied": loaded.added + loaded.derived}
        for count in counts:
            gone = folder / f"gone-{count}.nt"
            gone.write_text("".join(f"{line}\n" for line in chosen[:count]))
            for algorithm in algorithms:
                row = _changed(kb, algorithm, verify, remove=[str(gone)])
                yield {"size": count, **asserted, **row}
                kb.update(add=gone)
                kb.compact()


def cliques(
    part: str, engine: str, algorithms: Sequence[str], verify: bool, **where: Any
) -> Iterator[Row]:
    """Remove links from cliques by each algorithm, each from a fresh store."""
    made = Cliques()
    for algorithm in algorithms:
        with store(engine, **where) as (kb, folder):
            links, gone, rules = made.written(folder)
            loaded = kb.load(links, rules=str(rules))
            warm(kb, folder)
            kb.compact()
            asserted = {"asserted": loaded.added, "implied": loaded.added + loaded.derived}
            yield {
                "size": made.remove,
                **asserted,
                **_changed(kb, algorithm, verify, remove=[str(gone)]),
            }
