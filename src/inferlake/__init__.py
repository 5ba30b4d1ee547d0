"""Inferlake keeps the inferences of a knowledge graph up to date, on Spark.

import inferlake
kb = inferlake.open("kb")
kb.load("data/*.nt.gz")
kb.facts().show()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferlake.datalog import RunReport, materialize, run
    from inferlake.errors import (
        Conflict,
        EngineError,
        InferlakeError,
        InputError,
        JavaMissing,
        LimitReached,
        NewerFormat,
        NotAStore,
        RuleError,
        StoreError,
        VersionNotFound,
    )
    from inferlake.kb import KnowledgeBase, Stats, open
    from inferlake.maintain import ChangeReport

__all__ = [
    "ChangeReport",
    "Conflict",
    "EngineError",
    "InferlakeError",
    "InputError",
    "JavaMissing",
    "KnowledgeBase",
    "LimitReached",
    "NewerFormat",
    "NotAStore",
    "RuleError",
    "RunReport",
    "Stats",
    "StoreError",
    "VersionNotFound",
    "materialize",
    "open",
    "run",
]

_HOME = {
    "KnowledgeBase": "kb",
    "Stats": "kb",
    "open": "kb",
    "ChangeReport": "maintain",
    "RunReport": "datalog",
    "materialize": "datalog",
    "run": "datalog",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `inferlake --help` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'inferlake' has no attribute '{name}'")
    return getattr(import_module(f"inferlake.{_HOME.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    """Name what is public, for those who complete by tabulator."""
    return sorted(__all__)
