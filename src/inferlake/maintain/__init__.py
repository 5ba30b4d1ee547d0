"""Changes to a store, and the reports they come back with."""

from inferlake.maintain.load import load
from inferlake.maintain.report import LoadReport, one_line

__all__ = ["LoadReport", "load", "one_line"]
