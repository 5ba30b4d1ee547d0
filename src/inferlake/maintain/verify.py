"""Verify: derive everything from the asserted facts again, elsewhere, and compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from inferlake.evaluate.blocks import Scratch, laid_out, same_sql
from inferlake.evaluate.closure import Closure, relation
from inferlake.evaluate.lasting import FOREVER_SQL
from inferlake.evaluate.report import shown_fact
from inferlake.maintain.derive import Derivation, Deriver, StoreBlock
from inferlake.maintain.expiries import read_expiries
from inferlake.maintain.rules import ChosenRules
from inferlake.plan.clauses import layout
from inferlake.plan.compile import Options
from inferlake.plan.patterns import Patterns
from inferlake.progress import Progress, Stopwatch, one_line
from inferlake.rules.load import compiled
from inferlake.rules.model import TRIPLE
from inferlake.session import Engine
from inferlake.store import LAYERS, Store
from inferlake.store.facts import argument_columns
from inferlake.store.failures import explained
from inferlake.store.table import Snapshot
from inferlake.store.until import has_expiring, of_facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Differences that a report shows.
_SHOWN = 10

_DIFFERENCE_SQL = """
    SELECT one.* FROM {one} one LEFT ANTI JOIN {other} other ON SAME"""
_TWICE_SQL = """
    SELECT COLUMNS FROM {stored} stored GROUP BY COLUMNS HAVING count(*) > 1"""


_LATEST_SQL = "SELECT COLUMNS, max(e) AS e FROM {found} found GROUP BY COLUMNS"


@dataclass(frozen=True)
class Difference:
    """Facts of a relation that are wrong in one way: missing, extra, or stored twice."""

    kind: str
    relation: str
    count: int
    shown: tuple[str, ...]

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.shown) else ""
        return f"{self.count:,} {self.kind} in {self.relation}: {', '.join(self.shown)}{more}"


@dataclass(frozen=True)
class VerifyReport:
    """Whether a version holds what follows from its asserted facts, no less and no more."""

    version: int
    rules: tuple[str, ...]
    derived: int
    differences: tuple[Difference, ...]
    engine: str
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        return not self.differences

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return {"operation": "verify", "ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        rules = ", ".join(self.rules) or "no rules"
        found = "equals" if self.ok else "differs from"
        what = f"version {self.version} {found} the {self.derived:,} facts that {rules} derive"
        return one_line(what, self.seconds, self.engine)


def verify(
    store: Store,
    engine: Engine,
    snapshot: Snapshot,
    progress: Progress,
    options: Options | None = None,
) -> VerifyReport:
    """Derive all of a version again and compare; the store is not changed."""
    watch = Stopwatch(progress)
    texts = store.rules_at(snapshot) or ()
    rules = ChosenRules(store, texts, "", compiled(texts))
    terms = store.terms.table.snapshot()
    with explained(store.place, engine, "nothing was verified"), store.scratch(engine) as folder:
        displaced = store.terms.displaced(engine)
        deriver = Deriver(
            store,
            engine,
            rules.program,
            layout(rules.program, {TRIPLE: 3}),
            lambda term: displaced.get(term, store.hash.of(term)),
            Derivation(options=options or Options()),
            lambda done: progress.note(str(done)),
        )
        with watch.phase("derive"):
            closure = deriver.close(Scratch(folder), [], deriver.stored(snapshot, ["asserted"]))
        with watch.phase("compare"):
            found = tuple(_differences(deriver, snapshot, closure))
        if has_expiring(snapshot):
            with watch.phase("times"):
                found += tuple(_wrong_times(deriver, snapshot, Scratch(folder.child("times"))))
    store.require_files(snapshot, terms)
    return VerifyReport(
        snapshot.version, rules.names, closure.derived, found, engine.name, watch.seconds
    )


def _differences(deriver: Deriver, snapshot: Snapshot, closure: Closure) -> Iterator[Difference]:
    stored = {file.partition["relation"] for file in snapshot.files}
    unknown = sorted(name for name in stored if of_facts(name) not in deriver.layout.arities)
    for name in unknown:  # its arity is nobody's business any more
        rows = sum(f.rows for f in snapshot.files if f.partition["relation"] == name)
        yield Difference("stored without a rule", name, rows, ())
    for name, arity in deriver.layout.arities.items():
        columns = argument_columns(arity)
        same = " AND ".join(f"one.{column} = other.{column}" for column in columns)
        layers = [StoreBlock(deriver.layout, deriver.store, snapshot, one, name) for one in LAYERS]
        derived = relation(deriver.engine, deriver.layout, layers[1:], name)
        both = relation(deriver.engine, deriver.layout, layers, name)
        again = closure.relation(name, derived_only=True)
        difference = _DIFFERENCE_SQL.replace("SAME", same)
        twice = _TWICE_SQL.replace("COLUMNS", ", ".join(columns))
        sql = deriver.engine.sql
        for kind, rows in (
            ("missing", sql(difference, one=again, other=derived)),
            ("extra", sql(difference, one=derived, other=again)),
            ("stored twice", sql(twice, stored=both)),
        ):
            count = rows.count()
            if count:
                yield Difference(kind, name, count, _shown(deriver, name, rows))


def _wrong_times(deriver: Deriver, snapshot: Snapshot, scratch: Scratch) -> Iterator[Difference]:
    """Yield the facts that are said to stand until another time than they do.

    What never expires is derived from nothing, and then until when the rest stands.
    """
    layout, engine = deriver.layout, deriver.engine
    queries = deriver.queries(scratch)
    times = read_expiries(deriver.store, queries, snapshot, layout.arities)
    within = replace(deriver, window=times)
    everlasting = deriver.close(scratch, [], within.stored(snapshot, ["asserted"]))
    everything = Patterns([(None,) * len(layout.columns)])

    def some(where: str, *shown: str) -> DataFrame:
        chosen = times.chosen(where, *shown)
        frame = None if chosen is None else chosen.frame(engine, everything)
        columns = (*layout.columns, *(one.split()[-1] for one in shown))
        if frame is not None:
            return frame
        return engine.empty(", ".join(f"{name} BIGINT" for name in columns))

    given = some("a IS NOT NULL", "a AS e")
    start = times.chosen("a IS NOT NULL", "a AS e")
    blocks = deriver.expiring(queries, everlasting.fixpoint.blocks).run(None, start)
    found = queries.facts(blocks, everything)
    latest = _LATEST_SQL.replace("COLUMNS", ", ".join(layout.columns))
    right = some("FALSE", "e") if found is None else engine.sql(latest, found=found)
    same = same_sql(layout, "one", "other")
    until = _DIFFERENCE_SQL.replace("SAME", f"{same} AND one.e = other.e")
    stored = some(f"e < {FOREVER_SQL}", "e")
    stated = relation(
        engine, layout, [StoreBlock(layout, deriver.store, snapshot, "asserted", TRIPLE)], TRIPLE
    ).selectExpr(*laid_out(layout, TRIPLE))
    ghosts = _DIFFERENCE_SQL.replace("SAME", same)
    for kind, rows in (
        ("without the right time", engine.sql(until, one=right, other=stored)),
        ("with a wrong time", engine.sql(until, one=stored, other=right)),
        ("with a time, but not asserted,", engine.sql(ghosts, one=given, other=stated)),
    ):
        for name, arity in layout.arities.items():
            mine = "TRUE" if layout.only_triples else f"r = {layout.number(name)}"
            wrong = rows.where(mine).select(*argument_columns(arity))
            count = wrong.count()
            if count:
                yield Difference(kind, name, count, _shown(deriver, name, wrong))


def _shown(deriver: Deriver, name: str, rows: DataFrame) -> tuple[str, ...]:
    some = [tuple(row) for row in rows.limit(_SHOWN).collect()]
    terms = deriver.store.terms.look_up(deriver.engine, {id for row in some for id in row})
    return tuple(shown_fact(name, tuple(terms[id] for id in row)) for row in some)
