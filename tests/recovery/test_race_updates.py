"""Several writers at once, who add, remove, change schema and rules, and forget.

Whatever the interleaving, every version is what its update makes of the version before, closed
under its rules: as if the updates had come one after the other.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from inferlake.kb import KnowledgeBase

from .processes import Event, Loader, Nursery, Pair, assert_sound
from .updates import (
    DOMAIN,
    SUBCLASS,
    TYPE,
    Chance,
    State,
    Triple,
    Update,
    assert_closed,
    assert_history,
    ex,
    loaded,
    reach_rules,
)

_FREE_UPDATES = 10

IS_CAT: Triple = (ex("tom"), TYPE, ex("Cat"))
CATS_ARE_PETS: Triple = (ex("Cat"), SUBCLASS, ex("Pet"))
CATS_ARE_ANIMALS: Triple = (ex("Cat"), SUBCLASS, ex("Animal"))
PETS_ARE_ANIMALS: Triple = (ex("Pet"), SUBCLASS, ex("Animal"))
OWNERS_ARE_PEOPLE: Triple = (ex("p0"), DOMAIN, ex("Person"))
IS_PERSON: Triple = (ex("ann"), TYPE, ex("Person"))
OWNS: Triple = (ex("ann"), ex("p0"), ex("tom"))
SEES: Triple = (ex("tom"), ex("p0"), ex("jerry"))
IS_ANIMAL: Triple = (ex("tom"), TYPE, ex("Animal"))
# Keeps the store from being empty, and removals from being most of it.
REST = tuple((ex(f"i{n}"), ex("p3"), ex(f"i{n + 1}")) for n in range(8))


@dataclass(frozen=True)
class Case:
    """What is asserted at first, and what two writers make of it at once."""

    start: tuple[Triple, ...]
    one: Update
    other: Update
    rules: tuple[str, ...] = ("rdfs",)


CASES = {
    "one adds what the other removes": Case(
        (IS_CAT, CATS_ARE_PETS), Update(add=(IS_CAT, OWNS)), Update(remove=(IS_CAT, OWNS))
    ),
    "both remove the same": Case(
        (IS_CAT, CATS_ARE_PETS), Update(remove=(IS_CAT, OWNS)), Update(remove=(IS_CAT,))
    ),
    "both add the same": Case(
        (CATS_ARE_PETS,), Update(add=(IS_CAT,)), Update(add=(IS_CAT, OWNERS_ARE_PEOPLE))
    ),
    "each removes one of two proofs": Case(
        (IS_CAT, CATS_ARE_PETS, PETS_ARE_ANIMALS, CATS_ARE_ANIMALS),
        Update(remove=(CATS_ARE_ANIMALS,)),
        Update(remove=(PETS_ARE_ANIMALS,)),
    ),
    "schema comes while instances come": Case(
        (PETS_ARE_ANIMALS,), Update(add=(CATS_ARE_PETS,)), Update(add=(IS_CAT, OWNS))
    ),
    "schema goes while instances come": Case(
        (CATS_ARE_PETS, OWNERS_ARE_PEOPLE),
        Update(remove=(CATS_ARE_PETS, OWNERS_ARE_PEOPLE)),
        Update(add=(IS_CAT, OWNS)),
    ),
    "one asserts what the other stops to derive": Case(
        (IS_CAT, CATS_ARE_ANIMALS),
        Update(add=(IS_ANIMAL,)),
        Update(remove=(CATS_ARE_ANIMALS,)),
    ),
    "rules come while facts come": Case(
        (OWNS, IS_PERSON, CATS_ARE_PETS),
        Update(rules=("rdfs", "REACH")),
        Update(add=(SEES, IS_CAT, (ex("ann"), TYPE, ex("C0")))),
    ),
    "rules go while a patch comes": Case(
        (OWNS, SEES, CATS_ARE_PETS, (ex("ann"), TYPE, ex("C0"))),
        Update(rules=("rdfs",)),
        Update(add=(IS_CAT,), remove=(OWNS,), as_patch=True),
        rules=("rdfs", "REACH"),
    ),
}


def at_the_gate(loader: Loader, step: str) -> None:
    """Wait until a process stands before a step."""
    loader.wait("begin")
    assert loader.wait("gate")["step"] == step


def let_go(loader: Loader) -> Event:
    """Open the gate, and return the report."""
    loader.go()
    return loader.wait("done")


@pytest.mark.parametrize("first", [0, 1], ids=["one-first", "other-first"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_two_updates_from_one_version(case: Case, first: int, pair: Pair, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    reach = reach_rules(tmp_path)

    def named(rules: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(reach if name == "REACH" else name for name in rules)

    states = [State(frozenset((*REST, *case.start)), named(case.rules))]
    loaded(kb, states[0])
    updates = [
        update if update.rules is None else Update(rules=named(update.rules))
        for update in (case.one, case.other)
    ]
    for number, (loader, update) in enumerate(zip(pair, updates, strict=True)):
        update.send(loader, kb, f"{number}", gates=["commit facts"])
        at_the_gate(loader, "commit facts")

    for number in (first, 1 - first):
        report = let_go(pair[number])
        states.append(updates[number].after(states[-1]))
        assert report["version"] == len(states)
        assert report["races"] == ([] if number == first else ["commit facts"])
        before, after = (state.asserted for state in states[-2:])
        assert (report["added"], report["removed"]) == (len(after - before), len(before - after))
    assert_history(kb, states)
    assert_sound(kb)


def test_two_updates_bring_the_same_terms(pair: Pair, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    updates = [Update(add=(IS_CAT, OWNS)), Update(add=(SEES, IS_CAT, CATS_ARE_PETS))]
    states = [State(frozenset(REST))]
    loaded(kb, states[0])
    for number, (loader, update) in enumerate(zip(pair, updates, strict=True)):
        update.send(loader, kb, f"{number}", gates=["commit terms"])
        at_the_gate(loader, "commit terms")
    for loader, update, races in zip(pair, updates, ([], ["commit terms"]), strict=True):
        assert let_go(loader)["races"] == races
        states.append(update.after(states[-1]))
    assert_history(kb, states)
    assert_sound(kb)


def test_an_update_from_long_ago_overwrites_nothing(pair: Pair, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    late, busy = pair
    states = [State(frozenset((*REST, IS_CAT, CATS_ARE_PETS, OWNS)))]
    opened = loaded(kb, states[0])
    update = Update(add=(SEES, PETS_ARE_ANIMALS), remove=(OWNS,), algorithm="dred")
    update.send(late, kb, "late", gates=["commit facts"])
    at_the_gate(late, "commit facts")

    meanwhile = (
        Update(add=(OWNERS_ARE_PEOPLE,)),
        Update(remove=(CATS_ARE_PETS,)),
        Update(remove=(IS_CAT,), rules=(reach_rules(tmp_path),)),
    )
    for number, other in enumerate(meanwhile):
        other.send(busy, kb, f"{number}")
        busy.wait("begin")
        assert busy.wait("done")["races"] == []
        states.append(other.after(states[-1]))
    opened.compact()
    states.append(states[-1])

    report = let_go(late)
    assert (report["version"], report["races"]) == (6, ["commit facts"])
    states.append(update.after(states[-1]))
    assert_history(kb, states)
    assert_sound(kb)


@pytest.mark.parametrize("first", [0, 1])
def test_two_changes_of_rules(first: int, pair: Pair, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    reach = reach_rules(tmp_path)
    start = State(frozenset((OWNS, SEES, IS_CAT, CATS_ARE_PETS)))
    opened = loaded(kb, start)
    changes: tuple[dict[str, Any], ...] = ({"add": reach}, {"remove": "rdfs"})
    for loader, change in zip(pair, changes, strict=True):
        loader.send(kb, "change_rules", gates=["commit facts"], **change)
        at_the_gate(loader, "commit facts")
    for number in (first, 1 - first):
        let_go(pair[number])
    between = ("rdfs", reach) if first == 0 else ("none",)
    assert_closed(opened.at(2), State(start.asserted, between))
    assert_closed(opened, State(start.asserted, (reach,)))


def test_two_processes_update_freely(pair: Pair, tmp_path: Path) -> None:
    kb = tmp_path / "kb"
    chance = Chance(random.Random(41), instances=6)
    pool = sorted({chance.triple() for _ in range(40)})
    states = [State(frozenset(pool[::2]))]
    loaded(kb, states[0])
    # From one pool, so that they often add and remove the same.
    updates = [[chance.update(pool) for _ in range(_FREE_UPDATES)] for _ in pair]

    def run(number: int) -> list[Event]:
        loader, reports = pair[number], []
        for turn, update in enumerate(updates[number]):
            update.send(loader, kb, f"{number}-{turn}")
            loader.wait("begin")
            reports.append(loader.wait("done"))
        return reports

    with ThreadPoolExecutor(2) as pool:
        told = [report for reports in pool.map(run, range(2)) for report in reports]
    asked = [update for some in updates for update in some]
    made = {report["version"]: update for report, update in zip(told, asked, strict=True)}
    assert sorted(made) == list(range(2, 2 + 2 * _FREE_UPDATES))
    for version in sorted(made):
        states.append(made[version].after(states[-1]))
    assert_history(kb, states)
    assert_sound(kb)
    assert any(report["races"] for report in told), "they never met"


# --- Forgetting ---------------------------------------------------------------------------------

ABOUT_TOM = (IS_CAT, OWNS, SEES)
# All of its terms are in the dictionary, some only until they are purged.
TOM_IS_BACK = Update(add=(IS_CAT, (ex("ann"), ex("p3"), ex("tom"))))


@pytest.fixture
def with_tom(tmp_path: Path) -> tuple[Path, State]:
    """A store that knows of Tom, who is to be forgotten."""
    state = State(frozenset((*REST, *ABOUT_TOM, CATS_ARE_PETS)))
    loaded(tmp_path / "kb", state)
    return tmp_path / "kb", state


def without_tom(state: State) -> State:
    return Update(remove=ABOUT_TOM).after(state)


def assert_newest(kb: Path, state: State) -> None:
    assert_closed(KnowledgeBase(kb, engine="sail"), state)
    assert_sound(kb)


@pytest.mark.parametrize("forgets_first", [True, False])
def test_a_triple_comes_while_its_subject_is_forgotten(
    forgets_first: bool, pair: Pair, with_tom: tuple[Path, State]
) -> None:
    kb, state = with_tom
    forgetter, adder = pair
    forgetter.send(kb, "forget", "http://example.org/tom", gates=["commit facts"])
    at_the_gate(forgetter, "commit facts")
    TOM_IS_BACK.send(adder, kb, "back", gates=["commit facts"])
    at_the_gate(adder, "commit facts")
    if forgets_first:
        let_go(forgetter)
        let_go(adder)
        assert_newest(kb, TOM_IS_BACK.after(without_tom(state)))
    else:
        let_go(adder)
        let_go(forgetter)
        assert_newest(kb, without_tom(state))


def forgotten(kb: Path) -> None:
    KnowledgeBase(kb, engine="sail").forget("http://example.org/tom")


def test_a_writer_finds_a_term_that_is_purged_before_it_commits(
    pair: Pair, with_tom: tuple[Path, State]
) -> None:
    kb, state = with_tom
    forgotten(kb)
    TOM_IS_BACK.send(pair[0], kb, "back", gates=["commit facts"])
    at_the_gate(pair[0], "commit facts")
    assert KnowledgeBase(kb, engine="sail").vacuum(timedelta(0)).terms > 0
    assert let_go(pair[0])["races"] == ["commit facts"]
    assert_newest(kb, TOM_IS_BACK.after(without_tom(state)))


@pytest.mark.parametrize(
    "gates",
    [["commit facts"] * 2, ["commit terms"], ["commit facts"] * 3],
    ids=["before it is announced", "before terms are purged", "before it is said that they are"],
)
def test_a_writer_commits_with_a_term_in_the_midst_of_a_purge(
    gates: list[str], pair: Pair, with_tom: tuple[Path, State]
) -> None:
    kb, state = with_tom
    forgotten(kb)
    purger, adder = pair
    # Commits to the facts say that files are deleted, that terms will be purged, that they were.
    purger.send(kb, "vacuum", gates=gates, older_than=0)
    at_the_gate(purger, gates[0])
    for gate in gates[1:]:
        purger.go()
        assert purger.wait("gate")["step"] == gate
    TOM_IS_BACK.send(adder, kb, "back")
    adder.wait("begin")
    assert adder.wait("done")["races"] == []
    assert "commit facts" in let_go(purger)["races"]
    assert_newest(kb, TOM_IS_BACK.after(without_tom(state)))


def test_a_writer_finds_a_term_and_commits_once_it_is_purged(
    pair: Pair, with_tom: tuple[Path, State]
) -> None:
    kb, state = with_tom
    forgotten(kb)
    purger, adder = pair
    purger.send(kb, "vacuum", gates=["commit terms", *["commit facts"] * 3], older_than=0)
    at_the_gate(purger, "commit facts")
    for step in ("commit facts", "commit terms"):
        purger.go()
        assert purger.wait("gate")["step"] == step
    TOM_IS_BACK.send(adder, kb, "back", gates=["commit facts"])
    at_the_gate(adder, "commit facts")
    purger.go()
    assert purger.wait("gate")["step"] == "commit facts"
    assert let_go(adder)["races"] == []
    assert let_go(purger)["races"] == ["commit facts"]
    assert_newest(kb, TOM_IS_BACK.after(without_tom(state)))


def test_a_purge_that_dies_takes_no_term_from_a_writer(
    nursery: Nursery, pair: Pair, with_tom: tuple[Path, State]
) -> None:
    kb, state = with_tom
    forgotten(kb)
    adder = pair[0]
    TOM_IS_BACK.send(adder, kb, "back", gates=["commit facts"])
    purger = nursery.loader()
    purger.send(kb, "vacuum", gates=["commit terms"], older_than=0, die="after commit terms")
    at_the_gate(purger, "commit terms")
    at_the_gate(adder, "commit facts")
    purger.go()
    purger.died()
    let_go(adder)
    assert_newest(kb, TOM_IS_BACK.after(without_tom(state)))


def test_a_writer_among_two_purges(
    nursery: Nursery, pair: Pair, with_tom: tuple[Path, State]
) -> None:
    kb, state = with_tom
    forgotten(kb)
    gates = ["commit facts", "commit terms"]
    for purger in pair:
        purger.send(kb, "vacuum", gates=gates, older_than=0)
        at_the_gate(purger, "commit facts")
    for purger in pair:
        purger.go()
        assert purger.wait("gate")["step"] == "commit terms"
    let_go(pair[0])
    adder = nursery.loader()
    try:
        TOM_IS_BACK.send(adder, kb, "back", gates=["commit facts"])
        at_the_gate(adder, "commit facts")
        let_go(pair[1])
        let_go(adder)
    finally:
        adder.kill()
    assert_newest(kb, TOM_IS_BACK.after(without_tom(state)))
