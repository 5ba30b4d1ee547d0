"""Changes to a store, and the reports they come back with."""

from inferlake.maintain.load import load
from inferlake.maintain.report import LoadReport
from inferlake.maintain.verify import VerifyReport, verify

__all__ = ["LoadReport", "VerifyReport", "load", "verify"]
