"""Rules without a store: programs over tables of any arity, and closures of DataFrames."""

from inferlake.datalog.frames import materialize
from inferlake.datalog.program import run
from inferlake.datalog.report import RunReport

__all__ = ["RunReport", "materialize", "run"]
