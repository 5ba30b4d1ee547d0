"""Changes to a store, and the reports they come back with."""

from inferlake.maintain.load import load
from inferlake.maintain.report import LoadReport

__all__ = ["LoadReport", "load"]
