"""Changes to a store, and the reports they come back with."""

from inferlake.maintain.asked import Change, Source, Window
from inferlake.maintain.change import apply
from inferlake.maintain.choice import ALGORITHMS, Algorithm
from inferlake.maintain.report import ChangeReport
from inferlake.maintain.verify import VerifyReport, verify

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Change",
    "ChangeReport",
    "Source",
    "VerifyReport",
    "Window",
    "apply",
    "verify",
]
