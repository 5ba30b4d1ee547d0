"""How much work an evaluation does: rounds, derivations and blocks, counted."""

from __future__ import annotations

import math

import pytest

from inferlake.errors import LimitReached
from inferlake.evaluate import transitive
from inferlake.evaluate.fixpoint import Limits
from inferlake.plan.compile import Options
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.parse import parse
from inferlake.session import Engine
from tests.property.closing import close

PATHS = parse("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .")
STEPS = parse("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .")
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def chain(length: int) -> list:
    return [("edge", (f"<e:{n}>", f"<e:{n + 1}>")) for n in range(length)]


def paths(closed) -> int:
    return sum(name == "path" for name, _ in closed.facts)


def test_a_chain_takes_rounds_as_its_length_has_bits(engine: Engine) -> None:
    length = 100 if engine.name == "sail" else 20
    closed = close(engine, PATHS, chain(length), options=Options(counted=True))
    assert paths(closed) == length * (length + 1) // 2
    rounds = closed.closure.rounds
    assert len(rounds) <= math.ceil(math.log2(length)) + 2
    # Each path is derived once: from the far half of the way, and what is left of it.
    assert sum(done.derived or 0 for done in rounds) == paths(closed)


def test_equal_resources_are_not_doubled_when_a_step_is_cheaper(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transitive, "_LOOK_AT", 10)
    monkeypatch.setattr(transitive, "_COSTLY", 100)
    monkeypatch.setattr(transitive, "_TIMES", 2)
    size = 24
    same = "<http://www.w3.org/2002/07/owl#sameAs>"
    facts = [("triple", ("<e:0>", same, f"<e:{n}>")) for n in range(1, size)]
    program = compiled(read_rules(["owl-horst"]))
    closed = close(engine, program, facts, options=Options(counted=True))
    assert len(closed.facts) == size * (size - 1)
    # All pairs come from the star in one doubling; another would derive size³ of them in vain.
    assert sum(done.derived or 0 for done in closed.closure.rounds) < 5 * size**2


def test_many_rounds_read_few_files(engine: Engine) -> None:
    length = 60 if engine.name == "sail" else 30
    closed = close(engine, STEPS, chain(length))
    assert paths(closed) == length * (length + 1) // 2
    assert length <= len(closed.closure.rounds) <= length + 1
    assert len(closed.closure.fixpoint.blocks) <= 26, "small blocks are merged"


@pytest.mark.parametrize("depth", [1, 30])
def test_rdfs_is_one_pass_whatever_the_depth_of_the_hierarchy(engine: Engine, depth: int) -> None:
    facts = [
        ("triple", (f"<e:c{n}>", f"<{RDFS}subClassOf>", f"<e:c{n + 1}>")) for n in range(depth)
    ]
    facts += [
        ("triple", (f"<e:p{n}>", f"<{RDFS}subPropertyOf>", f"<e:p{n + 1}>")) for n in range(9)
    ]
    facts.append(("triple", ("<e:p9>", f"<{RDFS}domain>", "<e:c0>")))
    facts.append(("triple", ("<e:x>", "<e:p0>", "<e:y>")))
    closed = close(engine, compiled(read_rules(["rdfs"])), facts)
    assert ("triple", ("<e:x>", TYPE, f"<e:c{depth}>")) in closed.facts
    assert [done.kind for done in closed.closure.rounds] == ["schema", "expand"]


def test_a_hierarchy_too_large_for_the_driver_is_joined_once_when_it_is_closed(
    engine: Engine,
) -> None:
    facts = [("triple", (f"<e:{n}>", f"<{RDFS}subClassOf>", f"<e:{n + 1}>")) for n in range(20)]
    facts += [("triple", (f"<e:x{n}>", TYPE, f"<e:{n}>")) for n in range(5)]
    options = Options(driver_facts=10)
    closed = close(engine, compiled(read_rules(["rdfs"])), facts, options=options)
    assert sum(args[1] == TYPE for _, args in closed.facts) == sum(21 - n for n in range(5))
    joins = [done for done in closed.closure.rounds if done.kind == "join"]
    assert [done.rules for done in joins] == [("rdfs9",)]


def test_a_rule_without_anything_to_match_takes_no_part(engine: Engine) -> None:
    facts = [("triple", ("<e:x>", "<e:p>", "<e:y>"))]
    closed = close(engine, compiled(read_rules(["owl-horst"])), facts)
    assert closed.closure.rounds == []


@pytest.mark.parametrize("limits", [Limits(rounds=2), Limits(facts=30)], ids=["rounds", "facts"])
def test_a_limit_stops_with_an_error(engine: Engine, limits: Limits) -> None:
    with pytest.raises(LimitReached, match="kept nothing"):
        close(engine, PATHS, chain(20), limits=limits)
