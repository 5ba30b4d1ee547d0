"""The sides of a change: what it adds and what it removes, as ids, once its input is staged."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.input import FEW, Staged, time_sql
from inferlake.maintain.asked import Change
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.plan.sql import id_sql
from inferlake.session import Engine, union
from inferlake.store.dictionary import encoded
from inferlake.store.facts import Candidates, not_among
from inferlake.store.store import Store
from inferlake.store.table import Snapshot
from inferlake.store.until import FOREVER
from inferlake.terms.shape import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# A change with more predicates than this is compared with every file: the list itself costs.
_MANY_PREDICATES = 10_000

_TERMS_SQL = """
    SELECT s AS id, s_term AS term FROM {triples} UNION SELECT p, p_term FROM {triples}
    UNION SELECT o, o_term FROM {triples}"""

# The last word on a triple counts.
_NET_SQL = """
    SELECT s, p, o, max_by(sign, place) AS sign FROM {changes} GROUP BY s, p, o"""


@dataclass(frozen=True)
class Side:
    """Triples of a change, as ids with repetitions; one by one if they are few."""

    triples: DataFrame
    size: int
    few: frozenset[tuple[int, int, int]] | None

    def distinct(self, *, at_least: int) -> int:
        """Return how many different triples there are, of which some are known."""
        if self.few is not None:
            return len(self.few)
        if at_least == self.size:
            return self.size
        return self.triples.distinct().count()

    def candidates(self, base: Snapshot) -> Candidates:
        """Return what the log needs to tell which files these can meet."""
        if not base.files:
            return Candidates()
        if self.few is not None:
            return Candidates(points=self.few)
        rows = self.triples.select("p").distinct().limit(_MANY_PREDICATES + 1).collect()
        many = len(rows) > _MANY_PREDICATES
        return Candidates({} if many else {"p": frozenset(row.p for row in rows)})


@dataclass(frozen=True)
class Sides:
    """The staged input of a change, encoded."""

    store: Store
    engine: Engine
    change: Change
    staged: dict[str, Staged | None]
    # Terms whose id is not their hash.
    displaced: dict[str, int]
    # For what has to be written on the way.
    folder: Place

    def net(self) -> tuple[Side | None, Side | None]:
        """What is added, and what is removed, once the last word on each triple is known."""
        add, remove, patch = (self._side(name) for name in ("add", "remove", "patch"))
        if patch is None:
            if add is not None and remove is not None:
                left = not_among(self.engine, remove.triples, add.triples)
                few = None if remove.few is None or add.few is None else remove.few - add.few
                remove = replace(remove, triples=left, few=few)
            return add, remove
        said = [patch.triples]
        for side, sign, place in ((remove, -1, 0), (add, 1, 1)):
            if side is not None:
                order = (f"{sign} AS sign", f"BIGINT({place}) AS place")
                said.append(side.triples.selectExpr("*", *order))
        net = self.engine.sql(_NET_SQL, changes=union(said))
        at = self.folder.child(f"net-{uuid.uuid4().hex}")  # not the first, if rules have changed
        files = parquet.write(net, at, how=parquet.PASSING)
        return self._signed(1, at, files), self._signed(-1, at, files)

    def _signed(self, sign: int, at: Place, files: tuple[DataFile, ...]) -> Side | None:
        """Return the triples whose last word has a sign, or None if no file has any."""
        if not any(file.may_hold("sign", sign) for file in files):
            return None
        schema, size = "s BIGINT, p BIGINT, o BIGINT, sign INT", parquet.rows(files)
        net = self.engine.session.read.schema(schema).parquet(at.address)
        few = None
        if size <= FEW:
            rows = parquet.read_rows(at, files, ("s", "p", "o", "sign"))
            few = frozenset((s, p, o) for s, p, o, one in rows if one == sign)
        return Side(net.where(f"sign = {sign}").select("s", "p", "o"), size, few)

    def _side(self, name: str) -> Side | None:
        staged = self.staged[name]
        # Where there is nothing Sail plans nothing, and then fails at what is made of it.
        if staged is None or not staged.triples_read:
            return None
        kept = ("sign", "place") if name == "patch" else ()
        if getattr(self.change, name).timed:
            kept += ("g_term",)
        rows, few = staged.triples, None if self.displaced else staged.few
        if name != "add" and (strangers := self._strangers(staged, name)):
            # To take them for the terms that have their ids would remove the wrong facts.
            known = " AND ".join(
                f"{place}_term NOT IN ({', '.join(map(quoted, strangers))})" for place in "spo"
            )
            rows, few = rows.where(known), None
        triples = encoded(self.engine, rows, self.displaced, *kept)
        return Side(triples, staged.triples_read, few)

    def _strangers(self, staged: Staged, name: str) -> list[str]:
        """Return the terms of removals that only share the id of a stored one."""
        terms, few = staged.terms, staged.few_terms
        if name == "patch":
            gone = staged.triples.where("sign = -1")
            terms, few = self.engine.sql(_TERMS_SQL, triples=gone), None
            if staged.triples_read <= FEW:
                few = frozenset((row.id, row.term) for row in terms.collect())
        return self.store.terms.strangers(self.engine, terms, few)

    def said(self) -> DataFrame | None:
        """Return what is said of triples: sign, place, and until when what is added stands."""
        frames = []
        orders = {"remove": ("-1 AS sign", "BIGINT(0) AS place")}
        orders["add"] = ("1 AS sign", "BIGINT(1) AS place")
        for name in ("remove", "add", "patch"):
            side = self._side(name)
            if side is not None:
                order = orders.get(name, ("sign", "place"))
                until = f"{self._until(name)} AS until"
                frames.append(side.triples.selectExpr("s", "p", "o", *order, until))
        return union(frames) if frames else None

    def _until(self, name: str) -> str:
        """Return SQL for the time until which what is added stands."""
        window = self.change.window
        if window is None:
            return id_sql(FOREVER)
        at = id_sql(window.at)
        if getattr(self.change, name).timed:
            at = f"coalesce({time_sql('g_term')}, {at})"
        latest = FOREVER - 1 - window.length  # a time beyond is as good, and would overflow
        return f"least({at}, {id_sql(latest)}) + {id_sql(window.length)}"
