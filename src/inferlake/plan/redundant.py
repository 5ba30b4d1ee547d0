"""Rule applications that can only repeat what is known (VLog, "redundant" and "subsumed" rules).

A rule that is applied to what another has just derived does what their resolvent does to the facts
behind it. If the resolvent's head follows from its own body by rules that have nothing left to do,
and at most one application of the rule itself, which is about to run on those facts anyway, then
the application to the derived facts is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from inferlake.plan.clauses import Clause, Fact, Row, Slot, substituted, variables
from inferlake.plan.driver import Facts, TooManyFacts, close, matches

# More pairs of rules than this would cost more to compare than a round to run.
_MOST_PAIRS = 2_000
_MOST_FACTS = 500


def only_repeats(
    consumers: Iterable[Clause], place: int, producers: Iterable[Clause], settled: Iterable[Clause]
) -> bool:
    """Tell whether applying `consumers` to what `producers` derived, as atom `place`, is idle.

    `settled` are rules of strata before the producers' and the consumers': what they derive is
    there, and older than what the producers derived. So each application that is left out stands
    back for one on older facts, and some application at the end of that chain is carried out.
    """
    takers, makers, done = tuple(consumers), tuple(producers), tuple(settled)
    if len(takers) * len(makers) > _MOST_PAIRS or len(done) > _MOST_PAIRS:
        return False
    return all(_repeats(taker, place, maker, takers, done) for taker in takers for maker in makers)


def _repeats(
    taker: Clause,
    place: int,
    maker: Clause,
    takers: tuple[Clause, ...],
    settled: tuple[Clause, ...],
) -> bool:
    """Tell whether the resolvent's head follows from its body, its variables taken for terms."""
    resolved = resolvent(taker, place, maker)
    if resolved is None:
        return True
    # No id is so small. Checks would decide nothing about these, so rules with checks stay out.
    terms: dict[str, Slot] = {name: -(2**64) - n for n, name in enumerate(variables(resolved.body))}
    body = [_fact(row, terms) for row in resolved.body]
    rest = Counter(body[len(maker.body) :])
    head = _fact(resolved.head or (), terms)
    try:
        known, _ = close([c for c in settled if not c.checks], body, limit=_MOST_FACTS)
    except TooManyFacts:
        return False
    return head in known or any(
        _derives(one, head, known, rest) for one in takers if not one.checks
    )


def _fact(row: Row, terms: dict[str, Slot]) -> Fact:
    return substituted(row, terms)  # type: ignore[return-value]


def _derives(taker: Clause, head: Fact, known: Facts, rest: Counter[Fact]) -> bool:
    """Tell whether one application of `taker` gives `head`.

    It may use each fact that the left-out application joins with only as often as that does: these
    may be as new as what is left out, and the chain of replacements must come to an end.
    """
    for bindings in matches(taker.body, known):
        used = Counter(_fact(row, bindings) for row in taker.body)
        if _fact(taker.head or (), bindings) == head and all(
            used[fact] <= times for fact, times in rest.items()
        ):
            return True
    return False


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
