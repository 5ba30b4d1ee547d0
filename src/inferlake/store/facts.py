"""The `facts` table: signed rows, and how to read what stands in a version.

A row says that a fact was added to (`sign` 1) or removed from (`sign` -1) a layer, in a version. A
fact stands in a layer if it was added there and not removed in a later version. Relation, layer and
sign are columns of the log only: a file belongs to one of each, and costs no bytes for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deltalake import Field, Schema
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction

from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.session import Engine
from inferlake.store.table import LiveFile, Snapshot, Table, add_action

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Layer = Literal["asserted", "derived"]
LAYERS: tuple[Layer, ...] = ("asserted", "derived")

# The relation of RDF triples; Datalog relations of other names share the table.
TRIPLE = "triple"

COLUMNS = ("s", "p", "o", "version")
_COLUMNS_SQL = "s BIGINT, p BIGINT, o BIGINT, version BIGINT"

_LIVE_SQL = """
    SELECT added.s, added.p, added.o, added.version
    FROM {added} added LEFT ANTI JOIN {removed} removed
      ON added.s = removed.s AND added.p = removed.p AND added.o = removed.o
     AND removed.version > added.version"""


def _schema() -> Schema:
    long, text, integer = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")
    fields = [Field(name, long) for name in COLUMNS]
    log_only = [Field("relation", text), Field("layer", text), Field("sign", integer)]
    return Schema(fields + log_only)


@dataclass(frozen=True)
class Candidates:
    """The ids a change can meet in the store: None means any."""

    predicates: frozenset[int] | None = None
    # Whole facts, for changes small enough to look up one by one.
    points: frozenset[tuple[int, int, int]] | None = None

    def may_be_in(self, file: LiveFile) -> bool:
        """Tell whether the file can hold one of these, by the statistics in the log."""
        if self.points is not None:
            return any(
                file.may_hold("p", p) and file.may_hold("s", s) and file.may_hold("o", o)
                for s, p, o in self.points
            )
        if self.predicates is not None:
            return any(file.may_hold("p", p) for p in self.predicates)
        return True


ANY = Candidates()


@dataclass(frozen=True)
class FactTable:
    """The facts of a store."""

    table: Table

    @classmethod
    def at(cls, store: Place) -> FactTable:
        """Return the facts of the store at `store`, whether or not they exist yet."""
        return cls(Table(store.child("facts"), _schema(), ("relation", "layer", "sign")))

    def files(
        self, snapshot: Snapshot, layer: Layer, sign: int, candidates: Candidates = ANY
    ) -> tuple[LiveFile, ...]:
        """Return the files of one layer and sign that `candidates` may be in."""
        return tuple(
            file
            for file in snapshot.files
            if file.partition["relation"] == TRIPLE
            and file.partition["layer"] == layer
            and int(file.partition["sign"]) == sign
            and candidates.may_be_in(file)
        )

    def live(
        self, engine: Engine, snapshot: Snapshot, layer: Layer, candidates: Candidates = ANY
    ) -> DataFrame:
        """Return the rows `s, p, o, version` that stand in `layer`, from the files that matter."""
        added = self.read(engine, self.files(snapshot, layer, 1, candidates))
        tombstones = self.files(snapshot, layer, -1, candidates)
        if not tombstones:
            return added
        return engine.sql(_LIVE_SQL, added=added, removed=self.read(engine, tombstones))

    def read(self, engine: Engine, files: Iterable[LiveFile]) -> DataFrame:
        """Return the rows of some files."""
        return read_files(engine, self.table, files, _COLUMNS_SQL)

    def actions(
        self, files: Iterable[DataFile], layer: Layer, *, sign: int = 1
    ) -> tuple[AddAction, ...]:
        """Return the log entries that put written files into a layer."""
        return tuple(
            add_action(file, columns=COLUMNS, relation=TRIPLE, layer=layer, sign=sign)
            for file in files
        )


def read_files(engine: Engine, table: Table, files: Iterable[LiveFile], columns: str) -> DataFrame:
    """Return the rows of Parquet files, by name; no rows where there are no files.

    The schema is given so that Spark starts no job to find it, and folders named `part=3` are not
    taken for columns.
    """
    files = tuple(files)
    if not files:
        return engine.empty(columns)
    if engine.name == "sail":
        table.require(files)  # Sail takes a file that is gone for one without rows; Spark fails
    reader = engine.session.read.schema(columns).option("recursiveFileLookup", "true")
    return reader.parquet(*table.addresses(files))
