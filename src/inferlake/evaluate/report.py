"""What an evaluation did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Round:
    """One query: the rules in it, and the facts that were new."""

    number: int
    kind: str
    rules: tuple[str, ...]
    new: int
    seconds: float
    # Facts that rules gave before repetitions were dropped; None where nobody asked for it.
    derived: int | None = None

    def __str__(self) -> str:
        derived = "" if self.derived is None else f"{self.derived:,} derived, "
        return (
            f"round {self.number} ({self.kind}): {derived}{self.new:,} new in"
            f" {self.seconds:.2f} s by {', '.join(self.rules)}"
        )
