"""The store: two Delta tables, `terms` and `facts`, with versions, pruning and compaction."""

from inferlake.store.dictionary import Dictionary
from inferlake.store.facts import LAYERS, FactTable, Layer
from inferlake.store.store import ARRANGING, FORMAT, Store, VersionInfo
from inferlake.store.table import Commit, CommitRace

__all__ = [
    "ARRANGING",
    "FORMAT",
    "LAYERS",
    "Commit",
    "CommitRace",
    "Dictionary",
    "FactTable",
    "Layer",
    "Store",
    "VersionInfo",
]
