"""What a run of a program did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inferlake.evaluate.report import Contradiction, Round
from inferlake.progress import counted, one_line


@dataclass(frozen=True)
class RelationCount:
    """How many facts of a relation were given, and how many more were derived."""

    given: int
    derived: int


@dataclass(frozen=True)
class RunReport:
    """The account of one run: relations by name, and where those that rules derive were written."""

    program: str
    output: str
    relations: Mapping[str, RelationCount]
    # The relations of which there is a file in `output`.
    written: tuple[str, ...]
    rounds: tuple[Round, ...]
    engine: str
    seconds: Mapping[str, float]
    contradictions: tuple[Contradiction, ...] = ()
    more_contradictions: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def derived(self) -> int:
        """How many facts were derived, in all relations."""
        return sum(count.derived for count in self.relations.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return {"operation": "run", **asdict(self)}

    def __str__(self) -> str:
        rounds = counted(len(self.rounds), "round")
        shown = [f"{name} {self.relations[name].derived:,}" for name in self.written[:_SHOWN]]
        more = ", …" if len(self.written) > _SHOWN else ""
        parts = [
            f"derived {counted(self.derived, 'fact')} in {rounds}:"
            f" {', '.join(shown) or 'none'}{more}",
            f"wrote {self.output}",
        ]
        if self.contradictions:
            more = " or more" if self.more_contradictions else ""
            parts.insert(1, f"{len(self.contradictions)}{more} contradictions")
        return one_line("; ".join(parts), self.seconds, self.engine)


# So many relations are counted in the line that ends a run; JSON has them all.
_SHOWN = 8
