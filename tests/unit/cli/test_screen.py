"""What a person sees while a command works."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from inferlake.cli import screen
from inferlake.cli.screen import Bar, Lines, Quiet, watcher


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times = [100.0]
    monkeypatch.setattr("inferlake.cli.screen.time.perf_counter", lambda: times[-1])
    return times


def test_without_a_terminal_each_phase_is_a_line(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    lines.phase("parse", 1000)
    lines.advance(size=10, triples=100)
    lines.phase("commit")
    lines.close()
    assert capsys.readouterr() == ("", "parse ...\ncommit ...\n")


def test_a_long_phase_tells_every_few_seconds_how_far_it_is(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    lines.phase("parse", 1000)
    for later in (102.0, 106.0, 107.0, 120.0):
        clock.append(later)
        lines.advance(size=10, triples=3000)
    assert capsys.readouterr().err.splitlines() == [
        "parse ...",
        "parse: 6,000 triples, 1,000/s",
        "parse: 12,000 triples, 600/s",
    ]


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Quiet()
    quiet.phase("parse", 1000)
    quiet.advance(size=10, triples=100)
    quiet.close()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_with_phase_triples_and_rate(clock: list[float]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    bar = Bar(console)
    bar.phase("parse", 100)
    clock.append(102.0)
    bar.advance(size=50, triples=2_000_000)
    shown = bar._progress.tasks[0]
    assert (shown.description, shown.completed, shown.total) == ("parse", 50, 100)
    assert shown.fields["seen"] == "2,000,000 triples, 1,000,000/s"
    bar.phase("commit")
    assert (shown.description, shown.completed) == ("commit", 0)
    bar.close()


@pytest.mark.parametrize(("terminal", "kind"), [(True, Bar), (False, Lines)])
def test_the_listener_fits_where_standard_error_goes(
    terminal: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal)
    monkeypatch.setattr(screen, "Console", lambda stderr: console)
    listener = watcher(quiet=False)
    listener.close()
    assert isinstance(listener, kind)
    assert isinstance(watcher(quiet=True), Quiet)
