"""The `facts` table: signed rows, and how to read what stands in a version.

A row says that a fact was added to (`sign` 1) or removed from (`sign` -1) a layer, in a version. A
fact stands in a layer if it was added there and not removed in a later version. Relation, layer and
sign are columns of the log only: a file belongs to one of each, and costs no bytes for them.

The first three arguments of a fact are in columns s, p and o, whatever its relation; what a wide
relation has beyond them is an array in the column rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from deltalake import Field, Schema
from deltalake.schema import ArrayType, PrimitiveType
from deltalake.transaction import AddAction

from inferlake.parquet import DataFile, Ranged
from inferlake.paths import Place
from inferlake.session import Engine, broadcast_sql
from inferlake.store.table import AnyFile, LiveFile, Snapshot, Table, add_action

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Layer = Literal["asserted", "derived"]
LAYERS: tuple[Layer, ...] = ("asserted", "derived")

# The relation of RDF triples; Datalog relations of other names share the table.
TRIPLE = "triple"

TRIPLE_ARITY = 3
_FIRST = ("s", "p", "o")
_REST = "rest"
COLUMNS = (*_FIRST, "version")

_LIVE_SQL = """
    SELECT added.* FROM {added} added LEFT ANTI JOIN {removed} removed
      ON SAME AND removed.version > added.version"""


_SAME = "one.s = other.s AND one.p = other.p AND one.o = other.o"


def among(
    engine: Engine, triples: DataFrame, others: DataFrame, rows: int | None = None
) -> DataFrame:
    """Return the triples that are among about so many `rows` of others."""
    return _joined(engine, "SEMI", triples, others, rows)


def not_among(
    engine: Engine, triples: DataFrame, others: DataFrame, rows: int | None = None
) -> DataFrame:
    """Return the triples that are not among about so many `rows` of others."""
    return _joined(engine, "ANTI", triples, others, rows)


def _joined(
    engine: Engine, kind: str, triples: DataFrame, others: DataFrame, rows: int | None
) -> DataFrame:
    text = f"SELECT {broadcast_sql('other', rows)}one.* FROM {{one}} one"
    text += f" LEFT {kind} JOIN {{other}} other ON {_SAME}"
    return engine.sql(text, one=triples, other=others)


def _schema() -> Schema:
    long, text, integer = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")
    fields = [Field(name, long) for name in COLUMNS] + [Field(_REST, ArrayType(long))]
    log_only = [Field("relation", text), Field("layer", text), Field("sign", integer)]
    return Schema(fields + log_only)


@dataclass(frozen=True)
class Candidates:
    """The ids a change can meet in the store: a column that is not named may have any."""

    values: Mapping[str, frozenset[int]] = field(default_factory=dict)
    # Whole facts, for changes small enough to look up one by one.
    points: frozenset[tuple[int, int, int]] | None = None

    def may_be_in(self, file: Ranged) -> bool:
        """Tell whether the file can hold one of these, by the statistics in the log."""
        if self.points is not None:
            return any(
                file.may_hold("p", p) and file.may_hold("s", s) and file.may_hold("o", o)
                for s, p, o in self.points
            )
        return all(
            any(file.may_hold(column, value) for value in some)
            for column, some in self.values.items()
        )


ANY = Candidates()


@dataclass(frozen=True)
class FactTable:
    """The facts of a store."""

    table: Table
    # The stored files that frames were made of, with their rows.
    reads: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def at(cls, store: Place, reads: dict[str, int], writes: list[str] | None) -> FactTable:
        """Return the facts of the store at `store`, whether or not they exist yet."""
        columns = ("relation", "layer", "sign")
        return cls(Table(store.child("facts"), _schema(), columns, writes), reads)

    def files(
        self,
        snapshot: Snapshot,
        layer: Layer,
        sign: int,
        candidates: Candidates = ANY,
        relation: str = TRIPLE,
    ) -> tuple[LiveFile, ...]:
        """Return the files of one layer and sign that `candidates` may be in."""
        return tuple(
            file
            for file in snapshot.files
            if file.partition["relation"] == relation
            and file.partition["layer"] == layer
            and int(file.partition["sign"]) == sign
            and candidates.may_be_in(file)
        )

    def live(
        self,
        engine: Engine,
        snapshot: Snapshot,
        layer: Layer,
        candidates: Candidates = ANY,
        relation: str = TRIPLE,
        arity: int = TRIPLE_ARITY,
        near: Callable[[DataFrame], DataFrame] | None = None,
    ) -> DataFrame:
        """Return the rows that stand in `layer`, from the files that matter.

        The columns are s, p, o (as far as the relation goes), c3 and so on, and version. If only
        some rows matter, `near` takes out others, before those that were removed are subtracted.
        """
        added = self.read(engine, self.files(snapshot, layer, 1, candidates, relation), arity)
        tombstones = self.files(snapshot, layer, -1, candidates, relation)
        if not tombstones:
            return added
        same = " AND ".join(f"added.{name} = removed.{name}" for name in argument_columns(arity))
        removed = self.read(engine, tombstones, arity)
        added = added if near is None else near(added)
        return engine.sql(_LIVE_SQL.replace("SAME", same), added=added, removed=removed)

    def met(
        self,
        engine: Engine,
        snapshot: Snapshot,
        layer: Layer,
        triples: DataFrame,
        rows: int,
        candidates: Candidates = ANY,
    ) -> DataFrame:
        """Return `s, p, o` of those of about `rows` triples that stand in `layer`.

        They are looked for before those that were removed are subtracted: then these are few.
        """
        near = partial(among, engine, others=triples, rows=rows)
        return near(self.live(engine, snapshot, layer, candidates, near=near).select(*_FIRST))

    def read(
        self, engine: Engine, files: Iterable[AnyFile], arity: int = TRIPLE_ARITY
    ) -> DataFrame:
        """Return the rows of some files of one relation."""
        files = tuple(files)
        self.reads.update({file.path: file.rows for file in files if isinstance(file, LiveFile)})
        columns = [f"{name} BIGINT" for name in (*_FIRST[:arity], "version")]
        if arity <= TRIPLE_ARITY:
            return read_files(engine, self.table, files, ", ".join(columns))
        frame = read_files(
            engine, self.table, files, ", ".join([*columns, f"{_REST} ARRAY<BIGINT>"])
        )
        wide = [
            f"get({_REST}, {place}) AS {name}"
            for place, name in enumerate(argument_columns(arity)[TRIPLE_ARITY:])
        ]
        return frame.selectExpr(*_FIRST, *wide, "version")

    def column(self, engine: Engine, files: Iterable[LiveFile], name: str) -> DataFrame:
        """Return one column of some files, as `id`; nulls where a relation is too narrow."""
        kind = "ARRAY<BIGINT>" if name == _REST else "BIGINT"
        frame = read_files(engine, self.table, files, f"{name} {kind}")
        return frame.where(f"{name} IS NOT NULL").selectExpr(f"{name} AS id")

    def actions(
        self, files: Iterable[DataFile], layer: Layer, *, sign: int = 1, relation: str = TRIPLE
    ) -> tuple[AddAction, ...]:
        """Return the log entries that put written files into a layer."""
        return tuple(
            add_action(file, columns=COLUMNS, relation=relation, layer=layer, sign=sign)
            for file in files
        )


def argument_columns(arity: int) -> tuple[str, ...]:
    """Return the names of a relation's columns: s, p, o, c3, c4 and so on."""
    return _FIRST[:arity] + tuple(f"c{n}" for n in range(TRIPLE_ARITY, arity))


def stored_columns(arity: int) -> list[str]:
    """Return the expressions that make stored columns of a relation's own."""
    wide = argument_columns(arity)[TRIPLE_ARITY:]
    return [*_FIRST[:arity], *([f"array({', '.join(wide)}) AS {_REST}"] if wide else [])]


def stored_table(columns: Sequence[pa.ChunkedArray], version: int) -> pa.Table:
    """Return a few facts that the driver has, argument by argument, in the stored columns."""
    named: dict[str, Any] = dict(zip(_FIRST, columns, strict=False))
    rows = len(columns[0])
    if len(columns) > TRIPLE_ARITY:
        wide = [column.to_pylist() for column in columns[TRIPLE_ARITY:]]
        named[_REST] = pa.array(map(list, zip(*wide, strict=True)), pa.list_(pa.int64()))
    table = pa.table({**named, "version": pa.array([version] * rows, pa.int64())})
    order = ("p", "s", "o") if len(columns) >= TRIPLE_ARITY else ("s",)
    return table.sort_by([(name, "ascending") for name in order])


def read_files(engine: Engine, table: Table, files: Iterable[AnyFile], columns: str) -> DataFrame:
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
