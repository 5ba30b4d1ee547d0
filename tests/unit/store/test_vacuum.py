"""Which versions a vacuum keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from inferlake.store import VersionInfo
from inferlake.store.vacuum import oldest_within

NOW = datetime(2025, 1, 31, 12, tzinfo=UTC)
DAY = timedelta(days=1)

# Version 0 was committed forty days ago, and so on.
AGES = (40, 30, 8, 6, 1)
HISTORY = [VersionInfo(n, NOW - age * DAY, "load", {}) for n, age in enumerate(AGES)][::-1]


@pytest.mark.parametrize(
    ("days", "oldest"),
    [
        (0, 4),  # only the newest
        (0.5, 4),
        (1.5, 3),  # 3 was current until 4 came a day ago
        (6.5, 2),
        (7, 2),
        (9, 1),
        (35, 0),  # 0 was current until 1 came thirty days ago
        (1000, 0),
    ],
)
def test_a_version_is_kept_if_it_was_current_within_the_time(days: float, oldest: int) -> None:
    assert oldest_within(HISTORY, NOW - days * DAY) == oldest


def test_the_newest_is_kept_however_old_it_is() -> None:
    assert oldest_within(HISTORY[-1:], NOW) == 0


def test_a_version_that_ended_at_the_very_edge_is_not_promised() -> None:
    edge = HISTORY[0].time
    assert oldest_within(HISTORY, edge - timedelta(seconds=30)) == 4
    assert oldest_within(HISTORY, edge - timedelta(minutes=2)) == 3
