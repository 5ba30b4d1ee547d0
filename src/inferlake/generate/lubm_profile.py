"""How many of what LUBM data have, and the random numbers that decide, as SQL text.

The numbers are the published profile of UBA, the data generator of Guo, Pan and Heflin, "LUBM: A
Benchmark for OWL Knowledge Base Systems" (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Between(NamedTuple):
    """An inclusive range, all of whose numbers are equally likely."""

    low: int
    high: int


@dataclass(frozen=True)
class Rank:
    """A rank of faculty. Only professors advise students and have a research interest."""

    name: str
    members: Between  # of a department
    publications: Between  # of a member
    professor: bool = True


@dataclass(frozen=True)
class Profile:
    """How many of what; a range is drawn from anew for each thing that it is about."""

    departments: Between  # of a university
    ranks: tuple[Rank, ...]
    research_groups: Between  # of a department
    taught_courses: Between  # by a member of faculty
    taught_graduate_courses: Between
    undergraduates_per_faculty: Between
    graduates_per_faculty: Between
    courses_of_undergraduate: Between
    courses_of_graduate: Between
    undergraduates_per_advised: int
    graduates_per_teaching_assistant: Between
    graduates_per_research_assistant: Between
    publications_of_graduate: Between  # with a member of faculty
    degree_universities: int
    research_interests: int


UBA = Profile(
    departments=Between(15, 25),
    ranks=(
        Rank("FullProfessor", Between(7, 10), publications=Between(15, 20)),
        Rank("AssociateProfessor", Between(10, 14), publications=Between(10, 18)),
        Rank("AssistantProfessor", Between(8, 11), publications=Between(5, 10)),
        Rank("Lecturer", Between(5, 7), publications=Between(0, 5), professor=False),
    ),
    research_groups=Between(10, 20),
    taught_courses=Between(1, 2),
    taught_graduate_courses=Between(1, 2),
    undergraduates_per_faculty=Between(8, 14),
    graduates_per_faculty=Between(3, 4),
    courses_of_undergraduate=Between(2, 4),
    courses_of_graduate=Between(1, 3),
    undergraduates_per_advised=5,
    graduates_per_teaching_assistant=Between(4, 5),
    graduates_per_research_assistant=Between(3, 4),
    publications_of_graduate=Between(0, 5),
    degree_universities=1000,
    research_interests=30,
)


def hashed(purpose: str, *key: str) -> str:
    """Return the SQL of 64 random bits: others for each purpose, key and value of column `place`.

    Keys are SQL of type BIGINT, for an INT of the same value has another hash.
    """
    return f"xxhash64({', '.join(('place', repr(purpose), *key))})"


def drawn(low: int | str, high: int | str, purpose: str, *key: str) -> str:
    """Return the SQL of a random number from `low` to `high`, both included."""
    return f"({low} + pmod({hashed(purpose, *key)}, {high} - ({low}) + 1))"


def picked(j: str, k: str, n: str, purpose: str, *key: str) -> str:
    """Return the SQL of the j-th of k different numbers below n, every number equally likely.

    The numbers below n are cut into k strata and the j-th is drawn from the j-th stratum; then all
    are turned by one random angle, so that no number belongs to a stratum. Needs 1 <= k <= n.
    """
    low, high = f"(({j}) * {n}) div {k}", f"(({j}) * {n} + {n}) div {k}"
    inside = f"pmod({hashed(purpose, *key, j)}, {high} - {low})"
    return f"pmod(pmod({hashed(purpose, *key)}, {n}) + {low} + {inside}, {n})"
