"""Programs to plans: how much there is to run, for rules of our own and of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferlake.plan import clauses as clausal
from inferlake.plan import compile as compiling
from inferlake.plan.clauses import Clause, Fact, layout
from inferlake.plan.compile import Options, Plan, compile_plan
from inferlake.plan.linear import TooManyEntries
from inferlake.plan.strata import strata
from inferlake.rules.load import compiled, read_rules
from inferlake.terms import FULL
from tests.unit.plan.made import triple

PEOPLE: list[Fact] = [
    triple(":Student rdfs:subClassOf :Person"),
    triple(":Person rdfs:subClassOf :Agent"),
    triple(":teaches rdfs:domain :Teacher"),
    triple(":teaches rdfs:subPropertyOf :knows"),
    triple(":knows rdfs:range :Person"),
]


def plan(rules: str, schema: list[Fact], options: Options | None = None) -> Plan:
    program = compiled(read_rules([rules]))
    shape = layout(program, {"triple": 3})
    rows = clausal.clauses(program, shape, FULL.of)
    patterns = clausal.patterns(program, shape, FULL.of)
    facts = [shape.row("triple", fact) for fact in schema]
    return compile_plan(rows, patterns, facts, options or Options())  # type: ignore[arg-type]


def shapes(made: Plan) -> list[tuple[int, int]]:
    """Return the number of rules and of atoms of each group."""
    return sorted((len(group.rows), len(group.clause.body)) for group in made.joins())


def test_rdfs_with_a_schema_is_an_expander_alone() -> None:
    made = plan("rdfs", PEOPLE)
    assert made.joins() == () and made.closed
    assert made.schema == {*PEOPLE, triple(":Student rdfs:subClassOf :Agent")}
    # Two classes up and one; what teaches is a teacher, knows, and reaches two classes.
    assert len(made.entries) == 3 + 4 + 2
    assert set(made.entry_names) == {"rdfs2", "rdfs3", "rdfs7", "rdfs9"}


def test_rdfs_without_a_schema_has_nothing_to_run() -> None:
    made = plan("rdfs", [])
    assert made.joins() == () and made.entries == frozenset() and made.constraints() == ()


def test_rules_that_are_not_specialised_join_their_schema() -> None:
    made = plan("rdfs", PEOPLE, Options(specialised=False))
    assert made.schema == frozenset() and made.patterns.rows == () and not made.closed
    assert sum(rows for rows, _ in shapes(made)) == 6


def test_a_small_driver_leaves_schema_to_the_engine() -> None:
    made = plan("rdfs", PEOPLE, Options(driver_facts=2))
    assert made.demoted and not any(row in made.demoted for row in made.patterns.rows)
    assert len(made.demoted) + len(made.patterns.rows) == 4
    assert made.joins()


def test_a_plan_knows_what_another_had_not() -> None:
    before = plan("owl-horst", [triple(":p rdf:type owl:TransitiveProperty")])
    after = plan(
        "owl-horst",
        [
            triple(":p rdf:type owl:TransitiveProperty"),
            triple(":q rdf:type owl:TransitiveProperty"),
        ],
    )
    fresh = [group for group in after.joins(before) if "rdfp4" in group.names]
    assert [len(group.rows) for group in fresh] == [1]
    assert after.joins(after) == ()


def test_too_many_compositions_are_left_to_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(base: object) -> None:
        raise TooManyEntries

    monkeypatch.setattr(compiling, "expander", too_many)
    monkeypatch.setattr(compiling, "_remembered", compiling._compiled)
    made = plan("rdfs", PEOPLE)
    assert not made.closed and len(made.entries) == 3 + 1 + 1 + 1


def test_constraints_are_groups_of_their_own() -> None:
    made = plan("owl2rl", [triple(":A owl:disjointWith :B")])
    assert {"cax-dw"} <= {group.names[0] for group in made.constraints()}
    assert all(len(group.names) == 1 and group.origin for group in made.constraints())


def test_rules_without_a_body_are_facts_of_the_schema() -> None:
    made = compile_plan([Clause("f", (2, 4, 6), ())], (), (), Options())
    assert made.schema == {(2, 4, 6)} and made.joins() == () and not made.entries


def test_the_rules_of_dbpedia_are_six_groups_and_an_expander(shared_data: Path) -> None:
    file = shared_data / "rules" / "DBpedia_L.dlog"
    if not file.is_file():
        pytest.skip(f"needs {file}")
    assert len(compiled(read_rules([str(file)])).rules) == 9396
    made = plan(str(file), [])
    assert shapes(made) == [(1, 2), (23, 2), (402, 2), (856, 2), (1735, 2), (1735, 2)]
    assert made.closed and len(made.entries) == 20_618
    assert max(strata(made.joins(), made.entries)) == 2


@pytest.mark.parametrize(
    ("name", "rules", "groups", "entries"),
    [
        ("LUBM_L", 170, [(1, 2), (1, 2), (5, 3)], 390),
        ("LUBM_LE", 182, [(1, 2)] * 4 + [(1, 3)] * 2 + [(3, 2), (5, 3)], 397),
    ],
)
def test_the_rules_of_lubm_are_few_groups_and_an_expander(
    shared_data: Path, name: str, rules: int, groups: list, entries: int
) -> None:
    file = shared_data / "rules" / f"{name}.dlog"
    if not file.is_file():
        pytest.skip(f"needs {file}")
    assert len(compiled(read_rules([str(file)])).rules) == rules
    made = plan(str(file), [])
    assert shapes(made) == groups
    assert made.closed and len(made.entries) == entries
