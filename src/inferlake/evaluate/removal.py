"""Removal: what of a closed set of facts no longer follows, once some facts and rules are gone.

Two ways, both by sets, a query a step.

`dred` first removes everything that may have depended on what is gone, and then brings back what
still follows. Each rule instance is looked at once on the way out (an atom before the one that
meets a removed fact ranges over facts not yet taken out), and once on the way back.

`bf` asks of a fact, before it removes it and looks at what depended on it, whether it has another
proof. It goes backward level by level: the ways to derive the facts in question become rows of a
table of instances, the facts they use are in question next. Facts that need no proof are proved at
once, and an instance whose facts are all proved proves its own. The search goes on only for facts
that something unproved still needs; what is left without proof is never looked at again.

`counting` takes the rules in parts, of which none needs what a later one derives. So a fact of a
part stays if the number of its derivations from the facts that are left, of earlier parts, is not
zero. A part that feeds itself is left to `bf`: facts that support each other in a circle have
derivations, and no proof.

Composed linear rules ("steps") take a fact to all that follows from it alone. So a proof over
steps has one step, from a fact that needs no proof or that a joining rule derived.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.evaluate.blocks import (
    Block,
    FileBlock,
    Outside,
    Some,
    Without,
    difference_sql,
    matching_sql,
    may_match,
    same_sql,
)
from inferlake.evaluate.described import looks
from inferlake.evaluate.queries import Queries, Ranges
from inferlake.evaluate.report import Round
from inferlake.plan.groups import Group
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import (
    Query,
    Range,
    add_instances,
    add_members,
    add_variant,
    backward,
    variants,
)
from inferlake.plan.strata import Part
from inferlake.session import union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Parts that derive more kinds of facts than this are not told apart.
_MOST_PATTERNS = 200

CHECK, PROVE, DELETE, RESTORE = "check", "prove", "delete", "restore"


@dataclass(frozen=True)
class Standing:
    """Facts and rules as they are when those to be removed are gone, and nothing else is yet."""

    # Rules that join; and linear ones too, unless they are composed.
    rules: tuple[Group, ...]
    # Composed linear rules.
    steps: tuple[Group, ...]
    # Every fact there was.
    known: tuple[Block, ...]
    # Facts that need no proof, and those of them that are not asserted.
    explicit: tuple[Block, ...]
    axioms: tuple[Block, ...]
    # All facts that rules may have derived.
    implied: tuple[Block, ...]
    # The rules again, divided so that each part may be settled before the next.
    parts: Callable[[], list[Part]] = list
    texts: dict[int, str] = field(default_factory=dict)
    # Asserted facts that go.
    removed: Block | None = None


@dataclass
class Work:
    """What a removal looked at: facts, and rule instances."""

    checked: int = 0
    examined: int = 0
    backward: int = 0
    forward: int = 0
    deletion: int = 0

    def __add__(self, other: Work) -> Work:
        mine, theirs = astuple(self), astuple(other)
        return Work(*(one + another for one, another in zip(mine, theirs, strict=True)))


@dataclass
class Removal:
    """One removal under way."""

    queries: Queries
    standing: Standing
    listen: Callable[[Round], None] = lambda done: None
    # Facts that do not meet this condition are left alone; what those that do look like, if known.
    among: str = "TRUE"
    wanted: Patterns | None = None
    rounds: list[Round] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    # Facts without a proof: they are to be deleted.
    gone: list[Block] = field(default_factory=list)

    _examined: list[Block] = field(default_factory=list)
    _checked: list[Block] = field(default_factory=list)
    _proved: list[Block] = field(default_factory=list)
    _expanded: list[Block] = field(default_factory=list)
    _disproved: list[Block] = field(default_factory=list)
    _instances: list[FileBlock] = field(default_factory=list)

    # --- Backward/Forward ------------------------------------------------------------------------

    def bf(self, seeds: Block) -> None:
        """Find what is gone, asking each fact for another proof before its consequences go."""
        self._walk(seeds, self._unproved)
        self.work.checked = _rows(self._checked)

    def dred(self, seeds: Block) -> None:
        """Find what is gone: all consequences, without those that can be derived again."""
        self._walk(seeds, lambda facts: facts)
        overdeleted, self.gone = self.gone, []
        restored = self._restored(overdeleted)
        left = self._written(self._minus(self._all(overdeleted), restored))
        self.gone = [left] if left is not None else []

    def _walk(self, seeds: Block, unproved: Callable[[Block], Block | None]) -> None:
        """Follow what is gone to its consequences, as far as facts are `unproved`."""
        self._examined.append(seeds)
        batch: Block | None = seeds
        while batch is not None:
            lost = unproved(batch)
            stepped = None if lost is None else self._consequences(lost, self.standing.steps)
            more = None if stepped is None else unproved(stepped)
            both = tuple(block for block in (lost, more) if block is not None)
            batch = self._consequences_of(both, self.standing.rules) if both else None
            self.gone += both
        self.work.examined = _rows(self._examined)

    def _consequences(self, lost: Block, groups: tuple[Group, ...]) -> Block | None:
        return self._consequences_of((lost,), groups)

    def _consequences_of(self, lost: tuple[Block, ...], groups: tuple[Group, ...]) -> Block | None:
        """Return what groups derived with facts that are lost now, if it was not looked at yet."""
        there = self._known_without(self.gone)
        ranges = Ranges(self._known_without([*self.gone, *lost]), lost, there)
        query = self._forward(groups, ranges, self.wanted)
        if query is None:
            return None
        began = time.perf_counter()
        made = self._new(query, self._examined)
        if made is None:
            return None
        self.work.deletion += parquet.total(made.at, made.files, "n")
        return self._kept(DELETE, made, self._examined, began)

    # --- Counting --------------------------------------------------------------------------------

    def counting(self, seeds: Block) -> None:
        """Find what is gone part by part: each fact by the number of derivations it has left."""
        parts = self.standing.parts()
        derivable = Patterns(row for part in parts for row in part.facts.rows)
        if len(derivable.rows) > _MOST_PATTERNS or self._everything.rows[0] in derivable.rows:
            self.bf(seeds)
            return
        # First the facts that no joining rule derives.
        underived = (
            f"NOT ({matching_sql(derivable.rows, self.queries.layout)})" if parts else "TRUE"
        )
        self._settle(seeds, Part((), Patterns(())), underived)
        for part in parts:
            self._settle(seeds, part, matching_sql(part.facts.rows, self.queries.layout))

    def _settle(self, seeds: Block, part: Part, among: str) -> None:
        """Find which facts of a part are gone, once those it needs are settled."""
        there = self._known_without(self.gone)
        gone = tuple(self.gone)
        wanted = part.facts if part.groups else None
        forward = self._forward(
            (*self.standing.steps, *part.groups),
            Ranges(there, gone, self.standing.known),
            wanted,
        )
        frames = [self.queries.facts([seeds], wanted or self._everything)]
        if forward is not None:
            frames.append(self.queries.result(forward))
        some = [frame for frame in frames if frame is not None]
        if not some:
            return
        asked = union(some)
        lost = self._written(self._minus(asked.where(among).distinct(), self.gone))
        if lost is None:
            return
        # Facts of other parts are settled: they need no proof.
        settled = tuple(
            Outside(self.queries.layout, block, part.facts) for block in there if part.groups
        )
        standing = replace(
            self.standing,
            rules=part.groups,
            known=there,
            explicit=(*self.standing.explicit, *settled),
            implied=self._without(self.standing.implied, self.gone),
        )
        inner = Removal(self.queries, standing, self._heard, among=among, wanted=wanted)
        inner.bf(lost)
        self.gone += inner.gone
        self.work += inner.work

    def _heard(self, done: Round) -> None:
        """Take over the round of a part."""
        self.rounds.append(replace(done, number=len(self.rounds) + 1))
        self.listen(self.rounds[-1])

    # --- Proofs ----------------------------------------------------------------------------------

    def _unproved(self, batch: Block) -> Block | None:
        """Return those of some facts that have no proof."""
        left = self._look_at(batch)
        if self._derivable(batch):
            self._search(batch)
        if not self._expanded:
            return left if left is not None and left.rows else None
        return self._written(self._minus(self._all([batch]), self._proved))

    def _derivable(self, facts: Block) -> bool:
        """Tell whether a rule may derive some of these facts by more than one step."""
        rules = self.standing.rules
        if facts.patterns is None or not rules:
            return bool(rules)
        if any(facts.patterns.meet_any(group.heads) for group in rules):
            return True
        joins = self._joined
        return any(
            facts.patterns.meet_any(group.heads) and group.atoms[0].meet_any(joins)
            for group in self.standing.steps
        )

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
            self.work.backward += parquet.total(block.at, block.files, "n")
            if proved:
                self._proved.append(Some(block, "proved", 1, proved))
        self._say(CHECK, block.rows, began)
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

    def _add_members(self, query: Query, ranges: Ranges) -> None:
        """Add the new facts that are among all."""
        patterns = looks(ranges.new) or self._everything
        if any(may_match(block, patterns) for block in ranges.all):
            add_members(query, patterns, ranges)

    def _add_backward(self, query: Query, groups: tuple[Group, ...], ranges: Ranges) -> None:
        """Add the new facts that groups derive from all."""
        for group in groups:
            asked = self._asked(group, ranges)
            places = (Range.NEW, *(Range.ALL for _ in group.clause.body))
            if asked is not None and ranges.can_join(asked, places):
                add_variant(query, asked, places, ranges)

    def _asked(self, group: Group, ranges: Ranges) -> Group | None:
        """Return what to ask for derivations of the new facts: the clauses that may derive one."""
        return backward(group).meeting(0, looks(ranges.new) or self._everything)

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
        self._say(PROVE, found.rows, began)
        if not found.rows:
            return None
        self.work.backward += found.rows
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
            self.work.forward += parquet.total(block.at, block.files, "n")
            self._proved.append(block)
            self._say(PROVE, block.rows, began)

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

    # --- DRed ------------------------------------------------------------------------------------

    def _restored(self, overdeleted: list[Block]) -> list[Block]:
        """Return those of the deleted facts that follow from what is left."""
        standing = self.standing
        there = self._known_without(overdeleted)
        query = Query(self.queries.layout, texts=standing.texts)
        new = tuple(overdeleted)
        implied = self._without(standing.implied, overdeleted)
        self._add_members(query, Ranges(new=new, all=standing.explicit))
        stepped_from = Ranges(new=new, all=(*standing.explicit, *implied))
        self._add_backward(query, standing.steps, stepped_from)
        self._add_backward(query, standing.rules, Ranges(new=new, all=there))
        if not query.selects:
            return []
        restored: list[Block] = []
        began = time.perf_counter()
        made = self._new(query, [])
        if made is not None:
            self.work.backward += parquet.total(made.at, made.files, "n")
        last = None if made is None else self._kept(RESTORE, made, restored, began)
        while last is not None:
            earlier = tuple(block for block in restored if block is not last)
            old = (*there, *earlier)
            ranges = Ranges(old, (last,), (*old, last))
            query = self._forward((*standing.steps, *standing.rules), ranges)
            if query is None:
                break
            began = time.perf_counter()
            made = self._new(query, restored, within=overdeleted)
            if made is None:
                break
            self.work.forward += parquet.total(made.at, made.files, "n")
            last = self._kept(RESTORE, made, restored, began)
        return restored

    # --- Frames ----------------------------------------------------------------------------------

    def _forward(
        self, groups: tuple[Group, ...], ranges: Ranges, wanted: Patterns | None = None
    ) -> Query | None:
        """Return what groups derive with a new fact, of those that derive what is `wanted`.

        Others would be filtered out later; and Sail fails (as DataFusion does) if that leaves
        nothing of a union's first part, and something of one other.
        """
        query = Query(self.queries.layout, texts=self.standing.texts)
        facts = looks(ranges.new) or self._everything
        for group in groups:
            if wanted is not None and not group.heads.meet_any(wanted):
                continue
            for place, chosen in enumerate(variants(len(group.clause.body))):
                near = group.meeting(place, facts)
                if near is not None and ranges.can_join(near, chosen):
                    add_variant(query, near, chosen, ranges)
        return query if query.selects else None

    def _new(
        self, query: Query, seen: list[Block], *, within: list[Block] | None = None
    ) -> FileBlock | None:
        """Write what a query gives with how often (`n`), and whether it was `seen` (`fresh`)."""
        layout, engine = self.queries.layout, self.queries.engine
        columns = ", ".join(layout.columns)
        grouped = f"SELECT {columns}, count(*) AS n FROM ({{made}}) made GROUP BY {columns}"
        made = self.queries.result(query, grouped).where(self.among)
        wanted = self._all(within) if within is not None else None
        if wanted is not None:
            text = f"""SELECT made.* FROM {{made}} made LEFT SEMI JOIN {{wanted}} wanted
                ON {same_sql(layout, "made", "wanted")}"""
            made = engine.sql(text, made=made, wanted=wanted)
        known = self._all(seen)
        if known is None:
            return self.queries.block(made.selectExpr("*", "BIGINT(1) AS fresh"))
        first = layout.columns[0]
        text = f"""SELECT made.*, IF(seen.{first} IS NULL, BIGINT(1), BIGINT(0)) AS fresh
            FROM {{made}} made LEFT JOIN {{seen}} seen ON {same_sql(layout, "made", "seen")}"""
        return self.queries.block(engine.sql(text, made=made, seen=known))

    def _kept(self, kind: str, made: FileBlock, seen: list[Block], began: float) -> Block | None:
        """Add what is fresh to those `seen`."""
        fresh = parquet.total(made.at, made.files, "fresh")
        self._say(kind, fresh, began)
        if not fresh:
            return None
        kept = Some(made, "fresh", 1, fresh)
        seen.append(kept)
        return kept

    @property
    def _everything(self) -> Patterns:
        return Patterns([(None,) * len(self.queries.layout.columns)])

    def _all(self, blocks: list[Block]) -> DataFrame | None:
        return self.queries.facts(blocks, self._everything)

    def _minus(self, facts: DataFrame | None, blocks: list[Block]) -> DataFrame | None:
        other = self._all(blocks)
        if facts is None or other is None:
            return facts
        return self.queries.engine.sql(difference_sql(self.queries.layout), one=facts, other=other)

    def _written(self, facts: DataFrame | None) -> FileBlock | None:
        if facts is None:
            return None
        return self.queries.block(facts.select(*self.queries.layout.columns))

    def _known_without(self, gone: list[Block]) -> tuple[Block, ...]:
        return self._without(self.standing.known, gone)

    def _without(self, blocks: tuple[Block, ...], gone: list[Block]) -> tuple[Block, ...]:
        if not gone:
            return blocks
        return tuple(Without(self.queries.layout, block, tuple(gone)) for block in blocks)

    def _say(self, kind: str, facts: int, began: float) -> None:
        seconds = time.perf_counter() - began
        done = Round(len(self.rounds) + 1, kind, (), facts, seconds)
        self.rounds.append(done)
        self.listen(done)


def _rows(blocks: Iterable[Block]) -> int:
    return sum(block.rows for block in blocks)
