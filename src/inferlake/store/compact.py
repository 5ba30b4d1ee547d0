"""Compaction: fold signed rows into few, well-placed files that hold the same facts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake.transaction import AddAction

from inferlake.errors import Conflict
from inferlake.parquet import DataFile
from inferlake.session import Engine
from inferlake.store.facts import LAYERS, TRIPLE, TRIPLE_ARITY, FactTable, stored_columns
from inferlake.store.layout import place_facts, place_terms, rows_per_file
from inferlake.store.table import Commit, CommitRace, LiveFile, Snapshot, Table, add_action
from inferlake.store.until import with_times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from inferlake.store.dictionary import Dictionary

_ATTEMPTS = 20


@dataclass(frozen=True)
class Compacted:
    """What a compaction did to one table."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    version: int


def compact_facts(
    engine: Engine,
    facts: FactTable,
    arities: Callable[[Snapshot], Mapping[str, int]],
    *,
    forgets: bool = False,
) -> Compacted:
    """Rewrite every relation and layer without tombstones, triples placed for pruning.

    Rows keep the version they were added in, so that a removal committed meanwhile still counts.
    Relations whose `arities` a version does not know stay as they are. If it `forgets`, the log
    says that what the old files had and the new ones have not is to be deleted for good.
    """
    base = facts.table.snapshot()
    actions: list[AddAction] = []
    known = with_times({**arities(base), TRIPLE: TRIPLE_ARITY})
    for layer, relation in itertools.product(LAYERS, known):
        added = facts.files(base, layer, 1, relation=relation)
        if added:
            rows = sum(file.rows for file in added)
            live = facts.live(engine, base, layer, relation=relation, arity=known[relation])
            files = write_facts(engine, facts, relation, known[relation], live, rows)
            actions += facts.actions(files, layer, relation=relation)
    old = tuple(file for file in base.files if file.partition["relation"] in known)
    return swapped(facts.table, base, old, actions, engine, forgets=forgets)


def write_facts(
    engine: Engine, facts: FactTable, relation: str, arity: int, live: DataFrame, rows: int
) -> tuple[DataFile, ...]:
    """Write `live` facts of a relation, about so many `rows`: into few files, each well sorted."""
    stored = live.selectExpr(*stored_columns(arity), "version")
    if relation == TRIPLE:
        return place_facts(engine, stored, rows).gathered().write(facts.table)
    return facts.table.write(stored.coalesce(max(1, rows // rows_per_file(rows))))


def compact_terms(
    engine: Engine,
    terms: Dictionary,
    some: tuple[LiveFile, ...] | None = None,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Compacted:
    """Rewrite the dictionary's files into ranges of ids; displaced terms stay where they are.

    By default all of them; else only `some`, none of which has displaced terms. The commit is made
    inside `alone()`.
    """
    base = terms.table.snapshot()
    files = some
    if files is None:
        files = tuple(file for file in base.files if not file.partition.get("displaced"))
    rows = terms.read(engine, files)
    placed = place_terms(engine, rows, sum(file.rows for file in files))
    written = placed.gathered().write(terms.table) if files else ()
    actions = [add_action(file, columns=("id",), displaced=False) for file in written]
    with alone():
        return swapped(terms.table, base, files, actions, engine)


def swapped(
    table: Table,
    base: Snapshot,
    old: tuple[LiveFile, ...],
    new: list[AddAction],
    engine: Engine,
    *,
    forgets: bool = False,
) -> Compacted:
    """Commit `new` files in place of `old` ones, on top of whatever was committed meanwhile.

    That is sound as long as the old files are still there: commits since only added files. If they
    are not, the new ones are deleted, and nothing has changed.
    """
    info = {
        "operation": "compact",
        "files_before": len(old),
        "files_after": len(new),
        "engine": engine.name,
        **({"forgets": True} if forgets else {}),
    }
    commit = Commit(info, tuple(new), old, changes_data=False)
    snapshot = base
    for _ in range(_ATTEMPTS):
        if not {file.path for file in old} <= {file.path for file in snapshot.files}:
            break
        try:
            version = table.commit(snapshot, commit)
        except CommitRace:
            snapshot = table.snapshot()
            continue
        return Compacted(
            len(base.files),
            len(base.files) - len(old) + len(new),
            sum(file.size for file in base.files),
            sum(file.size for file in base.files)
            - sum(file.size for file in old)
            + sum(action.size for action in new),
            version,
        )
    table.discard(action.path for action in new)
    raise Conflict(
        f"{table.place.address}: another compaction came first; nothing is lost, run it again"
        " if files are still many"
    )
