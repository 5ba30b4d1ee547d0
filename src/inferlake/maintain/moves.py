"""From what a version was and is to be, to signed rows: which facts change layer, and which times.

Until when a fact is asserted (`a`) and until when it stands (`e`) say all: it is in the asserted
layer if there is an `a`, else in the derived one if there is an `e`. A time that is not `FOREVER`
has a row in its layer; but that of an asserted fact has one in the derived layer only if it is
later than the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from inferlake import parquet
from inferlake.evaluate.blocks import Block, FileBlock, read
from inferlake.evaluate.described import READ_BY_DRIVER
from inferlake.evaluate.lasting import FOREVER_SQL
from inferlake.evaluate.queries import Queries
from inferlake.maintain.expiries import Expiries, after
from inferlake.maintain.touched import Touched
from inferlake.parquet import DataFile
from inferlake.plan.patterns import Patterns
from inferlake.session import union
from inferlake.store import Layer, Store
from inferlake.store.compact import write_facts
from inferlake.store.facts import argument_columns, stored_table
from inferlake.store.until import until

if TYPE_CHECKING:
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame

# Where a row comes from, with up to three times.
_TOUCHED, _BEFORE, _GONE, _FRESH, _LASTING = range(5)

# What is known of a fact: the kind and the number of a time in rows of the kind, 0 for none.
_KNOWN = {
    "t": (_TOUCHED, 0),
    "ta0": (_TOUCHED, 1),
    "te0": (_TOUCHED, 2),
    "ta1": (_TOUCHED, 3),
    "w": (_BEFORE, 0),
    "wa": (_BEFORE, 1),
    "we": (_BEFORE, 2),
    "gone": (_GONE, 0),
    "fresh": (_FRESH, 0),
    "fe": (_LASTING, 1),
}

_FOUND = ", ".join(
    f"max(IF(kind = {kind}, {f'x{number}' if number else 'BIGINT(1)'}, NULL)) AS {name}"
    for name, (kind, number) in _KNOWN.items()
)
_STATE_SQL = f"SELECT COLUMNS, {_FOUND} FROM {{rows}} rows GROUP BY COLUMNS"


@dataclass(frozen=True)
class Outcome:
    """What is to change, besides what the expiry of times does by itself."""

    touched: Touched
    # Facts that stood for ever and no longer do, unless they are among those that do so newly.
    gone: tuple[Block, ...] = ()
    fresh: tuple[Block, ...] = ()
    # Facts that stand for a time, each with its `e`, of which the latest counts.
    lasting: tuple[Block, ...] = ()
    # Whether the derived layer is written anew.
    rebuilt: bool = False


@dataclass(frozen=True)
class Moved:
    """Log entries, and how many facts come to and leave the derived layer, before their time."""

    actions: tuple[AddAction, ...] = ()
    derived: int = 0
    withdrawn: int = 0
    # Facts whose time had come.
    due: int = 0


@dataclass(frozen=True)
class _Kind:
    """Rows of one layer and sign: which facts have one, and with which time, if any."""

    layer: Layer
    sign: int
    where: str
    time: str = ""


_KINDS = (
    _Kind("asserted", 1, "a1 IS NOT NULL AND a0 IS NULL"),
    _Kind("asserted", -1, "a0 IS NOT NULL AND a1 IS NULL"),
    _Kind("derived", 1, "d1 AND NOT d0"),
    _Kind("derived", -1, "d0 AND NOT d1"),
    _Kind("asserted", 1, "ua1 IS NOT NULL AND NOT (ua1 <=> ua0)", "ua1"),
    _Kind("asserted", -1, "ua0 IS NOT NULL AND NOT (ua1 <=> ua0)", "ua0"),
    _Kind("derived", 1, "ud1 IS NOT NULL AND NOT (ud1 <=> ud0)", "ud1"),
    _Kind("derived", -1, "ud0 IS NOT NULL AND NOT (ud1 <=> ud0)", "ud0"),
)


_TIMES = ("ua0", "ua1", "ud0", "ud1")
_FLAGS = tuple(f"m{number}" for number in range(len(_KINDS)))


def moves(
    store: Store,
    queries: Queries,
    times: Expiries,
    outcome: Outcome,
    clock: int | None,
    version: int,
    relations: Iterable[str],
) -> Moved:
    """Write what changes from what expired at `times` before, to what is to be at `clock`.

    One job, and one for each kind of row if they are many.
    """
    changed = _changed(queries, times, outcome, clock)
    if changed is None:
        return Moved()
    few = changed.rows <= READ_BY_DRIVER
    writer = (_Few if few else _Many)(store, queries, changed, version)
    actions: list[AddAction] = []
    sums = {1: 0, -1: 0}
    for relation in sorted(set(relations) & set(queries.layout.arities)):
        for number, kind in enumerate(_KINDS):
            files = writer.written(relation, number)
            name = until(relation) if kind.time else relation
            actions += store.facts.actions(files, kind.layer, sign=kind.sign, relation=name)
            if kind.layer == "derived" and not kind.time:
                sums[kind.sign] += parquet.rows(files)
    due, expired = (parquet.total(changed.at, changed.files, name) for name in ("due", "expired"))
    return Moved(tuple(actions), sums[1], sums[-1] - expired, due)


def _changed(
    queries: Queries, times: Expiries, outcome: Outcome, clock: int | None
) -> FileBlock | None:
    """Write the facts of which something changes, with flags for the kinds of their rows."""
    state = _state(queries, times, outcome)
    if state is None:
        return None
    columns = queries.layout.columns
    placed = _placed(state, columns, clock, outcome.rebuilt)
    full = placed.selectExpr("*", *_rows(0), *_rows(1))
    flags = [f"IF({kind.where}, BIGINT(1), BIGINT(0)) AS m{n}" for n, kind in enumerate(_KINDS)]
    some = " OR ".join(f"{flag} = 1" for flag in _FLAGS)
    # Of what leaves the derived layer, that whose time has come is told apart.
    flags.append("IF(d0 AND NOT d1 AND due = 1, BIGINT(1), BIGINT(0)) AS expired")
    rows = full.selectExpr(*columns, *_TIMES, *flags, "due").where(f"{some} OR due = 1")
    at, files = queries.scratch.write_whole(rows)
    found = FileBlock(queries.layout, at, files, None)
    return found if found.rows else None


def _state(queries: Queries, times: Expiries, outcome: Outcome) -> DataFrame | None:
    """Return each fact that may change, once, with all that is known of it."""
    touched = outcome.touched.chosen("TRUE", *_row(_TOUCHED, "a0", "e0", "a1"))
    before = times.chosen("TRUE", *_row(_BEFORE, "a", "e", _NONE))
    columns = queries.layout.columns
    everything = Patterns([(None,) * len(columns)])
    frames = [
        frame
        for block in (touched, before)
        if block is not None
        if (frame := block.frame(queries.engine, everything)) is not None
    ]
    for blocks, row in (
        (outcome.gone, _row(_GONE, _NONE, _NONE, _NONE)),
        (outcome.fresh, _row(_FRESH, _NONE, _NONE, _NONE)),
        (outcome.lasting, _row(_LASTING, "e", _NONE, _NONE)),
    ):
        # Block by block: Sail 0.7 loses the columns of a union in a projection in a union.
        found = [block.frame(queries.engine, everything) for block in blocks]
        frames += [frame.selectExpr(*columns, *row) for frame in found if frame is not None]
    if not frames:
        return None
    text = _STATE_SQL.replace("COLUMNS", ", ".join(columns))
    return queries.engine.sql(text, rows=union(frames))


_NONE = "BIGINT(0)"


def _row(kind: int, *times: str) -> list[str]:
    return [f"{kind} AS kind", *(f"{time} AS x{n}" for n, time in enumerate(times, 1))]


def _placed(
    state: DataFrame, columns: tuple[str, ...], clock: int | None, rebuilt: bool
) -> DataFrame:
    """Return facts with the times of before (`a0`, `e0`) and of after (`a1`, `e1`)."""
    forever = FOREVER_SQL
    before = f"CASE WHEN t = 1 THEN te0 WHEN w = 1 THEN we WHEN gone = 1 THEN {forever} END AS e0"
    named = state.selectExpr(
        *columns,
        "IF(t = 1, ta0, wa) AS a0",
        before,
        f"IF(t = 1, ta1, IF({after(clock, 'wa')}, wa, NULL)) AS a1",
        *("gone", "fresh", "fe"),
        f"IF(w = 1 AND NOT ({after(clock, 'we')}), BIGINT(1), BIGINT(0)) AS due",
    )
    e0, stays = "e0", f"(e0 = {forever} AND gone IS NULL)"
    if rebuilt:  # nothing is in the derived layer, and nothing there says until when
        e0, stays = "a0 AS e0", "FALSE"
    e1 = f"IF(fresh = 1 OR a1 = {forever} OR {stays}, {forever}, fe) AS e1"
    return named.selectExpr(*columns, "a0", e0, "a1", e1, "due")


def _rows(n: int) -> list[str]:
    """Return SQL for the rows of one side: in the derived layer, and times by layer."""
    a, e, forever = f"a{n}", f"e{n}", FOREVER_SQL
    expires = f"({a} IS NULL AND {e} < {forever}) OR ({a} < {forever} AND {e} > {a})"
    return [
        f"({a} IS NULL AND {e} IS NOT NULL) AS d{n}",
        f"IF({a} < {forever}, {a}, NULL) AS ua{n}",
        f"IF({expires}, {e}, NULL) AS ud{n}",
    ]


@dataclass
class _Many:
    """Writes rows by the engine."""

    store: Store
    queries: Queries
    changed: FileBlock
    version: int

    def written(self, relation: str, number: int) -> tuple[DataFile, ...]:
        """Write the rows of one kind, if there are any."""
        layout, kind = self.queries.layout, _KINDS[number]
        arity = layout.arities[relation]
        columns = [*argument_columns(arity)]
        frame = self._frame
        if kind.time:
            # Named apart first: in a narrow relation the time's column is one of the layout's.
            frame = frame.selectExpr("*", f"{kind.time} AS time")
            columns.append(f"time AS {argument_columns(arity + 1)[-1]}")
        mine = "TRUE" if layout.only_triples else f"r = {layout.number(relation)}"
        rows = frame.where(f"{mine} AND m{number} = 1")
        rows = rows.selectExpr(*columns, f"BIGINT({self.version}) AS version")
        name = until(relation) if kind.time else relation
        return write_facts(
            self.queries.engine, self.store.facts, name, len(columns), rows, self.changed.rows
        )

    @cached_property
    def _frame(self) -> DataFrame:
        columns = (*self.queries.layout.columns, *_TIMES, *_FLAGS)
        return read(self.queries.engine, self.changed.addresses, columns)


class _Few(_Many):
    """Writes rows from the driver: sooner than an engine would begin."""

    def written(self, relation: str, number: int) -> tuple[DataFile, ...]:
        layout, kind = self.queries.layout, _KINDS[number]
        mine = pc.field(f"m{number}") == 1
        if not layout.only_triples:
            mine &= pc.field("r") == layout.number(relation)
        rows = self._table.filter(mine)
        if not rows.num_rows:
            return ()
        names = [*argument_columns(layout.arities[relation]), *([kind.time] if kind.time else [])]
        columns = [rows.column(name) for name in names]
        return self.store.facts.table.write_table(stored_table(columns, self.version))

    @cached_property
    def _table(self) -> pa.Table:
        columns = (*self.queries.layout.columns, *_TIMES, *_FLAGS)
        return parquet.read_table(self.changed.at, self.changed.files, columns)
