"""What follows from a version's facts, as files of the derived layer.

The evaluation reads the store's files as they are, and the files that the same change is about to
add. It writes triples into the table's folder, where nobody sees them until a commit names them,
and all else beside the store; what is not taken over as it is goes there again, placed for pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from inferlake import parquet
from inferlake.evaluate.blocks import (
    LISTED,
    Block,
    FileBlock,
    Near,
    Plain,
    Scratch,
    in_layout,
    numbers,
)
from inferlake.evaluate.closure import Closure, Rules, counts, evaluate
from inferlake.evaluate.closure import relation as facts_of
from inferlake.evaluate.described import READ_BY_DRIVER
from inferlake.evaluate.expiring import Expiring
from inferlake.evaluate.fixpoint import Limits
from inferlake.evaluate.queries import Queries
from inferlake.evaluate.report import Round
from inferlake.evaluate.sets import rows_of
from inferlake.maintain.choice import Algorithm
from inferlake.maintain.rules import Wanted
from inferlake.parquet import DataFile
from inferlake.paths import Place
from inferlake.plan.clauses import Layout, clauses, patterns
from inferlake.plan.compile import Options
from inferlake.plan.patterns import Patterns
from inferlake.rules.model import TRIPLE, Program
from inferlake.session import Engine
from inferlake.store import LAYERS, Layer, Store
from inferlake.store.compact import write_facts
from inferlake.store.facts import Candidates, argument_columns, not_among, stored_table
from inferlake.store.layout import ordered
from inferlake.store.table import Snapshot

if TYPE_CHECKING:
    from deltalake.transaction import AddAction
    from pyspark.sql import DataFrame

    from inferlake.maintain.expiries import Expiries


@dataclass(frozen=True)
class StoreBlock(Plain):
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

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        candidates = Candidates(_values(self.layout, self.relation, wanted))
        arity = self.layout.arities[self.relation]
        has = argument_columns(arity)
        among = None if near is None else partial(near.among, engine, has)
        live = self.store.facts.live(
            engine, self.snapshot, self.layer, candidates, self.relation, arity, among
        )
        return in_layout(self.layout, self.relation, live, wanted)

    def fingerprint(self, wanted: Patterns) -> Hashable | None:
        candidates = Candidates(_values(self.layout, self.relation, wanted))
        facts = self.store.facts
        return tuple(
            (file.path, sign)
            for sign in (1, -1)
            for file in facts.files(self.snapshot, self.layer, sign, candidates, self.relation)
        )


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
class AddedBlock(Plain):
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

    def frame(self, engine: Engine, wanted: Patterns, near: Near | None = None) -> DataFrame | None:
        added = self.store.facts.read(engine, self._near(wanted))
        if self.known is not None:
            added = not_among(engine, added, self.known)
        return in_layout(self.layout, TRIPLE, added, wanted)


@dataclass
class TableScratch(Scratch):
    """Writes blocks of triples so that the table can take them over as they are."""

    _: KW_ONLY
    store: Store
    engine: Engine
    version: int
    written: list[str] = field(default_factory=list)

    def write(
        self, frame: DataFrame, relation: str | None = None
    ) -> tuple[Place, tuple[DataFile, ...]]:
        if relation != TRIPLE:
            return super().write(frame, relation)
        table = self.store.facts.table
        rows = frame.selectExpr("s", "p", "o", f"BIGINT({self.version}) AS version")
        return self._of_table(table.write(ordered(self.engine, rows)))

    def keep(
        self,
        columns: tuple[str, ...],
        rows: Iterable[tuple[int, ...]],
        relation: str | None = None,
    ) -> tuple[Place, tuple[DataFile, ...]]:
        if relation != TRIPLE:
            return super().keep(columns, rows, relation)
        dated = ((*row, self.version) for row in rows)
        table = numbers((*columns, "version"), dated)
        return self._of_table(self.store.facts.table.write_table(table))

    def _of_table(self, files: tuple[DataFile, ...]) -> tuple[Place, tuple[DataFile, ...]]:
        self.written += [file.path for file in files]
        return self.store.facts.table.place, files


# The files of a relation.
Written = tuple[str, tuple[DataFile, ...]]

# So many blocks, or one block for so many facts, are taken over as files of the table; more are
# written once again, together and placed.
_ADOPTED_BLOCKS = 2
_ADOPTED_FACTS = 100_000


@dataclass(frozen=True)
class Derivation:
    """How a change is to derive: under which rules, how far, and how."""

    rules: Wanted = None
    limits: Limits = field(default_factory=Limits)
    options: Options = field(default_factory=Options)
    algorithm: Algorithm = "auto"


@dataclass(frozen=True)
class Deriver:
    """Rules, ready to be applied to versions of one store."""

    store: Store
    engine: Engine
    program: Program
    layout: Layout
    id_of: Callable[[str], int]
    how: Derivation
    listen: Callable[[Round], None]
    # What of a version's facts expires and is left out, if anything does.
    window: Expiries | None = None

    def terms(self) -> DataFrame:
        """Return the dictionary."""
        return self.store.terms.frame(self.engine)

    def close(
        self,
        scratch: Scratch,
        closed: list[Block],
        given: list[Block],
        *,
        under: Program | None = None,
    ) -> Closure:
        """Derive all that follows from `given` facts on top of `closed` ones.

        Those are closed `under` some of the rules, by default all.
        """
        return evaluate(
            self.engine,
            Rules(self.program, self.id_of),
            given,
            layout=self.layout,
            scratch=scratch,
            terms=self.terms,
            closed=closed,
            under=under,
            options=self.how.options,
            limits=self.how.limits,
            listen=self.listen,
        )

    def queries(self, scratch: Scratch) -> Queries:
        """Return what runs these rules over blocks of facts with times."""
        found = Rules(self.program, self.id_of).queries(
            self.engine, self.layout, scratch, self.terms
        )
        return replace(found, extra=("e",))

    def expiring(self, queries: Queries, forever: Iterable[Block]) -> Expiring:
        """Return what finds until when facts stand, over those that never expire."""
        return Expiring(
            queries,
            clauses(self.program, self.layout, self.id_of),
            patterns(self.program, self.layout, self.id_of),
            tuple(forever),
            Rules(self.program, self.id_of).texts,
            self.how.options,
            self.how.limits,
            self.listen,
        )

    def stored(self, snapshot: Snapshot, layers: Iterable[Layer] = LAYERS) -> list[Block]:
        """Return a version's facts as blocks; those that expire are not among them."""
        there = {(file.partition["relation"], file.partition["layer"]) for file in snapshot.files}
        chosen = tuple(layers)
        blocks = [
            StoreBlock(self.layout, self.store, snapshot, layer, relation)
            for layer in chosen
            for relation in self.layout.arities
            if (relation, layer) in there
        ]
        return [*blocks] if self.window is None else self.window.without(blocks, chosen)

    def publish(self, closure: Closure, version: int) -> tuple[AddAction, ...]:
        """Put what was derived into the table, for `version`, and return its log entries.

        Files that lie there already are taken over, unless they are many and small; all else is
        written once more.
        """
        facts, blocks = self.store.facts, closure.fixpoint.new
        adopted = [block for block in blocks if block.at == facts.table.place]
        if len(adopted) > max(_ADOPTED_BLOCKS, rows_of(adopted) // _ADOPTED_FACTS):
            adopted = []
        others = [block for block in blocks if block.at != facts.table.place or not adopted]
        actions = list(facts.actions((f for block in adopted for f in block.files), "derived"))
        few = rows_of(others) <= READ_BY_DRIVER
        written = self._written_here(others, version) if few else self._written(others, version)
        for relation, files in written:
            actions += facts.actions(files, "derived", relation=relation)
        return tuple(actions)

    def _written(self, blocks: list[FileBlock], version: int) -> Iterator[Written]:
        """Write blocks into the table, relation by relation."""
        for relation, size in counts(self.engine, self.layout, blocks).items():
            found = facts_of(self.engine, self.layout, blocks, relation)
            rows = found.selectExpr("*", f"BIGINT({version}) AS version")
            arity = self.layout.arities[relation]
            yield relation, write_facts(self.engine, self.store.facts, relation, arity, rows, size)

    def _written_here(self, blocks: list[FileBlock], version: int) -> Iterator[Written]:
        """Write a few facts into the table, relation by relation, without an engine."""
        some = [block.table() for block in blocks]
        if not some:
            return
        rows = pa.concat_tables(some)
        relations = self.layout.names if "r" in rows.column_names else (TRIPLE,)
        for relation in relations:
            own = rows
            if "r" in rows.column_names:
                own = rows.filter(pc.field("r") == self.layout.number(relation))
            if len(own):
                columns = [own[name] for name in self.layout.columns_of(relation)]
                yield relation, self.store.facts.table.write_table(stored_table(columns, version))
