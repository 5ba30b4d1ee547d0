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
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inferlake import parquet
from inferlake.evaluate.blocks import Block, Outside, matching_sql
from inferlake.evaluate.proofs import Proofs
from inferlake.evaluate.queries import Ranges
from inferlake.evaluate.sets import Account, Sets, rows_of
from inferlake.plan.groups import Group
from inferlake.plan.patterns import Patterns
from inferlake.plan.sql import Query
from inferlake.plan.strata import Part
from inferlake.session import union

DELETE, RESTORE = "delete", "restore"


@dataclass
class Removal(Sets):
    """One removal under way."""

    # Facts without a proof: they are to be deleted.
    gone: list[Block] = field(default_factory=list)
    # Facts that lost a derivation, and those removed.
    examined: list[Block] = field(default_factory=list)

    def bf(self, seeds: Block) -> None:
        """Find what is gone, asking each fact for another proof before its consequences go."""
        proofs = Proofs(self.queries, self.standing, self.account, self.among, self.wanted)
        self._walk(seeds, proofs.unproved)
        self.account.work.checked = proofs.checked

    def dred(self, seeds: Block) -> None:
        """Find what is gone: all consequences, without those that can be derived again."""
        self._walk(seeds, lambda facts: facts)
        overdeleted, self.gone = self.gone, []
        restored = self._restored(overdeleted)
        left = self._written(self._minus(self._all(overdeleted), restored))
        self.gone = [left] if left is not None else []

    def _walk(self, seeds: Block, unproved: Callable[[Block], Block | None]) -> None:
        """Follow what is gone to its consequences, as far as facts are `unproved`."""
        self.examined.append(seeds)
        batch: Block | None = seeds
        while batch is not None:
            lost = unproved(batch)
            stepped = None if lost is None else self._consequences((lost,), self.standing.steps)
            more = None if stepped is None else unproved(stepped)
            both = tuple(block for block in (lost, more) if block is not None)
            batch = self._consequences(both, self.standing.rules) if both else None
            self.gone += both
        self.account.work.examined = rows_of(self.examined)

    def _consequences(self, lost: tuple[Block, ...], groups: tuple[Group, ...]) -> Block | None:
        """Return what groups derived with facts that are lost now, if it was not looked at yet."""
        there = self._known_without(self.gone)
        ranges = Ranges(self._known_without([*self.gone, *lost]), lost, there)
        query = self._forward(groups, ranges, self.wanted)
        if query is None:
            return None
        began = time.perf_counter()
        made = self._new(query, self.examined)
        if made is None:
            return None
        self.account.work.deletion += parquet.total(made.at, made.files, "n")
        return self._kept(DELETE, made, self.examined, began)

    # --- Counting --------------------------------------------------------------------------------

    def counting(self, seeds: Block) -> None:
        """Find what is gone part by part: each fact by the number of derivations it has left."""
        parts = self.standing.parts()
        derivable = Patterns(row for part in parts for row in part.facts.rows)
        if not self._tell_apart(derivable):
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
        inner = Removal(self.queries, standing, Account(self.account.hear), among, wanted)
        inner.bf(lost)
        self.gone += inner.gone
        self.examined += inner.examined
        self.account.work += inner.account.work

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
            self.account.work.backward += parquet.total(made.at, made.files, "n")
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
            self.account.work.forward += parquet.total(made.at, made.files, "n")
            last = self._kept(RESTORE, made, restored, began)
        return restored
