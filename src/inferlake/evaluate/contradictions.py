"""Which constraints a closure breaks, and by which facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferlake.plan.clauses import Fact, Row, substituted
from inferlake.plan.groups import Group
from inferlake.plan.sql import Query, add_witnesses, witness_variables

if TYPE_CHECKING:
    from inferlake.evaluate.fixpoint import Fixpoint


@dataclass(frozen=True)
class Broken:
    """A constraint that does not hold, and the facts that break it, as ids."""

    rule: str
    facts: tuple[Fact, ...]


def contradictions(fixpoint: Fixpoint, most: int) -> tuple[list[Broken], bool]:
    """Return up to `most` ways in which each constraint is broken, and whether there are more."""
    groups = fixpoint.plan.constraints()
    query = Query(fixpoint.layout, texts=fixpoint.texts)
    found: list[Broken] = []
    asked: list[Group] = []
    more = False
    for group in groups:
        if not group.clause.body:  # the schema alone breaks it
            some = sorted(group.rows)[: most + 1]
            found += [_contradiction(group, group.parameters, row) for row in some[:most]]
            more |= len(some) > most
            continue
        if not all(map(fixpoint.may_hold, group.atoms)):
            continue
        add_witnesses(query, len(asked), group, most + 1)
        asked.append(group)
    if query.selects:
        counts = [0] * len(asked)
        for row in fixpoint.answer(query):
            counts[row["broken"]] += 1
            if counts[row["broken"]] <= most:
                group = asked[row["broken"]]
                found.append(_contradiction(group, witness_variables(group), row["bindings"]))
        more |= any(count > most for count in counts)
    return found, more


def _contradiction(group: Group, names: tuple[str, ...], values) -> Broken:
    bindings = dict(zip(names, values, strict=True))
    return Broken(group.names[0], tuple(_bound(row, bindings) for row in group.origin))


def _bound(row: Row, bindings: dict) -> Fact:
    return substituted(row, bindings)  # type: ignore[return-value]  # all variables are bound
