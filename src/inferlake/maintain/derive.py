"""What follows from a version's facts, as files of the derived layer.

The evaluation reads the store's files as they are, and the files that the same change is about to
add. It writes beside the store; what it found then goes into the table, placed for pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inferlake import parquet
from inferlake.evaluate.blocks import LISTED, Block, Scratch, narrowed
from inferlake.evaluate.closure import Closure, Rules, evaluate
from inferlake.evaluate.contradictions import Broken
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.report import Contradiction
from inferlake.maintain.rules import ChosenRules
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.plan.clauses import Layout, layout
from inferlake.plan.compile import Options
from inferlake.plan.patterns import Patterns
from inferlake.progress import Progress
from inferlake.rules.model import TRIPLE
from inferlake.session import Engine
from inferlake.store import LAYERS, Layer, Store
from inferlake.store.compact import write_facts
from inferlake.store.facts import Candidates
from inferlake.store.table import LiveFile, Snapshot

if TYPE_CHECKING:
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame

# Contradictions of one rule that a report lists.
_SHOWN = 20


@dataclass(frozen=True)
class StoreBlock:
    """The facts of one relation and layer in a version of the store."""

    layout: Layout
    store: Store
    snapshot: Snapshot
    layer: Layer
    relation: str

    @property
    def patterns(self) -> Patterns:
        return Patterns([self._pattern])

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self._files(Candidates()))

    @property
    def _pattern(self):
        return self.layout.row(self.relation, ["x"] * self.layout.arities[self.relation])

    def _files(self, candidates: Candidates):
        return self.store.facts.files(
            self.snapshot, self.layer, 1, candidates, relation=self.relation
        )

    def may_hold(self, wanted: Patterns) -> bool:
        return bool(self._files(Candidates(_values(self.layout, self.relation, wanted))))

    def frame(self, engine: Engine, wanted: Patterns) -> DataFrame | None:
        candidates = Candidates(_values(self.layout, self.relation, wanted))
        arity = self.layout.arities[self.relation]
        live = self.store.facts.live(
            engine, self.snapshot, self.layer, candidates, self.relation, arity
        )
        return in_layout(self.layout, self.relation, live, wanted)


def in_layout(layout: Layout, relation: str, stored: DataFrame, wanted: Patterns) -> DataFrame:
    """Return stored facts in the columns of an evaluation, without most that cannot match."""
    arity = layout.arities[relation]
    columns = [*layout.arguments[:arity]]
    columns += [f"BIGINT(0) AS {name}" for name in layout.arguments[arity:]]
    if not layout.only_triples:
        columns.insert(0, f"BIGINT({layout.number(relation)}) AS r")
    fixed = () if layout.only_triples else (0, *range(arity + 1, len(layout.columns)))
    return narrowed(stored.selectExpr(*columns), layout, wanted, fixed)


def _values(layout: Layout, relation: str, wanted: Patterns) -> dict[str, frozenset[int]]:
    """Return the ids that the stored columns of matching facts can have."""
    first = 0 if layout.only_triples else 1
    found: dict[str, frozenset[int]] = {}
    for place, name in enumerate(layout.arguments[: min(3, layout.arities[relation])]):
        values = wanted.values(place + first, LISTED)
        if values is not None:
            found[name] = values
    return found


@dataclass(frozen=True)
class AddedBlock:
    """The asserted triples that a change has written and not yet committed."""

    layout: Layout
    store: Store
    files: tuple[DataFile, ...]
    # Those that had been derived before, and so are known.
    known: DataFrame | None = None

    @property
    def patterns(self) -> Patterns:
        return Patterns([self.layout.row(TRIPLE, ["s", "p", "o"])])

    @property
    def rows(self) -> int:
        return parquet.rows(self.files)

    def may_hold(self, wanted: Patterns) -> bool:
        return bool(self._near(wanted))

    def _near(self, wanted: Patterns) -> list[DataFile]:
        candidates = Candidates(_values(self.layout, TRIPLE, wanted))
        return [file for file in self.files if candidates.may_be_in(file)]

    def frame(self, engine: Engine, wanted: Patterns) -> DataFrame | None:
        added = self.store.facts.read(engine, self._near(wanted))
        if self.known is not None:
            added = engine.sql(_UNKNOWN_SQL, added=added, known=self.known)
        return in_layout(self.layout, TRIPLE, added, wanted)


_UNKNOWN_SQL = """
    SELECT added.* FROM {added} added LEFT ANTI JOIN {known} known
      ON added.s = known.s AND added.p = known.p AND added.o = known.o"""


@dataclass
class TableScratch(Scratch):
    """Writes blocks of triples so that the table can take them over as they are."""

    store: Store | None = None
    version: int = 0
    written: list[str] = field(default_factory=list)

    def write(self, frame: DataFrame) -> tuple[Place, tuple[DataFile, ...]]:
        assert self.store is not None
        table = self.store.facts.table
        rows = frame.selectExpr("s", "p", "o", f"BIGINT({self.version}) AS version")
        files = table.write(rows.sortWithinPartitions("p", "s", "o"))
        self.written += [file.path for file in files]
        return table.place, files


# So many blocks, or one block for so many facts, are taken over as files of the table; more are
# written once again, together and placed.
_ADOPTED_BLOCKS = 2
_ADOPTED_FACTS = 100_000


@dataclass(frozen=True)
class Derivation:
    """How a change is to derive: under which rules (None: the store's own), and how far."""

    rules: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Derived:
    """What follows, and what the log must say of it."""

    closure: Closure
    actions: tuple[AddAction, ...]
    # Files of the derived layer that rules of the past had filled.
    replaced: tuple[LiveFile, ...]
    contradictions: tuple[Contradiction, ...]
    more_contradictions: bool


@dataclass(frozen=True)
class Deriver:
    """Rules, ready to be applied to versions of one store."""

    store: Store
    engine: Engine
    rules: ChosenRules
    id_of: Callable[[str], int]
    how: Derivation
    progress: Progress

    @property
    def layout(self) -> Layout:
        return layout(self.rules.program, {TRIPLE: 3})

    def derive(self, base: Snapshot, added: Block, scratch: Place) -> Derived:
        """Derive what `added` facts bring to a version, or all of it if its rules were others."""
        version = base.version + 1
        rounds = Scratch(scratch)
        if self.layout.only_triples:
            rounds = TableScratch(scratch, store=self.store, version=version)
        replaced: tuple[LiveFile, ...] = ()
        if self.rules.stand_in(base):
            closure = self.close(rounds, self.stored(base), [added])
        else:
            closure = self.close(rounds, [], [*self.stored(base, ["asserted"]), added])
            replaced = tuple(f for f in base.files if f.partition["layer"] == "derived")
        broken, more = closure.contradictions(_SHOWN)
        told = tuple(self._told(broken))
        adopted = isinstance(rounds, TableScratch) and self._adopts(closure)
        actions = self._adopted(closure) if adopted else self.publish(closure, version)
        if isinstance(rounds, TableScratch):
            taken = {action.path for action in actions}
            self.store.facts.table.discard(path for path in rounds.written if path not in taken)
        return Derived(closure, actions, replaced, told, more)

    def _adopts(self, closure: Closure) -> bool:
        blocks = closure.fixpoint.new
        if any(block.at != self.store.facts.table.place for block in blocks):
            return False
        return len(blocks) <= max(_ADOPTED_BLOCKS, closure.derived // _ADOPTED_FACTS)

    def _adopted(self, closure: Closure) -> tuple[AddAction, ...]:
        files = (file for block in closure.fixpoint.new for file in block.files)
        return self.store.facts.actions(files, "derived")

    def close(self, scratch: Scratch, closed: list[Block], given: list[Block]) -> Closure:
        """Derive all that follows from `given` facts on top of `closed` ones."""
        return evaluate(
            self.engine,
            Rules(self.rules.program, self.id_of),
            given,
            layout=self.layout,
            scratch=scratch,
            terms=lambda: self.store.terms.frame(self.engine),
            closed=closed,
            options=self.how.options,
            limits=self.how.limits,
            listen=lambda done: self.progress.note(str(done)),
        )

    def stored(self, snapshot: Snapshot, layers: Iterable[Layer] = LAYERS) -> list[Block]:
        """Return a version's facts as blocks."""
        there = {(file.partition["relation"], file.partition["layer"]) for file in snapshot.files}
        return [
            StoreBlock(self.layout, self.store, snapshot, layer, relation)
            for layer in layers
            for relation in self.layout.arities
            if (relation, layer) in there
        ]

    def publish(self, closure: Closure, version: int) -> tuple[AddAction, ...]:
        """Write what was derived into the table, for `version`, and return its log entries."""
        actions: list[AddAction] = []
        facts = self.store.facts
        for relation, size in closure.counts().items():
            found = closure.relation(relation, derived_only=True)
            rows = found.selectExpr("*", f"BIGINT({version}) AS version")
            arity = self.layout.arities[relation]
            files = write_facts(self.engine, facts, relation, arity, rows, size)
            actions += facts.actions(files, "derived", relation=relation)
        return tuple(actions)

    def _told(self, broken: list[Broken]) -> Iterator[Contradiction]:
        """Yield contradictions in terms."""
        ids = {id for one in broken for row in one.facts for id in row if id is not None}
        terms = self.store.terms.look_up(self.engine, ids) if ids else {}
        for one in broken:
            named = (self.layout.named(row) for row in one.facts)
            facts = tuple((name, tuple(terms[id] for id in args)) for name, args in named)
            yield Contradiction(one.rule, facts)
