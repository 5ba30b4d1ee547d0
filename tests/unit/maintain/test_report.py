"""The account of a load, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace

from inferlake.input import Bad
from inferlake.maintain import ChangeReport

REPORT = ChangeReport(
    operation="load",
    version=3,
    read=1_000_000,
    added=250_000,
    files=12,
    engine="sail",
    seconds={"parse": 1.5, "commit": 0.5},
)


def test_a_load_is_told_in_one_line() -> None:
    assert str(REPORT) == (
        "loaded 250,000 new triples of 1,000,000 read from 12 files; version 3"
        " (parse 1.50 s, commit 0.50 s; 500,000 triples/s on sail)"
    )


def test_what_was_left_out_is_told() -> None:
    line = str(replace(REPORT, bad_count=1234, graphs_dropped=5))
    assert "; skipped 1,234 bad statements; dropped the names of 5 graphs; version 3" in line


def test_a_batch_that_was_applied_before_is_told() -> None:
    assert "batch already applied; still version 3" in str(replace(REPORT, repeated=True))


def test_a_report_is_json_with_the_places_of_bad_statements() -> None:
    bad = Bad("/a.nt", 3, 7, "text", "wrong")
    data = json.loads(json.dumps(replace(REPORT, bad_count=1, bad=(bad,)).as_dict()))
    assert data["operation"] == "load"
    assert (data["version"], data["read"], data["added"]) == (3, 1_000_000, 250_000)
    assert data["seconds"] == {"parse": 1.5, "commit": 0.5}
    assert data["bad"] == [
        {"address": "/a.nt", "line": 3, "column": 7, "text": "text", "message": "wrong"}
    ]
