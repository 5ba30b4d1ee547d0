"""Blocks: the facts of one step, as files that later steps read. Written once, never changed.

Between two steps nothing lives but files, so plans do not grow with the rounds.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from inferlake import parquet
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.plan.clauses import Layout, Row
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import id_sql
from inferlake.session import Engine, broadcast_sql, union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# More values than this are looked for by joining, not by listing.
LISTED = 64

# Facts so many times fewer than others are worth a pass over those.
_FEWER = 4


class Block(Protocol):
    """Facts that came together."""

    @property
    def patterns(self) -> Patterns | None:
        """What the facts look like; None if they may be any."""
        ...

    @property
    def rows(self) -> int: ...

    def may_hold(self, wanted: Patterns) -> bool:
        """Tell whether some file may hold a fact that matches `wanted`."""
        ...

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        """Return the facts that may match `wanted`, in the layout's columns, or None.

        Those that are not `near` may be left out: whoever subtracts one set from another does so
        first, while the sets are large.
        """
        ...

    def fingerprint(self, wanted: Patterns) -> Hashable | None:
        """Return what is the same again only for the same facts that match, if anything is."""
        ...

    @property
    def values(self) -> Mapping[int, frozenset[int]]:
        """The values in places that have only few."""
        ...


@dataclass(frozen=True)
class Near:
    """Few facts, with which others must agree in some places to be of use."""

    frame: DataFrame
    rows: int
    # Columns of the others, each with the column here that it must equal.
    columns: tuple[tuple[str, str], ...]

    def among(self, engine: Engine, has: Collection[str], found: DataFrame) -> DataFrame:
        """Return those of the facts `found` that agree, by way of the columns that it `has`."""
        on = [f"found.{one} = near.{mine}" for one, mine in self.columns if one in has]
        if not on:
            return found
        hint = broadcast_sql("near", self.rows)
        text = f"SELECT {hint}found.* FROM {{found}} found LEFT SEMI JOIN {{near}} near"
        return engine.sql(f"{text} ON {' AND '.join(on)}", found=found, near=self.frame)


def narrowed(
    frame: DataFrame, layout: Layout, wanted: Patterns, passing: Collection[int] = ()
) -> DataFrame:
    """Return `frame` without most rows that cannot match: engines skip parts of files for that.

    Places that are `passing` match in every row.
    """
    for place, name in enumerate(layout.columns):
        values = wanted.values(place, LISTED)
        if values is not None and place not in passing:
            some = ", ".join(map(id_sql, sorted(values)))
            frame = frame.where(f"{name} IN ({some})")
    return frame


class Plain:
    """A block of which nothing more is known."""

    @property
    def values(self) -> Mapping[int, frozenset[int]]:
        return {}

    def fingerprint(self, wanted: Patterns) -> Hashable | None:
        return None


B = TypeVar("B", bound=Block)


class Around(Plain, Generic[B]):
    """Facts of another block, of which as much is known as of that."""

    block: B

    @property
    def patterns(self) -> Patterns | None:
        return self.block.patterns

    @property
    def rows(self) -> int:
        """At most so many."""
        return self.block.rows

    @property
    def values(self) -> Mapping[int, frozenset[int]]:
        return self.block.values

    def may_hold(self, wanted: Patterns) -> bool:
        return self.block.may_hold(wanted)


@dataclass(frozen=True)
class FileBlock:
    """A block in Parquet files below a scratch folder, or the folder of a table.

    They have the layout's columns; or, if all facts are of one `relation`, those of its arguments.
    """

    layout: Layout
    at: Place
    files: tuple[DataFile, ...]
    patterns: Patterns | None
    values: Mapping[int, frozenset[int]] = field(default_factory=dict)
    relation: str | None = None

    @property
    def rows(self) -> int:
        return parquet.rows(self.files)

    def may_hold(self, wanted: Patterns) -> bool:
        return self._concerns(wanted) and any(self._may_hold(file, wanted) for file in self.files)

    def _concerns(self, wanted: Patterns) -> bool:
        """Tell whether `wanted` asks for the one relation, if these facts are all of one."""
        if self.relation is None or self.layout.only_triples:
            return True
        return any(row[0] in (None, self.layout.number(self.relation)) for row in wanted.rows)

    @property
    def addresses(self) -> list[str]:
        """Where engines find the files."""
        return [self.at.child(file.path).address for file in self.files]

    def table(self) -> pa.Table:
        """Return the facts in the layout's columns, on the driver."""
        found = parquet.read_table(self.at, self.files, self.layout.columns_of(self.relation))
        relation = 0 if self.relation is None else self.layout.number(self.relation)

        def column(name: str) -> pa.ChunkedArray | pa.Array:
            if name in found.column_names:
                return found[name]
            return pa.repeat(pa.scalar(relation if name == "r" else 0, pa.int64()), len(found))

        return pa.table({name: column(name) for name in self.layout.columns})

    def paths(self, wanted: Patterns) -> list[str]:
        """Return the addresses of the files that may hold a fact that matches `wanted`."""
        near = (file for file in self.files if self._may_hold(file, wanted))
        return [self.at.child(file.path).address for file in near]

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        return facts([self], engine, wanted, self.layout)

    def fingerprint(self, wanted: Patterns) -> Hashable | None:
        return None

    def _may_hold(self, file: DataFile, wanted: Patterns) -> bool:
        for place, name in enumerate(self.layout.columns):
            values = wanted.values(place, LISTED)
            if values is not None and not any(file.may_hold(name, value) for value in values):
                return False
        return True


@dataclass(frozen=True)
class Some(Plain):
    """Those facts of a block that a condition on another column of its files chooses."""

    block: FileBlock
    column: str
    value: int
    rows: int

    @property
    def patterns(self) -> Patterns | None:
        return self.block.patterns

    @property
    def values(self) -> Mapping[int, frozenset[int]]:
        return self.block.values

    def may_hold(self, wanted: Patterns) -> bool:
        return self.rows > 0 and self.block.may_hold(wanted)

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        paths = self.block.paths(wanted)
        if not paths:
            return None
        columns = self.block.layout.columns
        found = read(engine, paths, (*columns, self.column))
        chosen = found.where(f"{self.column} = {self.value}").select(*columns)
        return narrowed(chosen, self.block.layout, wanted)


@dataclass(frozen=True)
class Without(Around[Block]):
    """The facts of a block that are not among those `gone`."""

    layout: Layout
    block: Block
    gone: tuple[Block, ...]

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        found = self.block.frame(engine, wanted, near)
        gone = facts(self.gone, engine, wanted, self.layout)
        if found is None or gone is None:
            return found
        if near is not None:
            found = near.among(engine, self.layout.columns, found)
        return engine.sql(difference_sql(self.layout), one=found, other=gone)


@dataclass(frozen=True)
class Outside(Around[Block]):
    """The facts of a block that match none of some patterns."""

    layout: Layout
    block: Block
    none: Patterns

    def may_hold(self, wanted: Patterns) -> bool:
        # A filter that is false by the plan alone makes a union that Sail 0.7 cannot resolve.
        mine = self.block.patterns
        covered = mine is not None and all(map(self.none.cover, mine.rows))
        return not covered and self.block.may_hold(wanted)

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        found = self.block.frame(engine, wanted, near)
        if found is None:
            return None
        return found.where(f"NOT ({matching_sql(self.none.rows, self.layout)})")


def matching_sql(patterns: Iterable[Row], layout: Layout) -> str:
    """Return SQL that tells whether a fact matches one of `patterns`."""

    def one(row: Row) -> str:
        named = zip(row, layout.columns, strict=True)
        return " AND ".join(f"{name} = {id_sql(s)}" for s, name in named if isinstance(s, int))

    return " OR ".join(f"({one(row) or 'TRUE'})" for row in patterns)


def same_sql(layout: Layout, one: str, other: str, relation: str | None = None) -> str:
    """Return SQL that tells whether the rows of two aliases are the same fact.

    If both are of one `relation`, only its arguments need to be compared.
    """
    columns = layout.columns_of(relation)
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in columns)


def difference_sql(layout: Layout, relation: str | None = None) -> str:
    """Return SQL for the rows of {one} that are not in {other}, all of one `relation` if given."""
    same = same_sql(layout, "one", "other", relation)
    return f"SELECT one.* FROM {{one}} one LEFT ANTI JOIN {{other}} other ON {same}"


@dataclass(frozen=True)
class FrameBlock(Plain):
    """A block that a caller gave as a frame, in the layout's columns: facts of one pattern."""

    layout: Layout
    given: DataFrame
    pattern: Row
    rows: int = 0

    @property
    def patterns(self) -> Patterns:
        return Patterns([self.pattern])

    def may_hold(self, wanted: Patterns) -> bool:
        return True

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        # A filter that is false by the plan alone makes a union that Sail 0.7 cannot resolve.
        fixed = [place for place, slot in enumerate(self.pattern) if isinstance(slot, int)]
        return narrowed(self.given, self.layout, wanted, fixed)


def laid_out(layout: Layout, relation: str) -> list[str]:
    """Return the expressions that make the columns of an evaluation of a relation's own."""
    arity = layout.arities[relation]
    columns = [*layout.arguments[:arity]]
    columns += [f"BIGINT(0) AS {name}" for name in layout.arguments[arity:]]
    if not layout.only_triples:
        columns.insert(0, f"BIGINT({layout.number(relation)}) AS r")
    return columns


def in_layout(layout: Layout, relation: str, stored: DataFrame, wanted: Patterns) -> DataFrame:
    """Return stored facts in the columns of an evaluation, without most that cannot match."""
    arity, columns = layout.arities[relation], laid_out(layout, relation)
    fixed = () if layout.only_triples else (0, *range(arity + 1, len(layout.columns)))
    return narrowed(stored.selectExpr(*columns), layout, wanted, fixed)


def may_match(block: Block, wanted: Patterns) -> bool:
    """Tell whether a block may hold a fact that matches `wanted`, by all that is known of it."""
    alike = block.patterns is None or block.patterns.meet_any(wanted)
    return alike and block.may_hold(wanted)


def facts(
    blocks: Iterable[Block],
    engine: Engine,
    wanted: Patterns,
    layout: Layout,
    near: Near | None = None,
) -> DataFrame | None:
    """Return the facts of all `blocks` that may match `wanted`: one scan for all files alike.

    Those that are not `near` may be left out.
    """
    paths: dict[str | None, list[str]] = {}
    frames: list[DataFrame] = []
    for block in filter(partial(may_match, wanted=wanted), blocks):
        if isinstance(block, FileBlock):
            kind = None if layout.only_triples else block.relation
            paths.setdefault(kind, []).extend(block.paths(wanted))
        else:
            fewer = near is not None and near.rows * _FEWER < block.rows
            frame = block.frame(engine, wanted, near if fewer else None)
            if frame is not None:
                frames.append(frame)
    for relation, some in paths.items():
        found = read(engine, some, layout.columns_of(relation))
        if relation is not None:
            found = in_layout(layout, relation, found, wanted)
        else:
            found = narrowed(found, layout, wanted)
        frames.append(found)
    return union(frames) if frames else None


def read(engine: Engine, paths: list[str], columns: Iterable[str]) -> DataFrame:
    """Return the rows of Parquet files of ids. The schema is given so that no job looks for it."""
    schema = ", ".join(f"{name} BIGINT" for name in columns)
    return engine.session.read.schema(schema).parquet(*paths)


def numbers(columns: tuple[str, ...], rows: Iterable[tuple[int | None, ...]]) -> pa.Table:
    """Return rows of numbers as a table of the driver's."""
    some = tuple(rows)
    values = zip(*some, strict=True) if some else [()] * len(columns)
    return pa.table([pa.array(column, pa.int64()) for column in values], names=list(columns))


@dataclass
class Scratch:
    """A folder for blocks and small tables; whoever made it removes it."""

    at: Place
    count: int = 0
    _tables: dict[tuple, str] = field(default_factory=dict)

    def next(self) -> Place:
        """Return a place that nothing has been written to."""
        self.count += 1
        return self.at.child(f"{self.count:05}")

    def write(
        self, frame: DataFrame, relation: str | None = None
    ) -> tuple[Place, tuple[DataFile, ...]]:
        """Write the facts of a block and return where its files are.

        If all are of one `relation`, the frame has its arguments, and else the layout's columns.
        """
        return self.write_whole(frame)

    def write_whole(self, frame: DataFrame) -> tuple[Place, tuple[DataFile, ...]]:
        """Write a frame with all its columns, which later rounds may need."""
        place = self.next()
        return place, parquet.write(frame, place, how=parquet.PASSING)

    def keep(
        self,
        columns: tuple[str, ...],
        rows: Iterable[tuple[int, ...]],
        relation: str | None = None,
    ) -> tuple[Place, tuple[DataFile, ...]]:
        """Write the facts of a block that the driver has, and return where its files are."""
        place = self.next()
        return place, parquet.write_table(numbers(columns, rows), place, how=parquet.PASSING)

    def table(
        self, engine: Engine, columns: tuple[str, ...], rows: tuple[tuple[int | None, ...], ...]
    ) -> DataFrame:
        """Return rows of numbers as a frame whose size engines can see, by way of a file."""
        key = (columns, rows)
        if key not in self._tables:
            place = self.next()
            place.filesystem.create_dir(place.path, recursive=True)
            file = place.child("table.parquet")
            with file.filesystem.open_output_stream(file.path) as sink:
                pq.write_table(numbers(columns, rows), sink)
            self._tables[key] = file.address
        return read(engine, [self._tables[key]], columns)
