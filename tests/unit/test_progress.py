"""Stopwatch: seconds by phase; and the line that ends every command."""

from __future__ import annotations

import pytest

from inferlake.progress import Silent, Stopwatch, one_line


class Heard(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None]] = []

    def phase(self, name: str, total: int | None = None) -> None:
        self.phases.append((name, total))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until a test appends a later time."""
    times = [100.0]
    monkeypatch.setattr("inferlake.progress.time.perf_counter", lambda: times[-1])
    return times


def test_phases_are_announced_and_timed_in_order(clock: list[float]) -> None:
    heard = Heard()
    watch = Stopwatch(heard)
    with watch.phase("parse", 1000):
        clock.append(101.5)
    with watch.phase("commit"):
        clock.append(102.0)
    assert heard.phases == [("parse", 1000), ("commit", None)]
    assert list(watch.seconds.items()) == [("parse", 1.5), ("commit", 0.5)]


def test_a_phase_entered_again_adds_up(clock: list[float]) -> None:
    watch = Stopwatch(Silent())
    for later in (103.0, 107.0):
        with watch.phase("facts"):
            clock.append(later)
    assert watch.seconds == {"facts": 7.0}


def test_a_phase_that_fails_is_timed_too(clock: list[float]) -> None:
    watch = Stopwatch(Silent())
    with pytest.raises(RuntimeError), watch.phase("facts"):
        clock.append(102.0)
        raise RuntimeError
    assert watch.seconds == {"facts": 2.0}


def test_the_line_tells_phases_rate_and_engine() -> None:
    line = one_line("loaded", {"parse": 1.0, "commit": 1.0}, "spark", triples=2_000_000)
    assert line == "loaded (parse 1.00 s, commit 1.00 s; 1,000,000 triples/s on spark)"


@pytest.mark.parametrize(("seconds", "triples"), [({"read": 0.1}, 0), ({"read": 0.0}, 5)])
def test_there_is_no_rate_without_triples_or_time(seconds: dict[str, float], triples: int) -> None:
    assert "triples/s" not in one_line("done", seconds, "sail", triples=triples)
