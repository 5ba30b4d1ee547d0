"""Purge: delete terms and rules for good, once no kept version uses them.

A vacuum does so after something was forgotten. The dictionary serves all versions, and the rules of
all of them are kept, so neither knows by itself what is still needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from inferlake.errors import Conflict, StoreError
from inferlake.parquet import DataFile
from inferlake.rules.load import RuleText, compiled
from inferlake.session import Engine, union
from inferlake.store import Store
from inferlake.store.facts import TRIPLE
from inferlake.store.layout import place_terms
from inferlake.store.store import DROPPED, PURGED, PURGED_TO, PURGING, RULES
from inferlake.store.table import Commit, CommitRace, LiveFile, Snapshot, add_action

if TYPE_CHECKING:
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame

_ATTEMPTS = 20
_INFO = {"operation": "purge"}

# Files of the dictionary that no commit ever named may belong to a writer at work: the vacuum that
# comes before a purge decides on those.
_NEVER_HOURS = 24 * 36500

_UNUSED_SQL = "SELECT terms.* FROM {terms} terms LEFT ANTI JOIN {used} used ON terms.id = used.id"
_USED_SQL = "SELECT terms.* FROM {terms} terms LEFT SEMI JOIN {used} used ON terms.id = used.id"


def must_purge(store: Store, oldest_kept: int) -> bool:
    """Tell whether something was forgotten that no kept version knows, and its terms are there."""
    purged = store.snapshot().transaction(PURGED_TO) or 0
    return any(
        one.info.get("forgets") and purged < one.version <= oldest_kept for one in store.history()
    )


def purge(store: Store, engine: Engine, oldest_kept: int) -> int:
    """Delete the terms that no kept version uses, and return how many there were.

    A writer may meanwhile commit a fact with such a term, which it found in the dictionary. So a
    purge is announced by a commit to the facts, and another one ends it: whoever commits before the
    first is seen here; whoever commits between them looks at the dictionary again, before and
    after, should this process die; and whoever commits behind them looks again before. Rules go
    the same way.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _Purge(store, engine, oldest_kept).run()
        except CommitRace:
            continue
    raise Conflict(f"{store.place.address}: other writers came first; vacuum again later")


@dataclass
class _Purge:
    """One attempt. Others who change the dictionary meanwhile end it, before anything is gone."""

    store: Store
    engine: Engine
    oldest_kept: int
    # What went, in case that a writer needs it after all.
    _lost_files: tuple[LiveFile, ...] = ()
    _lost_displaced: dict[str, int] = field(default_factory=dict)
    _lost_rules: dict[str, tuple[RuleText, ...]] = field(default_factory=dict)

    def run(self) -> int:
        self._announce()
        facts = self.store.facts.table.snapshot()
        gone = self._drop_terms(self._used(facts))
        self._drop_rules()
        self._mark(facts)
        self._delete_files()
        return gone

    def _announce(self) -> None:
        """Tell writers that terms are about to go."""
        table = self.store.facts.table
        facts = table.snapshot()
        marks = {PURGING: facts.version + 1}
        table.commit(facts, Commit(_INFO, transactions=marks, changes_data=False))

    # --- What is used ----------------------------------------------------------------------------

    def _used(self, newest: Snapshot) -> DataFrame:
        """Return the ids that facts and rules of kept versions use."""
        files: dict[str, LiveFile] = {}
        for version in range(self.oldest_kept, newest.version + 1):
            table = self.store.facts.table
            snapshot = newest if version == newest.version else table.snapshot(version)
            files |= {file.path: file for file in snapshot.files}
        frames = list(self._ids(files.values()))
        if constants := self._constants():
            ids = pa.table({"id": pa.array(constants, pa.int64())})
            frames.append(self.engine.session.createDataFrame(ids))
        return union(frames).distinct() if frames else self.engine.empty("id BIGINT")

    def _ids(self, files: Iterable[LiveFile]) -> Iterator[DataFrame]:
        """Yield the ids in some files of facts, whatever their relation."""
        by_relation: dict[str, list[LiveFile]] = {}
        for file in files:
            by_relation.setdefault(file.partition["relation"], []).append(file)
        for relation, some in by_relation.items():
            for column in ("s", "p", "o"):
                yield self.store.facts.column(self.engine, some, column)
            if relation != TRIPLE:
                rest = self.store.facts.column(self.engine, some, "rest")
                yield rest.selectExpr("explode(id) AS id")

    def _constants(self) -> list[int]:
        """Return the ids of the terms that rules of kept versions mention."""
        displaced = self.store.terms.displaced(self.engine)
        kept, _ = self._digests()
        texts = [self._lost_rules.get(one) or self.store.rules.read(one) for one in kept]
        terms = {term for some in texts for term in compiled(some).constants}
        return [displaced.get(term, self.store.hash.of(term)) for term in sorted(terms)]

    def _digests(self) -> tuple[set[str], set[str]]:
        """Return the names of the rules that kept versions have, and of those that others had."""
        kept: set[str] = set()
        others: set[str] = set()
        begun = False  # with the oldest kept version, whose rules an older one may have named
        for one in self.store.history():  # newest first
            if RULES in one.info:
                (others if begun else kept).add(one.info[RULES]["digest"])
                begun = begun or one.version <= self.oldest_kept
        return kept, others - kept

    # --- What goes -------------------------------------------------------------------------------

    def _drop_terms(self, used: DataFrame) -> int:
        """Commit a dictionary without the terms that are not `used`, and count those."""
        table, dictionary = self.store.terms.table, self.store.terms
        base = table.snapshot()
        plain = tuple(file for file in base.files if not file.partition.get("displaced"))
        terms = dictionary.read(self.engine, plain)
        unused = self.engine.sql(_UNUSED_SQL, terms=terms, used=used).count()
        displaced = dictionary.displaced(self.engine, base)
        needed = self._needed(displaced, used)
        removed: tuple[LiveFile, ...] = ()
        actions: tuple[AddAction, ...] = ()
        if unused:
            removed += plain
            kept = self.engine.sql(_USED_SQL, terms=terms, used=used)
            placed = place_terms(self.engine, kept, sum(file.rows for file in plain))
            actions += _added(placed.gathered().write(table), displaced=False)
        if needed != displaced:
            removed += tuple(file for file in base.files if file.partition.get("displaced"))
            actions += self._apart(needed)
        if removed:
            try:
                marks = {DROPPED: base.version + 1}
                table.commit(base, Commit(_INFO, actions, removed, transactions=marks))
            except CommitRace:
                table.discard(action.path for action in actions)
                raise
        self._lost_files = removed
        self._lost_displaced = {t: id for t, id in displaced.items() if t not in needed}
        return unused + len(self._lost_displaced)

    def _needed(self, displaced: dict[str, int], used: DataFrame) -> dict[str, int]:
        """Return those of a few terms whose ids are used."""
        if not displaced:
            return {}
        ids = ", ".join(map(str, displaced.values()))
        found = {row.id for row in used.where(f"id IN ({ids})").collect()}
        return {term: id for term, id in displaced.items() if id in found}

    def _apart(self, displaced: dict[str, int]) -> tuple[AddAction, ...]:
        """Write displaced terms into a file of their own, if there are any."""
        if not displaced:
            return ()
        columns = {
            "id": pa.array(displaced.values(), pa.int64()),
            "term": pa.array(displaced.keys(), pa.string()),
        }
        return _added(self.store.terms.table.write_table(pa.table(columns)), displaced=True)

    def _drop_rules(self) -> None:
        """Delete the rules that only versions of the past had."""
        for digest in self._digests()[1]:
            with suppress(StoreError, FileNotFoundError):  # an earlier purge was here
                self._lost_rules[digest] = self.store.rules.read(digest)
                file = self.store.rules.place.child(f"{digest}.json")
                file.filesystem.delete_file(file.path)

    def _delete_files(self) -> None:
        """Delete what the dictionary was before; versions of it that others replaced, too."""
        table = self.store.terms.table
        table.discard({file.path for file in self._lost_files})
        table.discard(table.expired(0, _NEVER_HOURS))

    # --- What comes back -------------------------------------------------------------------------

    def _mark(self, facts: Snapshot) -> None:
        """Commit to the facts that terms were purged; put back what a writer still needed."""
        table = self.store.facts.table
        while True:
            marks = {PURGED_TO: self.oldest_kept, PURGED: facts.version + 1}
            commit = Commit(_INFO, transactions=marks, changes_data=False)
            try:
                table.commit(facts, commit)
                return
            except CommitRace:
                facts = table.snapshot()
                self._put_back(facts)

    def _put_back(self, facts: Snapshot) -> None:
        kept, _ = self._digests()
        for digest in kept & self._lost_rules.keys():
            self.store.rules.save(self._lost_rules[digest])
        used = self._used(facts)
        plain = [file for file in self._lost_files if not file.partition.get("displaced")]
        if plain:
            terms = self.store.terms.read(self.engine, plain)
            needed = self.engine.sql(_USED_SQL, terms=terms, used=used).select("id", "term")
            self.store.terms.add(self.engine, needed, needed.count())
        self._put_apart(self._needed(self._lost_displaced, used))

    def _put_apart(self, displaced: dict[str, int]) -> None:
        table = self.store.terms.table
        while True:
            missing = dict(displaced.items() - self.store.terms.displaced(self.engine).items())
            if not missing:
                return
            with suppress(CommitRace):
                commit = Commit({"operation": "terms"}, self._apart(missing))
                table.commit(table.snapshot(), commit)


def _added(files: Iterable[DataFile], *, displaced: bool) -> tuple[AddAction, ...]:
    return tuple(add_action(file, columns=("id",), displaced=displaced) for file in files)
