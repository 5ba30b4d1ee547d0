"""What a stream says that it did."""

from __future__ import annotations

from dataclasses import replace

from inferlake.stream.report import BatchReport, Totals

BATCH = BatchReport(
    stream="s",
    batch=0,
    version=1,
    lines=3,
    bad=0,
    added=3,
    removed=0,
    derived=1_000,
    withdrawn=0,
    seconds=0.1,
    phases={},
    engine="sail",
    algorithm="rebuild",
)


def test_what_was_derived_again_is_not_counted_again() -> None:
    totals = Totals("s", "letters")
    totals.add(BATCH)  # the first: all of it is new
    totals.add(replace(BATCH, batch=1, algorithm="bf", derived=5, withdrawn=2))
    totals.add(replace(BATCH, batch=2, derived=1_010, withdrawn=1_003))
    totals.add(replace(BATCH, batch=3, derived=1_006, withdrawn=1_010))
    report = totals.report(0, 0, (), ())
    assert (report.derived, report.withdrawn) == (1_000 + 5 + 7, 2 + 4)
    assert report.derived - report.withdrawn == 1_006
