"""What one can ask of each benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from inferlake.bench.data import Data, default_folder

PROFILES = ("rdfs", "rdfs-full", "owl-horst", "owl2rl")
ALGORITHMS = ("auto", "bf", "dred", "counting", "rebuild")


@dataclass(frozen=True)
class Options:
    """What all benchmarks take. A limit is in seconds, and for each case."""

    engines: tuple[str, ...] = ("sail",)
    profile: str = "rdfs"
    repeat: int = 1
    limit: float = 600.0
    folder: Path = field(default_factory=default_folder)
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def asked(cls, *, before: str = "auto", **asked: Any) -> Self:
        """Return the options with what was asked for, where it is not None, and defaults else.

        `before` is the engine said before the command, which counts unless one is said after it.
        """
        if asked.get("engines") is None and before != "auto":
            asked["engines"] = (before,)
        for path in ("folder", "updates"):
            if asked.get(path) is not None:
                asked[path] = Path(asked[path])
        return cls(**{name: value for name, value in asked.items() if value is not None})

    @property
    def data(self) -> Data:
        return Data(self.folder)

    @property
    def engine(self) -> dict[str, object]:
        """What every case of ours is given besides the name of its engine."""
        return {"master": self.master, "conf": dict(self.conf)}


@dataclass(frozen=True)
class MaterializeOptions(Options):
    """Options of `materialize`."""

    engines: tuple[str, ...] = ("sail", "spark")
    universities: int = 10
    peers: tuple[str, ...] = ()
    # The Python that has the peers: some of them do not go together with our dependencies.
    peer_python: str | None = None
    startup: bool = False


@dataclass(frozen=True)
class UpdatesOptions(Options):
    """Options of `updates`."""

    universities: int = 5
    algorithms: tuple[str, ...] = ALGORITHMS
    # The paper's rules for LUBM are the Datalog part of its schema; this profile derives as much.
    removal_profile: str = "owl-horst"
    # A folder of published updates.
    updates: Path | None = None
    parts: tuple[str, ...] = ("six", "removals", "cliques")


@dataclass(frozen=True)
class StreamOptions(Options):
    """Options of `stream`."""

    universities: int = 5
    batches: int = 60
    compact_every: int = 10
    removals: bool = False
    verify: bool = False
    # Instead of batches: triples a second, and for how many seconds each.
    rates: tuple[int, ...] = ()
    seconds: int = 60


@dataclass(frozen=True)
class ScaleOptions(Options):
    """Options of `scale`."""

    engines: tuple[str, ...] = ("sail", "spark")
    universities: tuple[int, ...] = (1, 5, 10, 50, 100)
    startup: bool = False
