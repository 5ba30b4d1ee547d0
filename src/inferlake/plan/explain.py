"""What each rule of a program becomes, before any data is seen: for `inferlake check`.

Without data the schema is not known, so whatever it will put into a rule stands for anything here.
Strata may turn out finer once it is known, never coarser.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from inferlake.plan.clauses import Clause, Layout, Row, clauses, layout, patterns, variables
from inferlake.plan.groups import Group, grouped
from inferlake.plan.linear import Entry, entry
from inferlake.plan.patterns import Patterns
from inferlake.plan.specialise import Template, looked_up
from inferlake.plan.strata import strata
from inferlake.rules.check import is_auxiliary
from inferlake.rules.model import TRIPLE, Atom, Program, Rule
from inferlake.terms import FULL

Becomes = Literal["fact", "schema", "linear", "joining", "constraint", "idle"]


@dataclass(frozen=True)
class ExplainedRule:
    """One rule, and what runs for it."""

    name: str
    place: str
    rule: str
    becomes: Becomes
    # The atoms that are left for the engine, and those that are looked up in the schema.
    atoms: int
    schema: tuple[str, ...] = ()
    # Of rules that join: when they run, whether they may need what they derive, and with whom.
    strata: tuple[int, ...] = ()
    recursive: bool = False
    shares_plan_with: tuple[str, ...] = ()

    def __str__(self) -> str:
        schema = f", after {_count(len(self.schema), 'schema atom')}" if self.schema else ""
        match self.becomes:
            case "fact":
                return "a fact"
            case "schema":
                return "closes the schema, before any data is read"
            case "linear":
                return f"takes one fact to another: part of the expander{schema}"
            case "constraint":
                return f"a constraint over {_count(self.atoms, 'atom')}{schema}"
            case "idle":
                return "derives nothing"
        what = f"joins {self.atoms} atoms" if self.atoms > 1 else "compares values of one atom"
        number = f"{'stratum' if len(self.strata) == 1 else 'strata'} {_listed(self.strata)}"
        again = ", recursive" if self.recursive else ""
        others = self.shares_plan_with
        shared = f"; one plan with {_listed(others[:_SHOWN])}" if others else ""
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return f"{what}{schema}; {number}{again}{shared}{more}"


# Names of rules that share a plan, in a line for people.
_SHOWN = 5


@dataclass(frozen=True)
class Explanation:
    """A program as it will run."""

    rules: tuple[ExplainedRule, ...]
    # The number of arguments of each relation; those that must be given; those that rules derive.
    relations: dict[str, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    # How many strata, and plans in them, the joining rules make.
    strata: int
    plans: int
    hints: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON would have it."""
        return asdict(self)


def explain(program: Program) -> Explanation:
    """Return what becomes of each rule of a checked program. Starts no engine and reads no data."""
    shape = layout(program)
    schema = Patterns(patterns(program, shape, FULL.of))
    parts = [_parts(rule, shape, schema) for rule in program.rules]
    # Numbers for names: two files may call two rules the same.
    joins = {
        replace(template, clause=replace(template.clause, name=str(number))): template.parameters
        for number, some in enumerate(parts)
        for becomes, template in some
        if becomes == "joining"
    }
    groups = grouped({template: {(None,) * len(names)} for template, names in joins.items()})
    entries = [
        made
        for some in parts
        for becomes, template in some
        if becomes == "linear" and (made := entry(template.clause)) is not None
    ]
    places = _places(groups, entries)
    rules = tuple(
        _explained(number, program, parts[number], _schema_atoms(rule, shape, schema), places)
        for number, rule in enumerate(program.rules)
    )
    derived = {head.relation for rule in program.rules for head in rule.heads}
    asked = {atom.relation for rule in program.rules for atom in rule.body}
    return Explanation(
        rules=rules,
        relations=dict(sorted(program.arities.items())),
        inputs=tuple(sorted(asked - derived)),
        outputs=tuple(sorted(name for name in derived if not is_auxiliary(name))),
        strata=len({place.stratum for place in places}),
        plans=len(groups),
        hints=tuple(_hints(program, rules, asked, derived)),
    )


_Parts = list[tuple[Becomes, Template]]


def _parts(rule: Rule, shape: Layout, schema: Patterns) -> _Parts:
    """Return what each head of a rule becomes, and the clause that is left of it."""
    found = clauses(Program((rule,)), shape, FULL.of)
    return [_part(clause, schema) for clause in found]


def _part(clause: Clause, schema: Patterns) -> tuple[Becomes, Template]:
    by_text = any(check.needs_text for check in clause.checks)
    inner = looked_up(clause, schema)
    outer = tuple(row for row in clause.body if row not in inner)
    known = variables(inner)
    rest = tuple(check for check in clause.checks if not set(check.variables) <= set(known))
    left = variables((*outer, *(check.args for check in rest), clause.head or ()))
    template = Template(
        replace(clause, body=outer, checks=rest), tuple(name for name in known if name in left)
    )
    if clause.head is None:
        return "constraint", template
    if not clause.body:
        return "fact", template
    if not outer:
        return "schema", template
    return ("linear" if len(outer) == 1 and not by_text else "joining"), template


def _schema_atoms(rule: Rule, shape: Layout, schema: Patterns) -> tuple[Atom, ...]:
    """Return the body atoms that the schema answers."""
    found = clauses(Program((replace(rule, heads=()),)), shape, FULL.of)
    if not found:
        return ()
    rows: dict[Row, Atom] = dict(zip(found[0].body, dict.fromkeys(rule.body), strict=False))
    inner = looked_up(found[0], schema)
    return tuple(atom for row, atom in rows.items() if row in inner)


@dataclass(frozen=True)
class _Place:
    """Where a plan runs, and the numbers of its rules."""

    rules: frozenset[int]
    stratum: int
    recursive: bool


def _places(groups: tuple[Group, ...], entries: list[Entry]) -> list[_Place]:
    numbers = strata(groups, entries)
    sizes = Counter(numbers)
    return [
        _Place(
            frozenset(map(int, group.names)),
            number + 1,
            # A plan that feeds its own double is in one stratum with it.
            sizes[number] > 1 or len(set(strata([group, group], entries))) == 1,
        )
        for group, number in zip(groups, numbers, strict=True)
    ]


def _explained(
    number: int, program: Program, parts: _Parts, schema: tuple[Atom, ...], places: list[_Place]
) -> ExplainedRule:
    rule = program.rules[number]
    becomes: Becomes = parts[0][0] if parts else "idle"
    mine = [place for place in places if number in place.rules]
    others = sorted({other for place in mine for other in place.rules} - {number})
    return ExplainedRule(
        name=rule.name,
        place=str(rule.source),
        rule=str(rule),
        becomes=becomes,
        atoms=len(parts[0][1].clause.body) if parts else 0,
        schema=tuple(map(str, schema)),
        strata=tuple(sorted({place.stratum for place in mine})),
        recursive=any(place.recursive for place in mine),
        shares_plan_with=tuple(program.rules[other].name for other in others),
    )


def _hints(
    program: Program, explained: Iterable[ExplainedRule], asked: set[str], derived: set[str]
) -> Iterator[str]:
    for name in sorted(asked - derived - {TRIPLE}):
        near = difflib.get_close_matches(name, derived, n=1, cutoff=0.75)
        meant = f"; is {near[0]} meant?" if near else ""
        yield f"{name}: no rule derives it, so its facts must be given{meant}"
    for name in sorted(derived - asked):
        if is_auxiliary(name):
            yield f"{name}: no rule uses it, and names that begin with _ are not written"
    for rule, found in zip(program.rules, explained, strict=True):
        if found.becomes == "idle":
            yield (
                f"{rule.source}: rule {rule.name} derives nothing: its heads are in its body, or"
                " its tests never hold"
            )
        elif _is_product(rule):
            yield (
                f"{rule.source}: rule {rule.name} has atoms without a variable in common:"
                " every fact of one meets every fact of the other"
            )


def _is_product(rule: Rule) -> bool:
    """Tell whether the body falls into parts that share no variable."""
    parts: list[set] = []
    for atom in (*rule.body, *rule.tests):
        mine = set(atom.variables)
        joined = [part for part in parts if part & mine]
        parts = [part for part in parts if not part & mine]
        parts += [mine.union(*joined)] if mine else []
    return len(parts) > 1


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
