"""Term ids: a pure function of a term's canonical N-Triples form.

An id is 63 bits of xxHash64 (seed 42, as Spark's `xxhash64`), with the sign bit set for literals:
encoding needs no look-up, and `id < 0` asks "is it a literal?" without the dictionary.
"""

from __future__ import annotations

from dataclasses import dataclass

import xxhash

# Spark fixes the seed of its xxhash64.
_SPARK_SEED = 42
_LITERAL = -(2**63)


@dataclass(frozen=True)
class TermHash:
    """The hash behind the ids. Fewer `bits` than 63 are for tests that need collisions."""

    bits: int = 63

    @property
    def _mask(self) -> int:
        return (1 << self.bits) - 1

    def sql(self, term: str) -> str:
        """Return SQL for the id of the SQL expression `term`.

        The sign bit is a string in the SQL because -9223372036854775808 parses as a decimal.
        """
        sign = f"IF(startswith({term}, '\"'), BIGINT('{_LITERAL}'), BIGINT(0))"
        return f"((xxhash64({term}) & {self._mask}) | {sign})"

    def of(self, term: str) -> int:
        """Return the id of `term`, equal to what the engines compute.

        >>> TermHash().of("<http://example.org/a>") > 0 > TermHash().of('"a"')
        True
        """
        digest = xxhash.xxh64_intdigest(term.encode(), seed=_SPARK_SEED) & self._mask
        return digest + _LITERAL if term.startswith('"') else digest


FULL = TermHash()
