"""A load that dies leaves nothing that a reader could see, wherever it dies."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from pathlib import Path

import pytest

from inferlake.errors import NotAStore
from inferlake.kb import KnowledgeBase

from .processes import Nursery, assert_sound, leftovers, make_old, write_numbered

_KILLS = 20
_SIZE = 3000

# A state of the store: its version, -1 where there is none, and its facts.
State = tuple[int, frozenset[str]]
_NOTHING: State = (-1, frozenset())


def opened(kb: Path) -> KnowledgeBase:
    return KnowledgeBase(kb, engine="sail")


def state(kb: Path) -> State:
    """Return the state of the store, after a look at every row of it."""
    try:
        version = opened(kb).version
    except NotAStore:
        return _NOTHING
    out = kb.with_name("exported.nt")
    assert opened(kb).export(out).version == version
    lines = out.read_text().splitlines()
    assert len(lines) == len(set(lines))
    assert_sound(kb)
    return version, frozenset(lines)


def loaded(before: State, lines: set[str]) -> State:
    """Return the state after a load of `lines`; a new store begins with an empty version 0."""
    version, facts = before
    return max(version, 0) + 1, facts | lines


def test_a_load_killed_at_a_random_moment_is_there_as_a_whole_or_not_at_all(
    nursery: Nursery, tmp_path: Path
) -> None:
    kb = tmp_path / "kb"
    chance = random.Random(20)
    now, usual = _NOTHING, 0.5
    file, lines = tmp_path / "first.nt", set[str]()
    cut_off = 0
    loader = nursery.loader()
    try:
        for kill in range(_KILLS):
            if kill:
                # The load after a kill works, and brings what the killed one did not.
                began = time.monotonic()
                loader.send(kb, "load", file)
                loader.wait("begin")
                report = loader.wait("done")
                usual = min(usual, time.monotonic() - began)
                assert report["added"] == len(lines - now[1])
                now = loaded(now, lines)
                assert state(kb) == now

            # Each file overlaps the one before; Turtle is parsed elsewhere than N-Triples.
            file = tmp_path / f"{kill}.{'ttl' if kill % 4 == 3 else 'nt'}"
            start = kill * _SIZE * 2 // 3
            lines = write_numbered(file, range(start, start + _SIZE))
            loader.send(kb, "load", file)
            loader.wait("begin")
            time.sleep(chance.uniform(0, usual))
            told = loader.kill()

            whole = loaded(now, lines)
            created = (max(now[0], 0), now[1])
            after = state(kb)
            assert after == whole if "done" in told else after in (now, created, whole)
            if after != _NOTHING:
                history = opened(kb).history()
                assert [info.version for info in history] == list(range(after[0], -1, -1))
                assert sum(info.info.get("added", 0) for info in history) == len(after[1])
            cut_off += after != whole
            now = after
            loader = nursery.loader()
    finally:
        loader.kill()
    assert cut_off >= _KILLS // 4, "too many loads were faster than their killer"


@pytest.mark.parametrize(
    "die",
    [
        "before create facts",
        "before commit terms",
        "after commit terms",
        "before commit facts",
        "after commit facts",
    ],
)
def test_a_load_killed_around_a_commit(die: str, nursery: Nursery, tmp_path: Path) -> None:
    kb, first, second = tmp_path / "kb", tmp_path / "first.nt", tmp_path / "second.nt"
    before = _NOTHING
    known = write_numbered(first, range(100))
    if "create" not in die:
        opened(kb).load(first)
        before = (1, frozenset(known))
    lines = write_numbered(second, range(50, 150))
    loader = nursery.loader()
    loader.send(kb, "load", second, die=die)
    assert loader.died() == ["begin"]

    survives = die == "after commit facts"
    assert state(kb) == (loaded(before, lines) if survives else before)
    report = opened(kb).load(second)
    after = state(kb)
    assert report.added == len(after[1] - before[1]) * (not survives)
    assert after[1] == before[1] | lines

    # What the dead load left is swept away once it is old, and nothing else is.
    make_old(kb)
    opened(kb).vacuum(timedelta(days=2))
    assert state(kb) == (after[0] + 1, after[1])
    assert not leftovers(kb)
