"""Terms: their canonical N-Triples form, and the ids that stand for them."""

from inferlake.terms.ids import FULL, TermHash
from inferlake.terms.shape import is_canonical_sql, scoped_sql

__all__ = ["FULL", "TermHash", "is_canonical_sql", "scoped_sql"]
