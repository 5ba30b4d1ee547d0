"""Writers that come in between while facts expire: nothing is lost, no clock goes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inferlake.kb import KnowledgeBase
from inferlake.rules.load import RuleText
from inferlake.session import Engine
from inferlake.store.table import Commit, Snapshot, Table
from tests.property.windowing import Triple, Windowed

EDGE = "<e:p>"
PATHS = "[path] [?x, <e:p>, ?z] :- [?x, <e:p>, ?y], [?y, <e:p>, ?z] ."


def edge(one: str, other: str) -> Triple:
    return f"<e:{one}>", EDGE, f"<e:{other}>"


@pytest.fixture
def made(tmp_path: Path) -> Windowed:
    engine = Engine("sail", KnowledgeBase(tmp_path, engine="sail")._sessions.for_reading().session)
    store = Windowed(engine, tmp_path, [RuleText("paths.dl", PATHS)])
    store.load([edge("a", "b")])
    store.update(stream={edge("b", "c"): 0, edge("c", "d"): 5}, window=10)
    return store


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Let something be done just before the next commit to facts."""

    def arrange(what: Callable[[], None]) -> None:
        commit = Table.commit

        def late(self: Table, base: Snapshot, one: Commit) -> int:
            if self.place.address.endswith("facts"):
                monkeypatch.setattr(Table, "commit", commit)
                what()
            return commit(self, base, one)

        monkeypatch.setattr(Table, "commit", late)

    return arrange


def other(made: Windowed) -> Windowed:
    """Return another writer of the same store, with the same model."""
    again = Windowed(made.engine, made.folder, made.texts)
    again.asserted, again.clock, again.steps = made.asserted, made.clock, made.steps + 100
    return again


def test_an_event_that_another_clock_made_late(made: Windowed, between: Callable) -> None:
    def expire() -> None:
        made.clock = 12
        made.kb.expire(12)

    between(expire)
    report = made.update(stream={edge("d", "e"): 1, edge("d", "f"): 9}, window=10, now=4)
    assert (report.late, report.clock) == (1, 12)


def test_an_assertion_for_ever_comes_first(made: Windowed, between: Callable) -> None:
    def load() -> None:
        made.kb.load(made.file([edge("b", "c")]))
        made.asserted["triple", edge("b", "c")] = 2**63 - 1

    between(load)
    made.update(stream={edge("b", "c"): 7, edge("x", "a"): 7}, window=10, now=6)
    made.expire(100)
    assert made.facts("all") == {edge("a", "b"), edge("b", "c"), edge("a", "c")}


def test_a_window_comes_between_in_a_store_without_one(tmp_path: Path, between: Callable) -> None:
    engine = Engine("sail", KnowledgeBase(tmp_path, engine="sail")._sessions.for_reading().session)
    made = Windowed(engine, tmp_path, [RuleText("paths.dl", PATHS)])
    made.load([edge("a", "b")])

    def stream() -> None:
        new = other(made)
        new.update(stream={edge("b", "c"): 0}, window=10)
        made.asserted = dict(new.asserted)

    between(stream)
    made.update(add=[edge("c", "d")], remove=[edge("a", "b")])
    made.expire(10)


def test_a_commit_that_fails_changes_nothing(
    made: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = made.kb.version

    def fails(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Table, "commit", fails)
        with pytest.raises(KeyboardInterrupt):
            made.kb.expire(50)
    assert made.kb.version == version
    assert made.kb.stats().clock is None
    made.expire(10)
    made.expire(15)
