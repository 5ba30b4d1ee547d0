"""What an evaluation did."""

from __future__ import annotations

from dataclasses import dataclass

from inferlake.rules.model import Atom, Term

# Rules that the line of a round names.
_SHOWN = 8


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
        more = len(self.rules) - _SHOWN
        rules = ", ".join(self.rules[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        line = (
            f"round {self.number} ({self.kind}): {derived}{self.new:,} new in {self.seconds:.2f} s"
        )
        return f"{line} by {rules}" if rules else line


@dataclass(frozen=True)
class Contradiction:
    """A constraint that does not hold, and the facts that break it, in terms."""

    rule: str
    facts: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        return f"{self.rule}: {', '.join(shown_fact(*fact) for fact in self.facts)}"


def shown_fact(relation: str, args: tuple[str, ...]) -> str:
    """Return a fact as the rule language writes it."""
    return str(Atom(relation, tuple(map(Term, args))))
