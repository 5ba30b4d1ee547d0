"""Term ids: a pure function of a term's canonical N-Triples form.

An id is 62 bits of xxHash64 (seed 42, as Spark's `xxhash64`). The sign bit is set for literals and
the lowest for blank nodes: encoding needs no look-up, and whether a term may be the subject or the
predicate of a triple is asked of its id, without the dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass

import xxhash

# Spark fixes the seed of its xxhash64.
_SPARK_SEED = 42
_LITERAL = -(2**63)
_BLANK = 1


@dataclass(frozen=True)
class TermHash:
    """The hash behind the ids. Fewer `bits` than 62 are for tests that need collisions."""

    bits: int = 62

    @property
    def _mask(self) -> int:
        return (1 << self.bits) - 1 << 1  # the lowest bit is taken

    def sql(self, term: str) -> str:
        """Return SQL for the id of the SQL expression `term`.

        The sign bit is a string in the SQL because -9223372036854775808 parses as a decimal.
        """
        literal = f"WHEN startswith({term}, '\"') THEN BIGINT('{_LITERAL}')"
        blank = f"WHEN startswith({term}, '_:') THEN BIGINT({_BLANK})"
        return f"((xxhash64({term}) & {self._mask}) | CASE {literal} {blank} ELSE BIGINT(0) END)"

    def of(self, term: str) -> int:
        """Return the id of `term`, equal to what the engines compute.

        >>> TermHash().of("<http://example.org/a>") > 0 > TermHash().of('"a"')
        True
        """
        digest = xxhash.xxh64_intdigest(term.encode(), seed=_SPARK_SEED) & self._mask
        if term.startswith('"'):
            return digest + _LITERAL
        return digest + _BLANK if term.startswith("_:") else digest


FULL = TermHash()


def is_resource(id: int) -> bool:
    """Tell whether the term may be a subject: anything but a literal."""
    return id >= 0


def is_iri(id: int) -> bool:
    """Tell whether the term may be a predicate: neither a literal nor a blank node."""
    return id >= 0 and not id & _BLANK


def is_resource_sql(id: str) -> str:
    """Return SQL for `is_resource`."""
    return f"{id} >= 0"


def is_iri_sql(id: str) -> str:
    """Return SQL for `is_iri`."""
    return f"({id} >= 0 AND {id} & {_BLANK} = 0)"
