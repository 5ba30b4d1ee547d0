"""Data for benchmarks, made by the engine itself."""

from inferlake.generate.lubm import LubmReport, generate_lubm

__all__ = ["LubmReport", "generate_lubm"]
