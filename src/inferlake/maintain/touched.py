"""The triples that a change names: until when each was asserted, and until when it is to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.evaluate.blocks import FileBlock, laid_out, same_sql
from inferlake.evaluate.described import looks
from inferlake.evaluate.lasting import FOREVER_SQL, Chosen
from inferlake.evaluate.queries import Queries
from inferlake.maintain.derive import StoreBlock
from inferlake.maintain.expiries import Expiries, after
from inferlake.plan.patterns import Patterns
from inferlake.rules.model import TRIPLE
from inferlake.store import Layer, Store
from inferlake.store.table import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What was said of each triple: the last word, whether it was removed at all, until when it is to
# be asserted since then, and how often it came too late for that.
_ASKED_SQL = """
    SELECT COLUMNS, BIGINT(max_by(sign, place)) AS last, BIGINT(max(IF(sign = -1, 1, 0))) AS gone,
        max(IF(sign = 1 AND place > coalesce(gone_at, -1), until, NULL)) AS until,
        BIGINT(sum(IF(sign = 1 AND NOT (until AFTER), 1, 0))) AS late
    FROM (SELECT *, max(IF(sign = -1, place, NULL)) OVER (PARTITION BY COLUMNS) AS gone_at
        FROM {said} said) said GROUP BY COLUMNS"""

_BEFORE_SQL = f"""
    SELECT asked.*,
        CASE WHEN times.e IS NOT NULL THEN times.a
            WHEN asserted.here = 1 THEN {FOREVER_SQL} END AS a0,
        CASE WHEN times.e IS NOT NULL THEN times.e
            WHEN asserted.here = 1 OR derived.here = 1 THEN {FOREVER_SQL} END AS e0
    FROM {{asked}} asked LEFT JOIN {{times}} times ON TIMES
    LEFT JOIN {{asserted}} asserted ON ASSERTED LEFT JOIN {{derived}} derived ON DERIVED"""

_COLUMNS = ("a0", "e0", "a1")

# What is counted, and of which triples.
_FLAGS = {
    "added": "alive IS NULL AND a1 IS NOT NULL",
    "removed": "alive IS NOT NULL AND a1 IS NULL",
    "not_asserted": "alive IS NULL AND last = -1",
    "comes": f"a1 = {FOREVER_SQL} AND NOT (a0 <=> {FOREVER_SQL})",
    "goes": f"a0 = {FOREVER_SQL} AND NOT (a1 <=> {FOREVER_SQL})",
    "lowered": "alive IS NOT NULL AND (a1 IS NULL OR a1 < alive)",
    "timed": f"a1 < {FOREVER_SQL}",
    "late": "",
}


@dataclass(frozen=True)
class Counts:
    """What a change does to assertions, in triples; and events that came too late, one by one."""

    added: int = 0
    removed: int = 0
    not_asserted: int = 0
    late: int = 0
    # Assertions for ever that come and go, those that end sooner than they did, those for a time.
    comes: int = 0
    goes: int = 0
    lowered: int = 0
    timed: int = 0


@dataclass(frozen=True)
class Touched:
    """Triples in files with, behind the columns of the layout, what was and what is to be.

    Until when they were asserted (`a0`) and stood (`e0`), null if they were not or did not, and
    until when they are to be asserted (`a1`).
    """

    block: FileBlock | None
    counts: Counts = Counts()

    def chosen(self, where: str, *shown: str) -> Chosen | None:
        """Return some of the triples, with columns as SQL behind those of the layout."""
        return None if self.block is None else Chosen(self.block, where, _COLUMNS, shown)

    @property
    def comes(self) -> Chosen | None:
        """Assertions for ever that were none."""
        return self.chosen(_FLAGS["comes"], "e0")

    @property
    def goes(self) -> Chosen | None:
        """What was asserted for ever and no longer is."""
        return self.chosen(_FLAGS["goes"])


def touched(
    store: Store,
    queries: Queries,
    snapshot: Snapshot,
    times: Expiries,
    said: DataFrame,
    clock: int | None,
) -> Touched:
    """Compare what is `said` of triples with a version of which some facts expire.

    The columns of `said` are s, p and o, a sign, the place in the order of what is said, and
    until when a triple is to be asserted.
    """
    layout = queries.layout
    text = _ASKED_SQL.replace("COLUMNS", "s, p, o").replace("until AFTER", after(clock, "until"))
    grouped = queries.engine.sql(text, said=said)
    others = ("last", "gone", "until", "late")
    asked = queries.block(grouped.selectExpr(*laid_out(layout, TRIPLE), *others))
    if asked is None:
        return Touched(None)
    frame = _with_past(store, queries, snapshot, times, asked, others)
    alive = f"IF({after(clock, 'a0')}, a0, NULL)"
    until = f"IF(last = 1 AND {after(clock, 'until')}, until, NULL)"
    a1 = f"greatest(IF(gone = 1, NULL, alive), {until}) AS a1"
    frame = frame.selectExpr("*", f"{alive} AS alive").selectExpr("*", a1)
    flags = [
        f"IF({where}, BIGINT(1), BIGINT(0)) AS {name}" if where else name
        for name, where in _FLAGS.items()
    ]
    block = queries.block(frame.selectExpr(*layout.columns, *_COLUMNS, *flags))
    assert block is not None
    return Touched(block, _counts(block))


def _with_past(
    store: Store,
    queries: Queries,
    snapshot: Snapshot,
    times: Expiries,
    asked: FileBlock,
    others: tuple[str, ...],
) -> DataFrame:
    """Return what was asked for with what stood before, as `a0` and `e0`."""
    layout, engine = queries.layout, queries.engine
    everything = Patterns([(None,) * len(layout.columns)])
    wanted = (looks((asked,)) or everything).limited(asked.values)
    rows = Chosen(asked, "TRUE", others, others).frame(engine, everything)
    assert rows is not None

    def stored(layer: Layer) -> DataFrame:
        block = StoreBlock(layout, store, snapshot, layer, TRIPLE)
        found = block.frame(engine, wanted) if block.may_hold(wanted) else None
        if found is None:
            return engine.empty(", ".join(f"{name} BIGINT" for name in (*layout.columns, "here")))
        # Only those asked for: then what is joined is small on both sides.
        near = engine.sql(
            f"""SELECT one.* FROM {{one}} one LEFT SEMI JOIN {{asked}} asked
                ON {same_sql(layout, "one", "asked")}""",
            one=found,
            asked=rows,
        )
        return near.selectExpr("*", "BIGINT(1) AS here")

    known = times.chosen("TRUE", "a", "e")
    frame = known.frame(engine, wanted) if known is not None else None
    if frame is None:
        frame = engine.empty(", ".join(f"{name} BIGINT" for name in (*layout.columns, "a", "e")))
    text = _BEFORE_SQL
    for alias in ("times", "asserted", "derived"):
        text = text.replace(f"ON {alias.upper()}", f"ON {same_sql(layout, 'asked', alias)}")
    return engine.sql(
        text, asked=rows, times=frame, asserted=stored("asserted"), derived=stored("derived")
    )


def _counts(block: FileBlock) -> Counts:
    """Add up what was flagged, without an engine."""
    return Counts(**{name: parquet.total(block.at, block.files, name) for name in _FLAGS})
