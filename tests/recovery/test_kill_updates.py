"""An update that dies leaves the version before or the version after, closed under its rules."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from .processes import Nursery, assert_sound, leftovers, make_old
from .updates import (
    DOMAIN,
    SUBCLASS,
    TYPE,
    Chance,
    State,
    Update,
    assert_closed,
    assert_history,
    ex,
    loaded,
    reach_rules,
)

_KILLS = 20
_AT_LEAST = 3


def test_an_update_killed_at_a_random_moment_is_there_as_a_whole_or_not_at_all(
    nursery: Nursery, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    reach = reach_rules(tmp_path)
    chance = Chance(random.Random(9), (("rdfs",), ("rdfs", reach), (reach,)))
    states = [State(frozenset(chance.triple() for _ in range(20)))]
    opened = loaded(kb, states[0])
    update, usual = Update(), 0.5
    cut_off = whole = 0
    loader = nursery.loader()
    try:
        for kill in range(_KILLS):
            if kill:
                # The update after a kill works, whether or not the killed one had.
                began = time.monotonic()
                update.send(loader, kb, f"{kill}-again")
                loader.wait("begin")
                report = loader.wait("done")
                usual = (usual + time.monotonic() - began) / 2
                states.append(update.after(states[-1]))
                assert report["version"] == opened.version == len(states)
                assert_closed(opened, states[-1])

            update = chance.among(8 + kill).update(states[-1].asserted)
            update.send(loader, kb, f"{kill}")
            loader.wait("begin")
            time.sleep(chance.source.uniform(0, 1.2 * usual))
            told = loader.kill()

            if opened.version == len(states):
                assert "done" not in told
                cut_off += 1
            else:
                states.append(update.after(states[-1]))
                whole += 1
            assert opened.version == len(states)
            assert_closed(opened, states[-1])
            assert_sound(kb)
            loader = nursery.loader()
    finally:
        loader.kill()
    assert_history(kb, states)
    assert cut_off >= _AT_LEAST, "too many updates were faster than their killer"
    assert whole >= _AT_LEAST, "too few updates were faster than their killer"


def _everything_at_once(reach: str) -> tuple[State, Update]:
    """Return an update of facts, schema and rules that brings new terms."""
    steps = [(ex(n), ex("p0"), ex(n + 1)) for n in range(5)]
    schema = [(ex("p0"), DOMAIN, ex("C0")), (ex("C0"), SUBCLASS, ex("C1"))]
    return State(frozenset(steps + schema)), Update(
        add=(("<http://new.example.org/x>", TYPE, ex("C2")), (ex("C2"), SUBCLASS, ex("C1"))),
        remove=(steps[2], schema[0]),
        rules=("rdfs", reach),
    )


def _patch(reach: str) -> tuple[State, Update]:
    """Return an update, as a patch, that withdraws facts of a recursive relation."""
    steps = [(ex(n), ex("p0"), ex(n + 1)) for n in range(6)]
    kinds = [(ex(n), TYPE, ex("C0")) for n in (0, 3)]
    return State(frozenset(steps + kinds), (reach,)), Update(
        add=((ex(4), ex("p0"), ex("new")), (ex("new"), TYPE, ex("C0"))),
        remove=(steps[1], steps[4], kinds[0]),
        algorithm="dred",
        as_patch=True,
    )


@pytest.mark.parametrize(
    ("made", "die"),
    [
        (_everything_at_once, "before commit terms"),
        (_everything_at_once, "after commit terms"),
        (_everything_at_once, "before commit facts"),
        (_everything_at_once, "after commit facts"),
        (_patch, "before commit facts"),
        (_patch, "after commit facts"),
    ],
)
def test_an_update_killed_around_a_commit(
    made: Callable[[str], tuple[State, Update]], die: str, nursery: Nursery, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    start, update = made(reach_rules(tmp_path))
    opened = loaded(kb, start)
    states = [start, update.after(start)]
    loader = nursery.loader()
    update.send(loader, kb, "killed", die=die)
    assert loader.died() == ["begin"]

    survives = die == "after commit facts"
    assert opened.version == 1 + survives
    assert_closed(opened, states[survives])
    assert_sound(kb)

    report = opened.update(**update.options(tmp_path, "again"))
    assert (report.version, report.added, report.removed) == (
        (3, 0, 0) if survives else (2, len(update.add), len(update.remove))
    )
    assert_sound(kb)

    # What the dead update left is swept away once it is old, and nothing else is.
    make_old(kb)
    opened.vacuum(timedelta(days=2))
    assert_history(kb, [start, *[states[1]] * report.version])
    assert not leftovers(kb)
