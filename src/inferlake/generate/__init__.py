"""Data for benchmarks, made by the engine itself."""

from inferlake.generate.lubm import LubmReport, generate_lubm
from inferlake.generate.lubm_schema import lubm_ontology

__all__ = ["LubmReport", "generate_lubm", "lubm_ontology"]
