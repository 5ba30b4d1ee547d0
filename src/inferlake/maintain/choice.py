"""Which algorithm repairs a version: by what goes, what stays, and what the caller wants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from inferlake.progress import counted
from inferlake.rules.model import TRIPLE, Program
from inferlake.store.table import Snapshot

Algorithm = Literal["auto", "bf", "dred", "counting", "rebuild"]
ALGORITHMS: tuple[Algorithm, ...] = ("auto", "bf", "dred", "counting", "rebuild")

# A removal of more than this share of the asserted triples: starting again is cheaper. (On LUBM, a
# removal of 4 % took half the time of a rebuild, and one of 15 % half as long again.)
_REBUILD_FROM = 0.125

# How many rounds a repair gets before starting again is cheaper than going on: as many as deriving
# everything took, but no fewer than these, and one for so many asserted triples. So a repair that
# gives up has cost about as much as what follows it. (On LUBM under owl-horst, 100 triples took
# `bf` 14 to 16 rounds; a rebuild of 0.7 M triples as long as 4 of those, one of 6.6 M as long as
# 14.) A larger store than the last number is not derived again for want of patience.
_FEWEST_ROUNDS = 4
_PER_ROUND = 500_000
_LARGEST = 20_000_000

# After `bf` was given up, so many removals get so many rounds: facts of a store are much alike, so
# the next one would most likely be given up, too, unless nothing follows from what it removes.
_HURRIED = 8
_HURRIED_ROUNDS = 1


@dataclass(frozen=True)
class Choice:
    """An algorithm, and why."""

    algorithm: Literal["bf", "dred", "counting", "rebuild"]
    reason: str
    # If a removal takes more rounds, rebuild; None means never.
    most_rounds: int | None = None
    # Whether that is few, since a removal before was given up; and whether this one was.
    hurried: bool = False
    gave_up: bool = False

    def patient(self) -> Choice:
        """Return the same, however many rounds it takes."""
        return replace(self, most_rounds=None, hurried=False)

    def given_up(self, rounds: int) -> Choice:
        """Return what to do when a removal is not done after more than its rounds."""
        reason = f"{self.algorithm} was not done after {counted(rounds, 'round')}"
        return Choice("rebuild", reason, hurried=self.hurried, gave_up=True)

    def to_hurry(self, left: int) -> int:
        """Return how many removals to come are hurried, if so many were before this one."""
        if self.hurried:
            return left - 1
        return _HURRIED if self.gave_up else left


def deeper(known: int, rounds: int) -> int:
    """Return how many rounds it takes to derive everything, once an addition took some `rounds`.

    Up to twice as many as are `known` say nothing: what little is new comes by rules one after
    another. (On LUBM(5) under owl-horst everything took 5 rounds, and 100 facts more took 8.)

    >>> deeper(5, 8), deeper(5, 11), deeper(0, 2)
    (5, 11, 2)
    """
    return rounds if rounds > 2 * known else known


def choose(
    asked: Algorithm,
    base: Snapshot,
    before: Program,
    after: Program,
    removed: int,
    depth: int,
    *,
    hurried: bool = False,
) -> Choice:
    """Return the algorithm for a change that removes so many asserted triples.

    `depth` is how many rounds it took to derive what there is. A removal may be `hurried`, since
    one before it was given up.
    """
    if not base.files:
        return Choice("rebuild", "the store is empty")
    common = before.arities.keys() & after.arities.keys()
    widened = sorted(name for name in common if before.arities[name] != after.arities[name])
    if widened:
        return Choice("rebuild", f"relation {widened[0]} has another number of arguments now")
    if asked != "auto":
        return Choice(asked, "asked for")
    kept = set(before.rules) & set(after.rules)
    if before.rules and not kept:
        return Choice("rebuild", "no rule stays")
    asserted = sum(
        file.rows * int(file.partition["sign"])
        for file in base.files
        if file.partition["layer"] == "asserted" and file.partition["relation"] == TRIPLE
    )
    if removed > _REBUILD_FROM * asserted:
        share = f"{removed / asserted:.0%}"
        return Choice("rebuild", f"{share} of the asserted triples go")
    most = max(depth, _FEWEST_ROUNDS + asserted // _PER_ROUND)
    reason = "few rules change" if before.rules != after.rules else ""
    if removed:
        go = "goes" if removed == 1 else "go"
        reason = f"{counted(removed, 'triple')} of {asserted:,} {go}"
    if asserted > _LARGEST:
        return Choice("bf", reason)
    if removed and hurried:
        return Choice("bf", reason, _HURRIED_ROUNDS, hurried=True)
    return Choice("bf", reason, most)
