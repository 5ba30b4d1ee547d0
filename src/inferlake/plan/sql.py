"""Groups and expanders as SQL text, in which `{name}` stands for a frame.

The frames that a query needs come back beside its text, as `Input`s: which facts, or which table
of constants. Whoever runs the query decides which files that means.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from inferlake.plan.checks_sql import check_sql
from inferlake.plan.clauses import Check, Clause, Layout, Row, Slot
from inferlake.plan.groups import Group
from inferlake.plan.linear import Entry
from inferlake.plan.patterns import Patterns


def id_sql(id: int | None) -> str:
    """Return an id as SQL: as text, because the smallest one would parse as a decimal."""
    return f"BIGINT('{id}')"


class Range(Enum):
    """Which facts an atom ranges over, seen from one group."""

    OLD = "old"  # those the group has worked through
    NEW = "new"  # those it has not
    ALL = "all"


def variants(n: int) -> Iterator[tuple[Range, ...]]:
    """Yield the semi-naive variants of an n-atom body: together they give each new match once.

    >>> [[r.value for r in ranges] for ranges in variants(2)]
    [['new', 'all'], ['old', 'new']]
    """
    for i in range(n):
        yield (Range.OLD,) * i + (Range.NEW,) + (Range.ALL,) * (n - i - 1)


@dataclass(frozen=True)
class FactInput:
    """Facts of a range that can match some patterns, as the application `of` sees them."""

    range: Range
    patterns: Patterns
    of: object
    # Places whose values are those of a place of the new facts: of others no fact is needed.
    bound: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class TableInput:
    """A table of constants."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class LiteralInput:
    """The literals of the dictionary, with the columns that checks of texts need."""

    ill: bool = False  # those with a text that does not fit their datatype are enough


@dataclass(frozen=True)
class TermInput:
    """The dictionary as it is."""


Input = FactInput | TableInput | LiteralInput | TermInput


@dataclass
class Query:
    """SQL text under construction, and the frames it asks for."""

    layout: Layout
    selects: list[str] = field(default_factory=list)
    inputs: dict[str, Input] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)  # of the program's constants
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def input(self, what: Input) -> str:
        """Return the placeholder of a frame."""
        for name, known in self.inputs.items():
            if known is what:
                return f"{{{name}}}"
        name = f"f{next(self._numbers)}"
        self.inputs[name] = what
        return f"{{{name}}}"

    @property
    def union(self) -> str:
        """All that was added, with repetitions."""
        return " UNION ALL ".join(self.selects)


def add_variant(query: Query, group: Group, ranges: tuple[Range, ...], of: object) -> None:
    """Add the facts that `group` derives with its atoms over `ranges`, from the side of `of`."""
    _Join(query, group, ranges, of).add()


def add_lasting(query: Query, group: Group, ranges: tuple[Range, ...], of: object) -> None:
    """Add what `add_variant` would, with the time `e` until which it stands.

    That is when the first of the facts goes that it follows from; all frames must have such a `e`.
    """
    times = [f"a{number}.e" for number in range(len(group.clause.body))]
    until = f"least({', '.join(times)})" if len(times) > 1 else times[0]
    _Join(query, group, ranges, of).add([f"{until} AS e"])


class _Join:
    """One SELECT: atoms joined in an order that follows their shared variables."""

    def __init__(self, query: Query, group: Group, ranges: tuple[Range, ...], of: object) -> None:
        self.query, self.group, self.ranges, self.of = query, group, ranges, of
        self.columns = query.layout.columns
        self.where: dict[str, str] = {}  # a variable or parameter, and the SQL it is bound to
        self.given: dict[str, int] = {}  # a variable, and its place in the new atom
        self.tables: list[str] = []
        self.filters: list[str] = []
        self.single: list[str] = []  # tables of one row

    def add(self, extra: Iterable[str] = ()) -> None:
        group = self.group
        pending = dict(enumerate(group.clause.body))
        first = next((i for i, r in enumerate(self.ranges) if r is Range.NEW), 0)
        self._atom(first, pending.pop(first))
        if self.ranges[first] is Range.NEW:
            row = group.clause.body[first]
            self.given = {s: i for i, s in enumerate(row) if isinstance(s, str)}
        if group.parameters:
            self._parameters()
        while pending:
            chosen = max(pending, key=lambda i: (*self._narrowness(pending[i]), -i))
            self._atom(chosen, pending.pop(chosen))
        for check in group.clause.checks:
            self.filters.append(self._check(check))
        made = ", ".join([*extra, *self._head()])
        hint = f"/*+ BROADCAST({', '.join(self.single)}) */ " if self.single else ""
        text = f"SELECT {hint}{made} FROM {' '.join(self.tables)}"
        if self.filters:
            text += " WHERE " + " AND ".join(self.filters)
        self.query.selects.append(text)

    def _narrowness(self, row: Row) -> tuple[bool, int, int]:
        """Return how few facts an atom may have for what is bound so far: more is fewer.

        A join with nothing of the facts before it would be a product. Of two atoms with as many
        known places, the one with more constants is narrower: there are few sameAs links of a
        resource, and a great many resources of its class. Parameters are like constants.
        """
        known = sum(isinstance(slot, int) or self._bound(slot) for slot in row)
        shared = sum(self._bound(slot) and not self._is_parameter(slot) for slot in row)
        return shared > 0, known, known - shared

    def _head(self) -> list[str]:
        head = self.group.clause.head or ()
        return [
            f"{self._value(slot)} AS {name}"
            for slot, name in zip(head, self.columns[: len(head)], strict=True)
        ]

    def _atom(self, number: int, row: Row) -> None:
        alias = f"a{number}"
        bound = tuple(
            (i, self.given[s]) for i, s in enumerate(row) if isinstance(s, str) and s in self.given
        )
        found = FactInput(self.ranges[number], self.group.atoms[number], self.of, bound)
        conditions: list[str] = []
        for slot, name in zip(row, self.columns, strict=True):
            at = f"{alias}.{name}"
            if isinstance(slot, int):
                self.filters.append(f"{at} = {id_sql(slot)}")
            elif isinstance(slot, str):
                if slot in self.where:
                    mine = self.where[slot].startswith(f"{alias}.")
                    (self.filters if mine else conditions).append(f"{at} = {self.where[slot]}")
                else:
                    self.where[slot] = at
        self._table(f"{self.query.input(found)} {alias}", conditions)

    def _parameters(self) -> None:
        rows = tuple(self.group.rows)
        # Named by number: engines would take the variables ?c and ?C for one column.
        columns = tuple(f"k{number}" for number in range(len(self.group.parameters)))
        table = self.query.input(TableInput(columns, rows))
        conditions = []
        for name, column in zip(self.group.parameters, columns, strict=True):
            if name in self.where:
                conditions.append(f"{self.where[name]} = k.{column}")
            else:
                self.where[name] = f"k.{column}"
        self._table(f"{table} k", conditions)

    def _table(self, table: str, conditions: list[str]) -> None:
        if not self.tables:
            self.tables.append(table)
        elif conditions:
            self.tables.append(f"JOIN {table} ON {' AND '.join(conditions)}")
        else:
            self.tables.append(f"CROSS JOIN {table}")

    def _check(self, check: Check) -> str:
        if not check.needs_text:
            return check_sql(check.name, [self._value(arg) for arg in check.args])
        aliases: list[str | int] = []
        for place, arg in enumerate(check.args):
            if isinstance(arg, int) and arg in self.query.texts:
                aliases.append(arg)
                continue
            alias, terms = f"t{len(self.tables)}", self.query.input(_looked_up(check, place))
            if isinstance(arg, int):
                # The schema has put it there. One row, for which nothing else need move.
                one = f"(SELECT * FROM {terms} WHERE id = {id_sql(arg)})"
                self._table(f"{one} {alias}", [])
                self.single.append(alias)
            else:
                self._table(f"{terms} {alias}", [f"{alias}.id = {self._value(arg)}"])
            aliases.append(alias)
        return check_sql(check.name, aliases, self.query.texts)

    def _bound(self, slot: Slot) -> bool:
        return isinstance(slot, str) and slot in self.where

    def _is_parameter(self, slot: Slot) -> bool:
        return isinstance(slot, str) and self.where[slot].startswith("k.")

    def _value(self, slot: Slot) -> str:
        if slot is None:
            return "BIGINT(0)"
        return self.where[slot] if isinstance(slot, str) else id_sql(slot)


_LITERALS = LiteralInput()
_ILL_TYPED = LiteralInput(ill=True)
_TERMS = TermInput()


def _looked_up(check: Check, place: int) -> Input:
    """Return where a check of texts finds what it asks of an argument."""
    if check.name == "has_datatype" and place:
        return _TERMS
    # No check of texts holds for what is not a literal; but a datatype is none.
    return _ILL_TYPED if check.name == "is_ill_typed" else _LITERALS


def add_witnesses(
    query: Query, number: int, group: Group, ranges: tuple[Range, ...], most: int, of: object
) -> None:
    """Add the bindings under which a constraint is broken, as an array of ids."""
    join = _Join(query, group, ranges, of)
    names = witness_variables(group)
    join.add([f"{number} AS broken", "{values} AS bindings"])
    values = ", ".join(join.where[name] for name in names) or "BIGINT(0)"
    text = query.selects.pop().replace("{values}", f"array({values})")
    query.selects.append(f"(SELECT * FROM ({text}) found LIMIT {most})")


def witness_variables(group: Group) -> tuple[str, ...]:
    """Return the variables whose values say how a constraint is broken."""
    slots = dict.fromkeys(s for row in group.origin for s in row if isinstance(s, str))
    return tuple(slots)


def backward(group: Group) -> Group:
    """Return a group whose first atom is its head: what it asks for is then what derives a fact."""
    clause = group.clause
    assert clause.head is not None
    asked = Clause(clause.name, clause.head, (clause.head, *clause.body), clause.checks)
    return replace(group, clause=asked)


def add_members(query: Query, patterns: Patterns, of: object) -> None:
    """Add the new facts that are among all, of which those that match `patterns` are enough."""
    columns = query.layout.columns
    new = query.input(FactInput(Range.NEW, patterns, of))
    same = tuple((place, place) for place in range(len(columns)))
    every = query.input(FactInput(Range.ALL, patterns, of, same))
    same = " AND ".join(f"a0.{name} = a1.{name}" for name in columns)
    made = ", ".join(f"a0.{name} AS {name}" for name in columns)
    query.selects.append(f"SELECT {made} FROM {new} a0 JOIN {every} a1 ON {same}")


def add_instances(query: Query, asked: Group, atoms: int, of: object) -> None:
    """Add the ways in which a group, turned `backward`, derives the new facts from all, a row each.

    A row has the fact, then up to `atoms` facts that it follows from, in columns `b0_s` and so on,
    null beyond the last, and how many they are as `size`.
    """
    columns, size = query.layout.columns, len(asked.clause.body) - 1
    found = [f"a{n + 1}.{name} AS b{n}_{name}" for n in range(size) for name in columns]
    found += [
        f"CAST(NULL AS BIGINT) AS b{n}_{name}" for n in range(size, atoms) for name in columns
    ]
    ranges = (Range.NEW, *(Range.ALL for _ in range(size)))
    _Join(query, asked, ranges, of).add([*found, f"BIGINT({size}) AS size"])


# --- The expander -------------------------------------------------------------------------------


def add_expansion(query: Query, entries: Iterable[Entry], of: object) -> None:
    """Add what `entries` make of the new facts: one scan for each kind of guard."""
    guards: dict[tuple, list[Entry]] = defaultdict(list)
    for entry in entries:
        guards[_guard_kind(entry)].append(entry)
    for (places, equal), some in guards.items():
        _add_guarded(query, places, equal, some, of)


def _guard_kind(entry: Entry) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Return where a body has constants, and which of its places must be equal."""
    first: dict[str, int] = {}
    equal = [
        (first[slot], i)
        for i, slot in enumerate(entry.body)
        if isinstance(slot, str) and first.setdefault(slot, i) != i
    ]
    return entry.guard, tuple(equal)


def _add_guarded(
    query: Query,
    places: tuple[int, ...],
    equal: tuple[tuple[int, int], ...],
    entries: list[Entry],
    of: object,
) -> None:
    columns = query.layout.columns
    templates = {template: n for n, template in enumerate(dict.fromkeys(map(_template, entries)))}
    guards = [f"g{i}" for i in places]
    heads = [f"h{i}" for i in range(len(columns))]
    rows = tuple(
        (
            *(entry.body[i] for i in places),
            *(slot if isinstance(slot, int) else 0 for slot in entry.head),
            templates[_template(entry)],
        )
        for entry in entries
    )
    table = query.input(TableInput((*guards, *heads, "template"), rows))  # type: ignore[arg-type]
    facts = query.input(FactInput(Range.NEW, Patterns(entry.body for entry in entries), of))
    made = [f"{_head_column(i, columns, templates)} AS {name}" for i, name in enumerate(columns)]
    on = [f"f.{columns[i]} = k.g{i}" for i in places]
    join = f"JOIN {table} k ON {' AND '.join(on)}" if on else f"CROSS JOIN {table} k"
    where = [f"f.{columns[a]} = f.{columns[b]}" for a, b in equal]
    where += _template_checks(columns, templates)
    text = f"SELECT {', '.join(made)} FROM {facts} f {join}"
    query.selects.append(text + (" WHERE " + " AND ".join(where) if where else ""))


_Template = tuple[Row, tuple[Check, ...]]


def _template(entry: Entry) -> _Template:
    """Return what of an entry is not a number in a table: where its head comes from, its checks."""
    return tuple(None if isinstance(slot, int) else slot for slot in entry.head), entry.checks


def _head_column(place: int, columns: tuple[str, ...], templates: dict[_Template, int]) -> str:
    """Return SQL for a column of the head, which templates take from different places."""
    sources: dict[str, list[int]] = defaultdict(list)
    for (head, _), number in templates.items():
        slot = head[place]
        sources[f"k.h{place}" if slot is None else _of_fact(slot, columns)].append(number)
    *others, last = sorted(sources, key=lambda source: len(sources[source]))
    cases = "".join(
        f"WHEN k.template IN ({', '.join(map(str, sources[source]))}) THEN {source} "
        for source in others
    )
    return f"CASE {cases}ELSE {last} END" if cases else last


def _template_checks(columns: tuple[str, ...], templates: dict[_Template, int]) -> Iterator[str]:
    asked: dict[Check, list[int]] = defaultdict(list)
    for (_, checks), number in templates.items():
        for check in checks:
            asked[check].append(number)
    for check, numbers in asked.items():
        args = [
            _of_fact(arg, columns) if isinstance(arg, str) else id_sql(arg) for arg in check.args
        ]
        holds = check_sql(check.name, args)
        if len(numbers) == len(templates):
            yield holds
        else:
            yield f"(k.template NOT IN ({', '.join(map(str, numbers))}) OR {holds})"


def _of_fact(slot: Slot, columns: tuple[str, ...]) -> str:
    """Return the column that an entry's variable is named after."""
    assert isinstance(slot, str)
    return f"f.{columns[int(slot[1:])]}"
