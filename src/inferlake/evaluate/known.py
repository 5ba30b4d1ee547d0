"""What an evaluation knows: its blocks in the order they came, and who made each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inferlake.evaluate.blocks import Block, FileBlock, Scratch, facts
from inferlake.evaluate.described import Describer
from inferlake.plan.clauses import Layout
from inferlake.plan.groups import Group
from inferlake.plan.linear import Entry
from inferlake.plan.patterns import Patterns
from inferlake.plan.transitive import Edges
from inferlake.session import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Blocks beyond this are merged: a file costs more to open than a few rows to write again.
_MOST_BLOCKS = 24
_MERGED_AT_ONCE = 16


@dataclass(eq=False)
class Task:
    """Rules that run together, and how many blocks they have worked through."""

    names: tuple[str, ...]
    seen: int
    group: Group | None = None
    entries: frozenset[Entry] = frozenset()
    stratum: int = 0
    # Set for rules that say that a relation is transitive.
    edges: Edges | None = None


Makers = tuple[Task, ...]


@dataclass
class Known:
    """The blocks of an evaluation. They are only ever added, or merged."""

    engine: Engine
    layout: Layout
    scratch: Scratch
    type_id: int
    blocks: list[Block] = field(default_factory=list)
    makers: list[Makers] = field(default_factory=list)

    @property
    def everything(self) -> Patterns:
        """The pattern that any fact matches."""
        return Patterns([(None,) * len(self.layout.columns)])

    def append(self, block: Block, makers: Makers = ()) -> None:
        """Take in a block."""
        self.blocks.append(block)
        self.makers.append(makers)

    def pending(self, task: Task) -> Iterator[tuple[Block, Makers]]:
        """Yield the blocks that `task` has not worked through, with who made them."""
        return zip(self.blocks[task.seen :], self.makers[task.seen :], strict=True)

    def facts(self, blocks: Iterable[Block], wanted: Patterns) -> DataFrame | None:
        """Return the facts of some blocks that may match `wanted`."""
        return facts(blocks, self.engine, wanted, self.layout)

    def described(self, block: Block) -> Block:
        """Return a block that says which predicates and classes it really has."""
        return Describer(self.engine, self.layout, self.type_id).described(block)

    def merge(self, tasks: Iterable[Task], given: int) -> None:
        """Write small blocks together, so that a round reads few files however many came before.

        Only blocks that no task stands between: it has worked through all of them, or none. Those
        before `given` are not ours to move.
        """
        if len(self.blocks) - given <= _MOST_BLOCKS:
            return
        some = tuple(tasks)
        marks = sorted({given, len(self.blocks), *(t.seen for t in some if t.seen > given)})
        start, end = max(itertools.pairwise(marks), key=lambda pair: pair[1] - pair[0])
        if end - start <= _MERGED_AT_ONCE:
            return
        by_size = sorted(range(start, end), key=lambda i: self.blocks[i].rows)
        chosen = sorted(by_size[:_MERGED_AT_ONCE])
        every = [self.makers[i] for i in chosen]
        # Facts that nobody of ours made must not pass for some task's own.
        makers = tuple(dict.fromkeys(task for some in every for task in some)) if all(every) else ()
        merged = self._merged([self.blocks[i] for i in chosen])
        kept = [i for i in range(start, end) if i not in chosen]
        self.blocks[start:end] = [*(self.blocks[i] for i in kept), merged]
        self.makers[start:end] = [*(self.makers[i] for i in kept), makers]
        for task in some:
            if task.seen >= end:
                task.seen -= len(chosen) - 1

    def _merged(self, blocks: list[Block]) -> Block:
        together = self.facts(blocks, self.everything)
        assert together is not None
        rows = [row for block in blocks for row in (block.patterns or self.everything).rows]
        relation = self.layout.shared(rows)
        columns = self.layout.columns_of(relation)
        at, files = self.scratch.write(together.select(*columns).coalesce(1), relation)
        return FileBlock(self.layout, at, files, Patterns(rows), relation=relation)
