"""Which constraints a closure breaks, and by which facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from inferlake.evaluate.queries import Queries, Ranges
from inferlake.plan.clauses import Fact, Row, substituted
from inferlake.plan.groups import Group
from inferlake.plan.sql import Query, Range, add_witnesses, variants, witness_variables


@dataclass(frozen=True)
class Broken:
    """A constraint that does not hold, and the facts that break it, as ids."""

    rule: str
    facts: tuple[Fact, ...]


def contradictions(
    queries: Queries,
    groups: Iterable[Group],
    ranges: Ranges,
    texts: dict[int, str],
    most: int,
    settled: Collection[Group] = (),
) -> tuple[list[Broken], bool]:
    """Return up to `most` ways in which facts break each constraint, and whether there are more.

    Of constraints that are `settled`, the old facts are known to break none: only what has a new
    fact in it is asked for. `texts` are the terms of the rules' constants.
    """
    query = Query(queries.layout, texts=texts)
    found: list[Broken] = []
    asked: list[Group] = []
    more = False
    for group in groups:
        if not group.clause.body:  # the schema alone breaks it
            some = sorted(group.rows)[: most + 1]
            found += [_contradiction(group, group.parameters, row) for row in some[:most]]
            more |= len(some) > most
            continue
        atoms = len(group.atoms)
        uses = variants(atoms) if group in settled else [(Range.ALL,) * atoms]
        some = [places for places in uses if ranges.can_join(group, places)]
        for places in some:
            add_witnesses(query, len(asked), group, places, most + 1, ranges)
        if some:
            asked.append(group)
    if query.selects:
        counts = [0] * len(asked)
        for row in queries.result(query).collect():
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
