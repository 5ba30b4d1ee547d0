"""The `terms` table: which term an id stands for.

Ids are hashes, so the table serves only to decode, and to notice when two terms have one hash. The
first of them keeps it; every later one is *displaced*: it gets another id, and a row in a file of
its own (the log's column `displaced`), so that whoever encodes finds all exceptions at once.
Between two hashes of 62 bits that practically never happens; silently, it never happens at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import Field, Schema
from deltalake.schema import PrimitiveType

from inferlake import parquet
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.session import Engine
from inferlake.store.facts import read_files
from inferlake.store.layout import place_terms
from inferlake.store.table import Commit, CommitRace, LiveFile, Snapshot, Table, add_action
from inferlake.terms import FULL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS_SQL = "id BIGINT, term STRING"

# New terms, and ids in dispute as rows without a term: one job finds both, and the footers of
# what it wrote tell whether there is a dispute.
_SEEN_SQL = "SELECT id, min(term) AS term, max(term) AS last FROM {terms} GROUP BY id"
_SEEN_ONCE_SQL = "SELECT id, term, term AS last FROM {terms}"
_NEW_SQL = """
    WITH seen AS (SEEN),
    known AS (SELECT stored.id, stored.term
              FROM {stored} stored LEFT SEMI JOIN seen ON stored.id = seen.id)
    SELECT seen.id, IF(seen.term = seen.last AND known.id IS NULL, seen.term, NULL) AS term
    FROM seen LEFT JOIN known ON seen.id = known.id
    WHERE known.id IS NULL OR known.term <> seen.term OR known.term <> seen.last"""

_PLAIN_SQL = """
    SELECT terms.id, terms.term FROM {terms} terms LEFT ANTI JOIN {displaced} displaced
      ON terms.term = displaced.term"""

_STRANGERS_SQL = """
    SELECT DISTINCT terms.term FROM {stored} stored JOIN {terms} terms ON stored.id = terms.id
    WHERE stored.term <> terms.term"""

_ENCODED_SQL = """
    SELECT coalesce(ds.id, triples.s) AS s, coalesce(dp.id, triples.p) AS p,
           coalesce(do.id, triples.o) AS oKEPT
    FROM {triples} triples
    LEFT JOIN {displaced} ds ON triples.s_term = ds.term
    LEFT JOIN {displaced} dp ON triples.p_term = dp.term
    LEFT JOIN {displaced} do ON triples.o_term = do.term"""

_TRIPLE_NAMES = {"s": "subject", "p": "predicate", "o": "object"}


def _schema() -> Schema:
    return Schema(
        [
            Field("id", PrimitiveType("long")),
            Field("term", PrimitiveType("string")),
            Field("displaced", PrimitiveType("boolean")),
        ]
    )


@dataclass(frozen=True)
class Dictionary:
    """The terms of a store."""

    table: Table

    @classmethod
    def at(cls, store: Place) -> Dictionary:
        """Return the dictionary of the store at `store`, whether or not it exists yet."""
        return cls(Table(store.child("terms"), _schema(), ("displaced",)))

    def add(
        self,
        engine: Engine,
        terms: DataFrame,
        count: int,
        *,
        once: bool = False,
        few: frozenset[tuple[int, str]] | None = None,
    ) -> dict[str, int]:
        """Commit those of `terms` (`id, term`, about `count`) that are new.

        If each id is there `once`, they need no grouping. If they are given as `few` pairs too,
        only files that can hold one of them are read.

        Returns the displaced terms of the whole dictionary with their ids. The dictionary is
        committed before any fact that needs it: terms without facts harm nobody.
        """
        while True:
            try:
                return self._add(engine, terms, count, once, few)
            except CommitRace:
                continue  # somebody always wins, so this ends; what they added is compared anew

    def _add(
        self,
        engine: Engine,
        terms: DataFrame,
        count: int,
        once: bool,
        few: frozenset[tuple[int, str]] | None,
    ) -> dict[str, int]:
        snapshot = self.table.snapshot()
        displaced = self.displaced(engine, snapshot)
        if displaced:  # they have their places, and would now be taken for new
            apart = engine.session.createDataFrame(_term_table(displaced))
            terms = engine.sql(_PLAIN_SQL, terms=terms, displaced=apart)
            few = None if few is None else frozenset(p for p in few if p[1] not in displaced)
        ids = None if few is None else frozenset(id for id, _ in few)
        stored = self.frame(engine, snapshot, ids)
        if few is not None and ids is not None and len(ids) == len(few):
            known = {row.id: row.term for row in stored.collect()} if snapshot.files else {}
            if all(known.get(id, term) == term for id, term in few):
                fresh = {term: id for id, term in few if id not in known}
                self._commit_few(snapshot, fresh)
                return displaced
        if once and not snapshot.files:
            new = terms.select("id", "term")
        else:
            text = _NEW_SQL.replace("SEEN", _SEEN_ONCE_SQL if once else _SEEN_SQL)
            new = engine.sql(text, terms=terms, stored=stored)
        files = self._write(engine, new, count)
        moved: dict[str, int] = {}
        if sum(file.nulls["term"] for file in files):
            self.table.discard(file.path for file in files)
            disputed = {row.id for row in new.where("term IS NULL").collect()}
            owners, homeless = _settled(terms, stored, disputed, displaced)
            moved = _housed(
                homeless,
                lambda ids: _ids(terms, ids) | _ids(self.frame(engine, snapshot, ids), ids),
            )
            agreed = new.where("term IS NOT NULL")
            if owners:  # not so where every term in dispute had been displaced before
                kept = engine.session.createDataFrame(_term_table(owners))
                agreed = agreed.unionByName(kept)
            files = self._write(engine, agreed, count)
        actions = [add_action(f, columns=("id",), displaced=False) for f in files]
        if moved:
            rows = engine.session.createDataFrame(_term_table(moved))
            apart = self.table.write(rows.coalesce(1))
            actions += [add_action(f, columns=("id",), displaced=True) for f in apart]
        if actions:
            added = parquet.rows(files) + len(moved)
            info = {"operation": "terms", "added": added, "displaced": len(moved)}
            self.table.commit(snapshot, Commit(info, tuple(actions)))
        return displaced | moved

    def strangers(
        self, engine: Engine, terms: DataFrame, few: frozenset[tuple[int, str]] | None
    ) -> list[str]:
        """Return those of `terms` (`id, term`) whose id stands for another term.

        They are not in the dictionary, so no fact has them. Those displaced are, under other ids.
        """
        snapshot = self.table.snapshot()
        displaced = self.displaced(engine, snapshot)
        if few is not None:
            known = self.look_up(engine, {id for id, _ in few})
            found = [term for id, term in few if known.get(id, term) != term]
        else:
            stored = self.frame(engine, snapshot)
            rows = engine.sql(_STRANGERS_SQL, terms=terms, stored=stored).collect()
            found = [row.term for row in rows]
        return [term for term in found if term not in displaced]

    def _commit_few(self, snapshot: Snapshot, terms: dict[str, int]) -> None:
        """Commit a few terms that nobody disputes, if there are any."""
        if not terms:
            return
        files = self.table.write_table(_term_table(terms))
        actions = tuple(add_action(f, columns=("id",), displaced=False) for f in files)
        info = {"operation": "terms", "added": len(terms), "displaced": 0}
        self.table.commit(snapshot, Commit(info, actions))

    def _write(self, engine: Engine, terms: DataFrame, count: int) -> tuple[DataFile, ...]:
        return place_terms(engine, terms, count).gathered().write(self.table)

    def frame(
        self, engine: Engine, snapshot: Snapshot | None = None, ids: Iterable[int] | None = None
    ) -> DataFrame:
        """Return `id, term`: all of them, or those of the files that can hold `ids`."""
        files = (snapshot or self.table.snapshot()).files
        if ids is not None:
            wanted = sorted(ids)
            files = tuple(f for f in files if any(f.may_hold("id", n) for n in wanted))
            if not files or not wanted:
                return engine.empty(_COLUMNS_SQL)
            some = ", ".join(map(str, wanted))
            return self.read(engine, files).where(f"id IN ({some})")
        return self.read(engine, files)

    def read(self, engine: Engine, files: Iterable[LiveFile]) -> DataFrame:
        """Return the rows of some files."""
        return read_files(engine, self.table, files, _COLUMNS_SQL)

    def displaced(self, engine: Engine, snapshot: Snapshot | None = None) -> dict[str, int]:
        """Return the terms whose id is not their hash."""
        snapshot = snapshot or self.table.snapshot()
        files = [file for file in snapshot.files if file.partition.get("displaced")]
        if not files:
            return {}
        return {row.term: row.id for row in self.read(engine, files).collect()}

    def decode(
        self, engine: Engine, facts: DataFrame, snapshot: Snapshot | None = None
    ) -> DataFrame:
        """Return `subject, predicate, object, layer` for `facts` (`s, p, o, layer`), by joining."""
        return self.decode_columns(engine, facts, _TRIPLE_NAMES, "layer", snapshot=snapshot)

    def decode_columns(
        self,
        engine: Engine,
        facts: DataFrame,
        names: Mapping[str, str],
        *kept: str,
        snapshot: Snapshot | None = None,
    ) -> DataFrame:
        """Return the terms of some columns of ids, under new `names`, and columns to keep.

        Who has to know whether the files were there when they were read gives a `snapshot`.
        """
        terms = [f"{column}_.term AS {name}" for column, name in names.items()]
        others = [f"facts.{column}" for column in kept]
        joins = [f"JOIN {{terms}} {column}_ ON facts.{column} = {column}_.id" for column in names]
        text = f"SELECT {', '.join(terms + others)} FROM {{facts}} facts {' '.join(joins)}"
        return engine.sql(text, facts=facts, terms=self.frame(engine, snapshot))

    def look_up(self, engine: Engine, ids: Iterable[int]) -> dict[int, str]:
        """Return the terms of a few ids, from the files that can hold them."""
        return {row.id: row.term for row in self.frame(engine, ids=ids).collect()}


def _settled(
    terms: DataFrame, stored: DataFrame, disputed: set[int], displaced: dict[str, int]
) -> tuple[dict[str, int], list[str]]:
    """Settle `disputed` ids: return the new owners with their ids, and the terms that need others.

    Whoever is stored under an id stays its owner; among new terms the first in order becomes it.
    """
    some = ", ".join(map(str, sorted(disputed)))
    owner = {row.id: row.term for row in stored.where(f"id IN ({some})").collect()}
    claims = {(row.id, row.term) for row in terms.where(f"id IN ({some})").collect()}
    owners: dict[str, int] = {}
    homeless: list[str] = []
    for id, term in sorted(claims):
        if term in displaced or owner.get(id) == term:
            continue
        if id in owner:
            homeless.append(term)
        else:
            owner[id] = term
            owners[term] = id
    return owners, homeless


def _ids(terms: DataFrame, ids: Iterable[int]) -> set[int]:
    """Return those of `ids` that `terms` has."""
    some = ", ".join(map(str, ids))
    return {row.id for row in terms.where(f"id IN ({some})").collect()}


def _housed(homeless: list[str], taken: Callable[[Iterable[int]], set[int]]) -> dict[str, int]:
    """Give each term the first free id of a sequence that depends on the term alone."""
    found: dict[str, int] = {}
    attempt = 0
    while len(found) < len(homeless):
        attempt += 1
        wanted = {t: _other_id(t, attempt) for t in homeless if t not in found}
        occupied = taken(wanted.values()) | set(found.values())
        for term, id in wanted.items():
            if id not in occupied:
                found[term] = id
                occupied.add(id)
    return found


def _other_id(term: str, attempt: int) -> int:
    """Return an id for a displaced term: of full width, so that a weak test hash finds room too."""
    return FULL.of(f"{term} {attempt}")


def _term_table(ids: dict[str, int]) -> pa.Table:
    return pa.table(
        {"id": pa.array(ids.values(), pa.int64()), "term": pa.array(ids.keys(), pa.string())}
    )


def encoded(engine: Engine, triples: DataFrame, displaced: dict[str, int], *kept: str) -> DataFrame:
    """Return the ids `s, p, o` of staged triples, and columns to keep."""
    if not displaced:
        return triples.select("s", "p", "o", *kept)
    exceptions = engine.session.createDataFrame(_term_table(displaced))
    more = "".join(f", triples.{column}" for column in kept)
    text = _ENCODED_SQL.replace("KEPT", more)
    return engine.sql(text, triples=triples, displaced=exceptions)
