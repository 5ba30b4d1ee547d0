"""The examples of docs/rules.md are programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inferlake.rules.load import RuleText, compiled

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rules.md"
EXAMPLES = re.findall(r"```datalog\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_a_program(text: str) -> None:
    assert compiled([RuleText("rules.md", text)]).rules


def test_an_example_of_vlog_is_a_program() -> None:
    (text,) = re.findall(r"```\n(RP0.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(compiled([RuleText("rules.dlog", text)]).rules) == 2
