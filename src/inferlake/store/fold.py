"""Folding: small files of recent versions become few, while others go on writing.

A compaction rewrites everything; a fold takes a run of files whose versions follow each other, and
leaves the rest. Of each fact such a run has a piece of its history, without gaps: additions and
removals in turn. An addition and the removal behind it cancel out. What is left of the piece is
a removal of something older at its beginning, an addition that still counts at its end, or both;
they keep their versions, so that older and newer files mean with them what they meant before.

Runs grow like the files of a log-structured merge tree: one takes in what is older as long as that
is not much larger than what it has. So there are few files, and a row is rewritten few times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake.transaction import AddAction

from inferlake.errors import Conflict
from inferlake.session import Engine
from inferlake.store.compact import compact_terms, swapped, write_facts
from inferlake.store.dictionary import Dictionary
from inferlake.store.facts import (
    LAYERS,
    TRIPLE,
    TRIPLE_ARITY,
    FactTable,
    Layer,
    argument_columns,
    stored_columns,
)
from inferlake.store.table import LiveFile, Snapshot
from inferlake.store.until import with_times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A fold is due when so many versions, or files of terms, would become one.
DUE = 12

# Files up to so many rows are rewritten whenever a fold is due, and larger ones than this never.
_SMALL = 10_000
_LARGE = 4_000_000

# A run takes in what is so many times its size: batches are rarely of just the same size.
_GROWTH = 1.5

# An addition goes if the run removes it later; a removal goes if the run has what it removes.
_STAYS_SQL = """
    SELECT one.* FROM {{one}} one LEFT ANTI JOIN {{other}} other
      ON {same} AND other.version {order} one.version"""


@dataclass(frozen=True)
class Folded:
    """What a fold did: how many files became how many, and the version that has them."""

    files_before: int
    files_after: int
    rows: int
    version: int


def fold_facts(
    engine: Engine,
    facts: FactTable,
    arities: Callable[[Snapshot], Mapping[str, int]],
    *,
    due: int = DUE,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Folded | None:
    """Fold what is due and return what that did, or None if nothing was.

    Files are written while others commit; the commit itself is made inside `alone()`, so that a
    writer of the same process is not overtaken in the middle of its work. If another compaction
    took the files first, nothing changes, and the next fold will find what is left.
    """
    base = facts.table.snapshot()
    known = with_times({**arities(base), TRIPLE: TRIPLE_ARITY})
    old: list[LiveFile] = []
    new: list[AddAction] = []
    for layer, relation in itertools.product(LAYERS, known):
        run = due_run(_of(base, layer, relation), due)
        if run:
            old += run
            new += _folded(engine, facts, layer, relation, known[relation], run)
    if not old:
        return None
    try:
        with alone():
            done = swapped(facts.table, base, tuple(old), new, engine)
    except Conflict:
        return None
    return Folded(len(old), len(new), sum(file.rows for file in old), done.version)


def facts_due(base: Snapshot, due: int = DUE) -> bool:
    """Tell whether a fold of facts is due, by the log alone."""
    pairs = itertools.product(LAYERS, {file.partition["relation"] for file in base.files})
    return any(due_run(_of(base, layer, relation), due) for layer, relation in pairs)


def terms_due(terms: Dictionary, due: int = DUE) -> tuple[LiveFile, ...]:
    """Return the files of the dictionary that are to be folded together; their order is no matter.

    Displaced terms stay where they are.
    """
    files = (f for f in terms.table.snapshot().files if not f.partition.get("displaced"))
    return _run(([file] for file in sorted(files, key=lambda file: file.rows)), due)


def fold_terms(
    engine: Engine,
    terms: Dictionary,
    *,
    due: int = DUE,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Folded | None:
    """Fold small files of the dictionary, in which no row ever contradicts another."""
    run = terms_due(terms, due)
    if not run:
        return None
    try:
        done = compact_terms(engine, terms, run, alone)
    except Conflict:
        return None
    after = done.files_after - (done.files_before - len(run))
    return Folded(len(run), after, sum(file.rows for file in run), done.version)


def due_run(files: Iterable[LiveFile], due: int) -> tuple[LiveFile, ...]:
    """Return the files of one relation and layer, of both signs, that are to be folded together.

    They are the newest ones, and no other file has a version between theirs.
    """
    return _run(reversed(_units(files)), due)


def _run(units: Iterable[list[LiveFile]], due: int) -> tuple[LiveFile, ...]:
    """Return the files of the first units, as long as none is much larger than those before it."""
    run: list[LiveFile] = []
    rows = count = 0
    for unit in units:
        size = sum(file.rows for file in unit)
        if size > _LARGE or (run and size > max(_GROWTH * rows, _SMALL)):
            break
        run += unit
        rows += size
        count += 1
    return tuple(run) if count >= due else ()


def _units(files: Iterable[LiveFile]) -> list[list[LiveFile]]:
    """Return files, oldest first, in groups whose ranges of versions do not meet."""
    units: list[list[LiveFile]] = []
    last = -1
    for file in sorted(files, key=lambda file: file.mins["version"]):
        if not units or file.mins["version"] > last:
            units.append([])
        units[-1].append(file)
        last = max(last, file.maxs["version"])
    return units


def _of(base: Snapshot, layer: Layer, relation: str) -> list[LiveFile]:
    return [
        file
        for file in base.files
        if file.partition["layer"] == layer and file.partition["relation"] == relation
    ]


def _folded(
    engine: Engine,
    facts: FactTable,
    layer: Layer,
    relation: str,
    arity: int,
    run: tuple[LiveFile, ...],
) -> list[AddAction]:
    """Write what is left of a run, and return the log entries."""
    added, removed = (
        [file for file in run if int(file.partition["sign"]) == sign] for sign in (1, -1)
    )
    come, gone = facts.read(engine, added, arity), facts.read(engine, removed, arity)
    if added and removed:
        come, gone = (
            _staying(engine, come, gone, ">", arity),
            _staying(engine, gone, come, "<", arity),
        )
    rows = sum(file.rows for file in added)
    files = write_facts(engine, facts, relation, arity, come, rows) if added else ()
    actions = list(facts.actions(files, layer, relation=relation))
    if removed:
        left = gone.selectExpr(*stored_columns(arity), "version").coalesce(1)
        files = facts.table.write(left.sortWithinPartitions(*left.columns[: min(arity, 3)]))
        actions += facts.actions(files, layer, sign=-1, relation=relation)
    return actions


def _staying(
    engine: Engine, rows: DataFrame, others: DataFrame, order: str, arity: int
) -> DataFrame:
    """Return the rows without an other one of the same fact that is later, or earlier."""
    same = " AND ".join(f"one.{name} = other.{name}" for name in argument_columns(arity))
    return engine.sql(_STAYS_SQL.format(same=same, order=order), one=rows, other=others)
