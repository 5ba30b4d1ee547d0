"""Forget: take out every asserted triple that names an IRI, and in the end the IRI itself.

The removal is a change like any other, followed by a compaction, so that the current version has no
row of it left. Older versions still know it, until a vacuum deletes their files; it then purges the
dictionary of terms that no kept version uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from inferlake.errors import Conflict
from inferlake.input import FRAME
from inferlake.maintain.change import Change, Source, apply
from inferlake.progress import Progress, counted
from inferlake.rules.load import compiled
from inferlake.session import Engine, union
from inferlake.store import LAYERS, Layer, Store
from inferlake.store.compact import compact_facts
from inferlake.store.facts import Candidates
from inferlake.store.layout import place_terms
from inferlake.store.store import PURGE
from inferlake.store.table import Commit, CommitRace, LiveFile, Snapshot, add_action

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPTS = 20

_UNUSED_SQL = "SELECT terms.* FROM {terms} terms LEFT ANTI JOIN {used} used ON terms.id = used.id"
_USED_SQL = "SELECT terms.* FROM {terms} terms LEFT SEMI JOIN {used} used ON terms.id = used.id"


@dataclass(frozen=True)
class ForgetReport:
    """What was, or would be, forgotten."""

    subject: str
    version: int
    asserted: int
    derived: int
    # Facts that name it all the same, because rules do.
    left: int
    dry_run: bool
    engine: str

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return {"operation": "forget", **asdict(self)}

    def __str__(self) -> str:
        asserted = counted(self.asserted, "asserted triple")
        if self.dry_run:
            return f"would forget {asserted} and {self.derived:,} derived that name {self.subject}"
        what = f"forgot {asserted} that named {self.subject}; version {self.version}"
        if self.left:
            what += f"; {counted(self.left, 'derived fact')} still name it, because rules do"
        return f"{what} (on {self.engine}); vacuum deletes what older versions know"


def forget(
    store: Store, engine: Engine, term: str, *, dry_run: bool, progress: Progress
) -> ForgetReport:
    """Remove all asserted triples that name a term, and what followed from them."""
    base = store.snapshot()
    named = {layer: _naming(store, engine, base, layer, term) for layer in LAYERS}
    counts = {layer: frame.count() if frame else 0 for layer, frame in named.items()}
    version, left = base.version, 0
    if not dry_run:
        if counts["asserted"]:
            assert named["asserted"] is not None
            triples = store.terms.decode(engine, named["asserted"])
            change = Change(remove=Source((FRAME,), triples), operation="forget")
            apply(store, engine, change, progress)
        arities = compiled(store.rules_at(store.snapshot()) or ()).arities
        version = compact_facts(engine, store.facts, arities, forgets=True).version
        still = _naming(store, engine, store.snapshot(), "derived", term)
        left = still.count() if still is not None else 0
    return ForgetReport(
        term, version, counts["asserted"], counts["derived"], left, dry_run, engine.name
    )


def _naming(
    store: Store, engine: Engine, snapshot: Snapshot, layer: Layer, term: str
) -> DataFrame | None:
    """Return the triples of a layer that have a term in some place, or None."""
    id = store.terms.displaced(engine).get(term, store.hash.of(term))
    found = []
    for place, column in enumerate("spo"):
        near = Candidates({column: frozenset({id})})
        if store.facts.files(snapshot, layer, 1, near):
            others = "".join(f" AND {earlier} <> {id}" for earlier in "spo"[:place])
            live = store.facts.live(engine, snapshot, layer, near)
            some = live.where(f"{column} = {id}{others}")
            found.append(some.selectExpr("s", "p", "o", f"'{layer}' AS layer"))
    return union(found) if found else None


# --- The dictionary ------------------------------------------------------------------------------


def must_purge(store: Store, oldest_kept: int) -> bool:
    """Tell whether something was forgotten that no kept version knows, and its terms are there."""
    purged = store.snapshot().transaction(PURGE) or 0
    return any(
        one.info.get("forgets") and purged < one.version <= oldest_kept for one in store.history()
    )


def purge(store: Store, engine: Engine, oldest_kept: int) -> int:
    """Delete the terms that no kept version uses, and return how many there were.

    A writer may meanwhile commit a fact with such a term, which it found in the dictionary. So the
    facts get a commit too: whoever commits before it is seen here, and its terms are put back;
    whoever commits after it has to look at the dictionary again.
    """
    for _ in range(_ATTEMPTS):
        facts, terms = store.facts.table.snapshot(), store.terms.table.snapshot()
        plain = tuple(file for file in terms.files if not file.partition.get("displaced"))
        every = store.terms.read(engine, plain)
        used = _used(store, engine, facts, oldest_kept)
        unused = engine.sql(_UNUSED_SQL, terms=every, used=used).count()
        kept = engine.sql(_USED_SQL, terms=every, used=used)
        placed, parts = place_terms(kept, sum(file.rows for file in plain))
        ordered = placed.repartition(parts, "part").sortWithinPartitions("part", "id")
        written = store.terms.table.write(ordered, by="part")
        actions = tuple(add_action(file, columns=("id",), displaced=False) for file in written)
        try:
            store.terms.table.commit(terms, Commit({"operation": "purge"}, actions, plain))
        except CommitRace:
            store.terms.table.discard(action.path for action in actions)
            continue
        _mark(store, engine, facts, oldest_kept, every)
        for file in plain:
            with suppress(FileNotFoundError):
                at = store.terms.table.place.child(file.path)
                at.filesystem.delete_file(at.path)
        return unused
    raise Conflict(f"{store.place.address}: other writers came first; vacuum again later")


def _mark(
    store: Store, engine: Engine, facts: Snapshot, oldest_kept: int, every: DataFrame
) -> None:
    """Commit to the facts that terms were purged; put back those that a writer still needed."""
    while True:
        info = {"operation": "purge"}
        commit = Commit(info, transactions={PURGE: oldest_kept}, changes_data=False)
        try:
            store.facts.table.commit(facts, commit)
            return
        except CommitRace:
            facts = store.facts.table.snapshot()
            used = _used(store, engine, facts, oldest_kept)
            needed = engine.sql(_USED_SQL, terms=every, used=used)
            store.terms.add(engine, needed.select("id", "term"), needed.count())


def _used(store: Store, engine: Engine, newest: Snapshot, oldest_kept: int) -> DataFrame:
    """Return the ids that facts and rules of kept versions use."""
    files: dict[str, LiveFile] = {}
    constants: set[str] = set()
    for version in range(oldest_kept, newest.version + 1):
        snapshot = newest if version == newest.version else store.facts.table.snapshot(version)
        files |= {file.path: file for file in snapshot.files}
        constants |= compiled(store.rules_at(snapshot) or ()).constants
    frames = list(_ids(store, engine, list(files.values())))
    ids = [store.hash.of(term) for term in constants]
    if ids:
        table = pa.table({"id": pa.array(ids, pa.int64())})
        frames.append(engine.session.createDataFrame(table))
    return union(frames).distinct() if frames else engine.empty("id BIGINT")


def _ids(store: Store, engine: Engine, files: list[LiveFile]) -> Iterator[DataFrame]:
    """Yield the ids in some files of facts, whatever their relation."""
    by_relation: dict[str, list[LiveFile]] = {}
    for file in files:
        by_relation.setdefault(file.partition["relation"], []).append(file)
    for some in by_relation.values():
        for column in ("s", "p", "o"):
            yield store.facts.column(engine, some, column)
        yield store.facts.column(engine, some, "rest").selectExpr("explode(id) AS id")
