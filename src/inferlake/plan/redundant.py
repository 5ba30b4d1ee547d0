"""Rule applications that can only repeat what is known (VLog, "redundant" and "subsumed" rules).

A rule that is applied to what another has just derived does what their resolvent does to the facts
behind it. If the resolvent's head follows from its own body by rules that have nothing left to do,
and at most one application of the rule itself, then the application to the derived facts is left
out: it stands back for that other one.

That one must not in turn stand back for the first. So a rule leaves out applications at one place
of its body only, and the other application has, in that place, a fact that is older: one of those
that the derived fact came from. Some application at the end of the chain is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inferlake.plan.clauses import Check, Clause, Fact, Row, Slot, substituted, variables
from inferlake.plan.driver import Facts, matches

# More pairs of rules than this would cost more to compare than a round to run.
_MOST_PAIRS = 2_000
_MOST_FACTS = 200
# How often a proof may ask "and if these two are the same?".
_MOST_CASES = 3


def only_repeats(
    consumers: Iterable[Clause], place: int, producers: Iterable[Clause], settled: Iterable[Clause]
) -> bool:
    """Tell whether applying `consumers` to what `producers` derived, as atom `place`, is idle.

    `settled` are rules that have been applied to all facts there are. The caller asks for one
    place of each group of consumers, and no other.
    """
    takers, makers, done = tuple(consumers), tuple(producers), tuple(settled)
    if len(takers) * len(makers) > _MOST_PAIRS or len(done) > _MOST_PAIRS:
        return False
    return all(
        (resolved := resolvent(taker, place, maker)) is None
        or _Proof(len(maker.body), place, takers, done).holds(resolved, _MOST_CASES)
        for taker in takers
        for maker in makers
    )


def can_meet(consumers: Iterable[Clause], place: int, producers: Iterable[Clause]) -> bool:
    """Tell whether `producers` derive anything that atom `place` of `consumers` asks for."""
    makers = tuple(producers)
    return any(
        resolvent(taker, place, maker) is not None for taker in consumers for maker in makers
    )


@dataclass(frozen=True)
class _Proof:
    """That a resolvent says nothing that `settled` rules and one application do not say."""

    premises: int  # so many atoms of the resolvent come first, from the producer
    place: int
    takers: tuple[Clause, ...]
    settled: tuple[Clause, ...]

    def holds(self, resolved: Clause, cases: int) -> bool:
        """Take the resolvent's variables for different terms, unless a check needs to know."""
        rows = (*resolved.body, resolved.head or (), *(check.args for check in resolved.checks))
        # No id is so small, so none of these terms is one that rules mention.
        terms: dict[str, Slot] = {name: -(2**64) - n for n, name in enumerate(variables(rows))}
        body = [_fact(row, terms) for row in resolved.body]
        head = _fact(resolved.head or (), terms)
        assumed = {Check(check.name, substituted(check.args, terms)) for check in resolved.checks}
        open_checks: dict[Check, None] = {}
        known = self._chase(body, assumed, open_checks)
        if known is None:
            return False
        older = set(body[: self.premises])
        if head in known or any(
            found == head and used[self.place] in older
            for taker in self.takers
            for found, used in _applied(taker, known, assumed, open_checks)
        ):
            return True
        names = {id: name for name, id in terms.items()}
        for check in open_checks if cases else ():
            same = _equal(resolved, [names.get(arg, arg) for arg in check.args])
            apart = Clause(
                resolved.name,
                resolved.head,
                resolved.body,
                (*resolved.checks, Check("!=", tuple(names.get(a, a) for a in check.args))),
            )
            if self.holds(apart, cases - 1) and (same is None or self.holds(same, cases - 1)):
                return True
        return False

    def _chase(
        self, body: list[Fact], assumed: set[Check], open_checks: dict[Check, None]
    ) -> Facts | None:
        """Return what settled rules make of the body, or None if that is too much."""
        known = Facts(body)
        while True:
            fresh = {
                head
                for rule in self.settled
                for head, _ in _applied(rule, known, assumed, open_checks)
                if head not in known
            }
            if not fresh:
                return known
            if len(known) + len(fresh) > _MOST_FACTS:
                return None
            for fact in fresh:
                known.add(fact)


def _applied(
    rule: Clause, known: Facts, assumed: set[Check], open_checks: dict[Check, None]
) -> Iterator[tuple[Fact, list[Fact]]]:
    """Yield what one application of `rule` gives, with the facts it uses.

    A check that two terms differ, where nothing says so, is noted as open.
    """
    for bindings in matches(rule.body, known):
        asked = {Check(c.name, substituted(c.args, bindings)) for c in rule.checks} - assumed
        mirrored = {Check(c.name, c.args[::-1]) for c in asked if c.name == "!="} & assumed
        asked = {c for c in asked if Check(c.name, c.args[::-1]) not in mirrored}
        if not asked:
            used = [_fact(row, bindings) for row in rule.body]
            yield _fact(rule.head or (), bindings), used
        elif all(check.name == "!=" and len(set(check.args)) == 2 for check in asked):
            open_checks.update(dict.fromkeys(asked))


def _equal(resolved: Clause, sides: list[Slot]) -> Clause | None:
    """Return the resolvent for the case that two terms are one, or None if they cannot be."""
    one, other = sides
    if isinstance(one, str):
        return resolved.bound({one: other})
    return resolved.bound({other: one}) if isinstance(other, str) else None


def _fact(row: Row, terms: dict[str, Slot]) -> Fact:
    return substituted(row, terms)  # type: ignore[return-value]


def resolvent(taker: Clause, place: int, maker: Clause) -> Clause | None:
    """Return what `taker` says of the facts behind what `maker` derives, or None if they miss."""
    assert maker.head is not None
    names: dict[str, Slot] = {name: f"{name}'" for name in variables((*maker.body, maker.head))}
    other = maker.bound(names)
    assert other is not None and other.head is not None
    bindings: dict[str, Slot] = {}
    for asked, made in zip(taker.body[place], other.head, strict=True):
        one, two = _resolved(asked, bindings), _resolved(made, bindings)
        if one == two:
            continue
        if isinstance(one, str):
            bindings[one] = two
        elif isinstance(two, str):
            bindings[two] = one
        else:
            return None
    final = {name: _resolved(name, bindings) for name in bindings}
    rest = taker.body[:place] + taker.body[place + 1 :]
    clause = Clause(taker.name, taker.head, other.body + rest, other.checks + taker.checks)
    return clause.bound(final)


def _resolved(slot: Slot, bindings: dict[str, Slot]) -> Slot:
    while isinstance(slot, str) and slot in bindings:
        slot = bindings[slot]
    return slot
