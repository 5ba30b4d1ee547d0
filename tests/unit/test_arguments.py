"""What callers hand in: taken as it is meant, or refused by name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from inferlake.arguments import milliseconds, transaction_of
from inferlake.errors import InputError, RuleError
from inferlake.rules.load import names_of


@pytest.mark.parametrize("moment", [2**63, 2**63 - 1, -(2**63), 253_402_300_800_000])
def test_a_time_that_no_datetime_can_name_is_refused(moment: int) -> None:
    with pytest.raises(InputError, match="behind the year 9999"):
        milliseconds(moment)


def test_the_last_time_of_all_is_a_time() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    assert milliseconds(last) == milliseconds(253_402_300_799_999)


@pytest.mark.parametrize("given", [("x", True), ("x", 2**63), ("x", "1"), "x", ("x", 1, 2)])
def test_what_the_log_cannot_keep_is_no_transaction(given: Any) -> None:
    with pytest.raises(InputError, match="a transaction is a name and a number"):
        transaction_of(given)
    assert transaction_of(("x", -(2**63))) == ("x", -(2**63))


def test_rules_are_named_by_texts_and_paths() -> None:
    assert names_of("rdfs") == ("rdfs",) and names_of(Path("r.dl")) == ("r.dl",)
    assert names_of(["rdfs", Path("r.dl")]) == ("rdfs", "r.dl")


@pytest.mark.parametrize("given", [[None], [5], [["rdfs"]]])
def test_what_names_no_rules_is_told(given: Any) -> None:
    with pytest.raises(RuleError, match="is no name of rules: give a profile or a path"):
        names_of(given)
