"""Proofs: which facts still follow, asked backward from those in question.

The ways to derive facts become rows of a table of instances: a fact, and those it follows from.
What an instance uses is in question next. Facts that need no proof are proved at once, and an
instance whose facts are all proved proves its own. The search goes on only for facts that something
unproved still needs; what is left without proof is never looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.evaluate.blocks import Block, FileBlock, Outside, Some, same_sql
from inferlake.evaluate.queries import Ranges
from inferlake.evaluate.sets import Sets, rows_of
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import Query, Range, add_instances

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHECK, PROVE = "check", "prove"


@dataclass
class Proofs(Sets):
    """The search for proofs in one removal."""

    _checked: list[Block] = field(default_factory=list)
    _proved: list[Block] = field(default_factory=list)
    _expanded: list[Block] = field(default_factory=list)
    _disproved: list[Block] = field(default_factory=list)
    _instances: list[FileBlock] = field(default_factory=list)

    @property
    def checked(self) -> int:
        """How many facts were in question."""
        return rows_of(self._checked)

    def unproved(self, batch: Block) -> Block | None:
        """Return those of some facts that have no proof."""
        left = self._look_at(batch)
        if self._derivable(batch):
            self._disproved += self._hopeless(left)
            self._search(batch)
        elif left is not None and left.rows:
            self._disproved.append(left)
        if not self._expanded:
            return left if left is not None and left.rows else None
        return self._written(self._minus(self._all([batch]), self._proved))

    def _derivable(self, facts: Block) -> bool:
        """Tell whether a rule may derive some of these facts by more than one step."""
        if facts.patterns is None or not self.standing.rules:
            return bool(self.standing.rules)
        return facts.patterns.meet_any(self._derivables)

    def _hopeless(self, left: Block | None) -> list[Block]:
        """Return those of some facts without a direct proof that no rule derives otherwise.

        A search that knows of them follows no derivation that needs one: behind it may be a long
        way, and nothing to find.
        """
        if left is None or not self._tell_apart(self._derivables):
            return []
        outside = Outside(self.queries.layout, left, self._derivables)
        return [outside] if outside.may_hold(self._everything) else []

    @cached_property
    def _derivables(self) -> Patterns:
        """What rules may derive by more than one step."""
        steps = (group for group in self.standing.steps if group.atoms[0].meet_any(self._joined))
        return Patterns(row for group in (*self.standing.rules, *steps) for row in group.heads.rows)

    @cached_property
    def _joined(self) -> Patterns:
        """What rules that join derive."""
        return Patterns(row for group in self.standing.rules for row in group.heads.rows)

    def _search(self, batch: Block) -> None:
        """Prove what can be proved of some facts, backward as far as they need it."""
        visited = self._needed([batch])
        while True:
            frontier = self._written(self._minus(self._all(visited), self._expanded))
            if frontier is None:
                break
            self._expanded.append(frontier)
            instances = self._derivations(frontier)
            if instances is None:
                visited = self._needed([batch])
                continue
            for body in self._bodies(instances):
                self._look_at(body)
            self._saturate()
            visited = self._needed([batch])
        # All that they need was looked at, and proves nothing.
        self._disproved += visited

    def _look_at(self, facts: Block) -> Some | None:
        """Take facts into question that were not yet; prove those that need one step at most.

        Returns those of them that are left to prove.
        """
        began = time.perf_counter()
        asked = self._all([facts])
        if self._expanded:  # before that, nothing is in question but what was examined, once
            asked = self._minus(asked, self._checked)
        if asked is None:
            return None
        query = self._direct_proofs(facts)
        columns = ", ".join(self.queries.layout.columns)
        if query is None:
            block = self.queries.block(asked.selectExpr("*", "BIGINT(0) AS proved"))
        else:
            proofs = f"SELECT {columns}, count(*) AS n FROM ({{made}}) made GROUP BY {columns}"
            same = same_sql(self.queries.layout, "asked", "proofs")
            text = f"""SELECT asked.*, coalesce(proofs.n, 0) AS n
                FROM {{asked}} asked LEFT JOIN {{proofs}} proofs ON {same}"""
            found = self.queries.result(query, proofs)
            joined = self.queries.engine.sql(text, asked=asked, proofs=found)
            proved = "IF(n > 0, BIGINT(1), BIGINT(0)) AS proved"
            block = self.queries.block(joined.selectExpr("*", proved))
        if block is None:
            return None
        self._checked.append(block)
        proved = 0
        if query is not None:
            proved = parquet.total(block.at, block.files, "proved")
            self.account.work.backward += parquet.total(block.at, block.files, "n")
            if proved:
                self._proved.append(Some(block, "proved", 1, proved))
        self.account.say(CHECK, block.rows, began)
        return Some(block, "proved", 0, block.rows - proved)

    def _direct_proofs(self, facts: Block) -> Query | None:
        """Return the proofs of facts that need none, or one step from such facts."""
        standing = self.standing
        query = Query(self.queries.layout, texts=standing.texts)
        ranges = Ranges(new=(facts,), all=standing.explicit)
        # What was just taken out needs no search for it.
        stated = standing.axioms if facts is standing.removed else standing.explicit
        self._add_members(query, Ranges(new=(facts,), all=stated))
        self._add_backward(query, standing.steps, ranges)
        return query if query.selects else None

    def _derivations(self, frontier: FileBlock) -> FileBlock | None:
        """Return the ways to derive some facts from others that are not disproved."""
        began = time.perf_counter()
        standing = self.standing
        query = Query(self.queries.layout, texts=standing.texts)
        for groups, base in ((standing.rules, standing.known), (standing.steps, standing.implied)):
            ranges = Ranges(new=(frontier,), all=self._without(base, self._disproved))
            for group in groups:
                if groups is standing.steps and not group.atoms[0].meet_any(self._joined):
                    continue  # from no fact that a joining rule derives
                asked = self._asked(group, ranges)
                places = (Range.NEW, *(Range.ALL for _ in group.clause.body))
                if asked is not None and ranges.can_join(asked, places):
                    add_instances(query, asked, self._atoms, ranges)
        if not query.selects:
            return None
        at, files = self.queries.scratch.write_whole(self.queries.result(query))
        found = FileBlock(self.queries.layout, at, files, None)
        self.account.say(PROVE, found.rows, began)
        if not found.rows:
            return None
        self.account.work.backward += found.rows
        self._instances.append(found)
        return found

    def _bodies(self, instances: FileBlock) -> list[FileBlock]:
        """Return the facts that instances use."""
        found = self._written(self._used(self._read([instances])))
        return [found] if found is not None else []

    def _used(self, instances: DataFrame) -> DataFrame:
        columns = self.queries.layout.columns
        parts = [
            f"SELECT {', '.join(f'b{n}_{name} AS {name}' for name in columns)}"
            f" FROM {{found}} WHERE size > {n}"
            for n in range(self._atoms)
        ]
        text = f"SELECT DISTINCT {', '.join(columns)} FROM ({' UNION ALL '.join(parts)}) used"
        return self.queries.engine.sql(text, found=instances)

    @property
    def _atoms(self) -> int:
        groups = (*self.standing.rules, *self.standing.steps)
        return max(len(group.clause.body) for group in groups)

    def _read(self, instances: Iterable[FileBlock]) -> DataFrame:
        columns = self.queries.layout.columns
        names = [f"b{n}_{name}" for n in range(self._atoms) for name in columns]
        schema = ", ".join(f"{name} BIGINT" for name in (*names, "size", *columns))
        paths = [path for block in instances for path in block.addresses]
        return self.queries.engine.session.read.schema(schema).parquet(*paths)

    def _saturate(self) -> None:
        """Prove the facts of instances whose own are all proved, again and again."""
        while True:
            began = time.perf_counter()
            proved = self._all(self._proved)
            if proved is None:
                return
            columns = ", ".join(f"i.{name}" for name in self.queries.layout.columns)
            joins, where = [], []
            for n in range(self._atoms):
                on = " AND ".join(
                    f"i.b{n}_{name} = p{n}.{name}" for name in self.queries.layout.columns
                )
                first = self.queries.layout.columns[0]
                joins.append(f"LEFT JOIN {{proved}} p{n} ON {on}")
                where.append(f"(i.size <= {n} OR p{n}.{first} IS NOT NULL)")
            known = f"LEFT ANTI JOIN {{proved}} p ON {same_sql(self.queries.layout, 'i', 'p')}"
            text = f"""SELECT {columns}, count(*) AS n
                FROM (SELECT i.* FROM {{instances}} i {known}) i {" ".join(joins)}
                WHERE {" AND ".join(where)} GROUP BY {columns}"""
            found = self.queries.engine.sql(
                text, instances=self._read(self._instances), proved=proved
            )
            block = self.queries.block(found)
            if block is None:
                return
            self.account.work.forward += parquet.total(block.at, block.files, "n")
            self._proved.append(block)
            self.account.say(PROVE, block.rows, began)

    def _needed(self, facts: list[Block]) -> list[Block]:
        """Return the unproved among some facts, and all unproved ones that they may follow from."""
        found: list[Block] = []
        last = self._written(self._minus(self._all(facts), self._proved))
        while last is not None:
            found.append(last)
            if not self._instances:
                break
            frame = self._all([last])
            assert frame is not None
            text = f"""SELECT i.* FROM {{instances}} i LEFT SEMI JOIN {{heads}} h
                ON {same_sql(self.queries.layout, "i", "h")}"""
            instances = self._read(self._instances)
            some = self.queries.engine.sql(text, instances=instances, heads=frame)
            last = self._written(self._minus(self._used(some), [*self._proved, *found]))
        return found
