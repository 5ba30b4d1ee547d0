"""What engines and deltalake say, without what only their authors understand."""

from __future__ import annotations

import pytest

from inferlake.engines.quiet import without_stack


@pytest.mark.parametrize(
    "said,told",
    [
        ("no JSON\n   0: <unknown>\n  12: start_thread\n  at ./x.c:442:8\n", "no JSON"),
        ("no table\n\nJVM stacktrace:\norg.apache.X\n\tat org.Y(Z.java:1)", "no table"),
        ("no\n   \x1b[31m↳\x1b[0m file\n    \x1b[31m↳\x1b[0m there\n\n", "no: file: there"),
        ("two lines\nof one error", "two lines\nof one error"),
        ("", ""),
    ],
)
def test_colours_and_stacks_are_left_out(said: str, told: str) -> None:
    assert without_stack(ValueError(said)) == told
