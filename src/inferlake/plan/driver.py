"""Small closures on the driver: the schema, before it meets any data.

Semi-naive, a fact at a time, with an index for each way that an atom is asked. Meant for some ten
thousand facts; it counts them, and gives up before the driver's memory would.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from inferlake.plan.clauses import Clause, Fact, Row, Slot, substituted

Bindings = dict[str, Slot]


class TooManyFacts(Exception):
    """The closure is larger than what a driver should hold."""


class Facts:
    """A set of facts that finds those which match a row with some slots known."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self.all: set[Fact] = set()
        self._indexes: dict[tuple[int, ...], dict[Fact, list[Fact]]] = {}
        for fact in facts:
            self.add(fact)

    def __len__(self) -> int:
        return len(self.all)

    def __contains__(self, fact: Fact) -> bool:
        return fact in self.all

    def add(self, fact: Fact) -> None:
        """Take in a fact."""
        if fact in self.all:
            return
        self.all.add(fact)
        for positions, index in self._indexes.items():
            index[tuple(fact[i] for i in positions)].append(fact)

    def matching(self, row: Row) -> list[Fact]:
        """Return the facts that agree with the constants of `row`."""
        positions = tuple(i for i, slot in enumerate(row) if isinstance(slot, int))
        index = self._indexes.get(positions)
        if index is None:
            index = self._indexes[positions] = defaultdict(list)
            for fact in self.all:
                index[tuple(fact[i] for i in positions)].append(fact)
        return index.get(tuple(row[i] for i in positions), [])  # type: ignore[arg-type]


def matches(body: tuple[Row, ...], facts: Facts) -> Iterator[Bindings]:
    """Yield every way in which all of `body` is among `facts`."""
    return _joined(body, facts, {})


def _joined(body: tuple[Row, ...], facts: Facts, bindings: Bindings) -> Iterator[Bindings]:
    if not body:
        yield bindings
        return
    # The atom with most known slots next: fewest facts match it.
    rows = [substituted(row, bindings) for row in body]
    chosen = max(range(len(rows)), key=lambda at: sum([isinstance(s, int) for s in rows[at]]))
    rest = body[:chosen] + body[chosen + 1 :]
    row = rows[chosen]
    for fact in list(facts.matching(row)):
        wider = bound(row, fact, bindings)
        if wider is not None:
            yield from _joined(rest, facts, wider)


def bound(row: Row, fact: Fact, bindings: Bindings) -> Bindings | None:
    """Return `bindings` widened so that `row` becomes `fact`, or None if it cannot."""
    wider = dict(bindings)
    for slot, value in zip(row, fact, strict=True):
        if isinstance(slot, str):
            if wider.setdefault(slot, value) != value:
                return None
        elif slot != value:
            return None
    return wider


def close(
    clauses: Iterable[Clause],
    facts: Iterable[Fact],
    *,
    limit: int,
    keep: Callable[[Fact], bool] = lambda fact: True,
) -> tuple[Facts, set[Fact]]:
    """Return `facts` with all that `clauses` derive from them, and what they derive besides.

    Only facts that `keep` accepts take part in further derivations; the others come second. Raises
    `TooManyFacts` beyond `limit`.
    """
    rules = tuple(clauses)
    known = Facts(facts)
    besides: set[Fact] = set()
    pending = list(known.all)
    for rule in rules:
        if not rule.body and (clause := rule.bound({})) is not None:
            _settle(clause.head, known, besides, pending, keep)
    triggers = _triggers(rules)
    while pending:
        fact = pending.pop()
        for rule, place in (t for key in enumerate((*fact, None)) for t in triggers.get(key, ())):
            start = bound(rule.body[place], fact, {})
            if start is None:
                continue
            rest = rule.body[:place] + rule.body[place + 1 :]
            conclusion = Clause(rule.name, rule.head, (), rule.checks)
            for bindings in _joined(rest, known, start):
                clause = conclusion.bound(bindings)
                if clause is not None and not clause.checks:
                    _settle(clause.head, known, besides, pending, keep)
        if len(known) + len(besides) > limit:
            raise TooManyFacts
    return known, besides


def _triggers(rules: Iterable[Clause]) -> dict[tuple[int, Slot], list[tuple[Clause, int]]]:
    """Return which atoms a fact can match, by the last constant of the atom.

    An atom without constants stands behind the last position, where every fact has None.
    """
    found: dict[tuple[int, Slot], list[tuple[Clause, int]]] = defaultdict(list)
    for rule in rules:
        for place, row in enumerate(rule.body):
            constants = [(i, slot) for i, slot in enumerate(row) if isinstance(slot, int)]
            found[constants[-1] if constants else (len(row), None)].append((rule, place))
    return found


def _settle(
    head: Row | None,
    known: Facts,
    besides: set[Fact],
    pending: list[Fact],
    keep: Callable[[Fact], bool],
) -> None:
    fact: Fact = head  # type: ignore[assignment]  # every variable of a safe clause is bound
    if not keep(fact):
        besides.add(fact)
    elif fact not in known:
        known.add(fact)
        pending.append(fact)
