"""What can go wrong, as one tree.

    InferlakeError               exit code 1
    ├── InputError               2   a file that is missing, unreadable or not valid RDF
    ├── StoreError               3   a folder that cannot serve as a store
    │   ├── NotAStore                no store there, or something else is
    │   ├── NewerFormat              written by a later release
    │   ├── VersionNotFound          never committed, or vacuumed since
    │   └── Conflict                 other writers won too many times in a row
    ├── RuleError                5   a rule file or program that cannot be understood
    ├── LimitReached             6   more to derive than a limit allows
    └── EngineError              4   Spark or Sail could not start or finish a plan
        └── JavaMissing              Apache Spark needs Java, and there is none

Every message names the place and the remedy. Whoever raises one of these has changed nothing
that a reader of the store can see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class InferlakeError(Exception):
    """Any failure that Inferlake foresees and explains."""

    exit_code = 1


class InputError(InferlakeError):
    """Input that cannot be read or is not valid."""

    exit_code = 2


class StoreError(InferlakeError):
    """A store that cannot be opened, read or written."""

    exit_code = 3


class NotAStore(StoreError):
    """The path holds no Inferlake store."""


class NewerFormat(StoreError):
    """The store was written by a later release of Inferlake."""


class VersionNotFound(StoreError):
    """The store has no such version, or no longer has its files."""


class Conflict(StoreError):
    """Other writers committed first, every time."""


class RuleError(InferlakeError):
    """Rules that cannot be read, or are not safe."""

    exit_code = 5

    # So many statements of a file that are wrong are told, and the others counted.
    TOLD = 20

    @classmethod
    def of(cls, wrong: Sequence[str]) -> RuleError:
        """Return all that is wrong with statements, a line each, as one error."""
        more = len(wrong) - cls.TOLD
        rest = [f"and {more:,} more that are wrong; mend these first"] if more > 0 else []
        return cls("\n".join([*wrong[: cls.TOLD], *rest]))


class LimitReached(InferlakeError):
    """An evaluation was told to go no further, and had further to go."""

    exit_code = 6


class EngineError(InferlakeError):
    """The engine failed for a reason that is not the input's."""

    exit_code = 4


class JavaMissing(EngineError):
    """Apache Spark was asked for on a machine without a fitting Java."""
