"""What LUBM data say of each kind of thing: triples with SQL in their holes.

The SQL reads the columns of `lubm_plan`: those of a department (`university`, `department`, `host`,
a count by the name of each rank, ...) and those of a member of it (`kind`, `i`, ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from inferlake.generate.lubm_profile import UBA, Between, Rank, drawn, picked

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "ub": "http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl#",
}
ONTOLOGY = "<http://www.lehigh.edu/~zhp2/2004/0401/univ-bench.owl>"
DOCUMENT = "<http://www.lehigh.edu/~zhp2/2004/0401/University{university}_{department}.owl>"
DEPARTMENT = "<http://www.{host}>"
MEMBER = "<http://www.{host}/{kind}{i}>"
PUBLICATION = "<http://www.{host}/{author}/Publication{publication}>"

FACULTY_DEGREES = ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom")
GRADUATE_DEGREE = "undergraduateDegreeFrom"


class Statement(NamedTuple):
    """A triple with `ub:` names and SQL in braces; there is none where the SQL `when` is false."""

    text: str
    when: str = "true"


def line(statement: Statement) -> str:
    """Return the SQL of the statement's N-Triples line, null where there is none.

    >>> line(Statement("<http://{host}> ub:age <http://{i}>", "i > 3"))[:50]
    "CASE WHEN i > 3 THEN concat('<http://', host, '> <"
    """
    # Every second piece was inside braces.
    pieces = enumerate(re.split("[{}]", f"{statement.text} ."))
    parts = ", ".join(piece if at % 2 else f"'{_expanded(piece)}'" for at, piece in pieces)
    return f"CASE WHEN {statement.when} THEN concat({parts}) END"


def _expanded(text: str) -> str:
    return re.sub(r"\b(rdf|owl|ub):(\w+)", lambda name: f"<{PREFIXES[name[1]]}{name[2]}>", text)


def university(number: str) -> Iterator[Statement]:
    """A university that is here, or that gave someone here a degree."""
    yield Statement(f"{_university(number)} rdf:type ub:University")


def department() -> Iterator[Statement]:
    """A department, with the header of its document; the first one names the university."""
    yield Statement(f"{DOCUMENT} rdf:type owl:Ontology")
    yield Statement(f"{DOCUMENT} owl:imports {ONTOLOGY}")
    here = _university("university")
    yield Statement(f'{here} ub:name "University{{university}}"', "department = 0")
    yield Statement(f"{DEPARTMENT} rdf:type ub:Department")
    yield Statement(f'{DEPARTMENT} ub:name "Department{{department}}"')
    yield Statement(f"{DEPARTMENT} ub:subOrganizationOf {here}")


def research_group() -> Iterator[Statement]:
    """A research group, which has no name."""
    yield Statement(f"{MEMBER} rdf:type ub:ResearchGroup")
    yield Statement(f"{MEMBER} ub:subOrganizationOf {DEPARTMENT}")


def named(kind: str) -> Iterator[Statement]:
    """Anything with a class and a name, and no more: a course."""
    yield Statement(f"{MEMBER} rdf:type ub:{kind}")
    yield Statement(f'{MEMBER} ub:name "{{kind}}{{i}}"')


def faculty(rank: Rank) -> Iterator[Statement]:
    """A member of faculty; the head is one of the first rank."""
    yield from _person(rank.name)
    yield Statement(f"{MEMBER} ub:worksFor {DEPARTMENT}")
    number = f"(i + {before(rank)})"
    yield from _teacher(number, "Course", "course_starts", UBA.taught_courses)
    yield from _teacher(
        number, "GraduateCourse", "graduate_course_starts", UBA.taught_graduate_courses
    )
    for degree in FACULTY_DEGREES:
        alma_mater = _university(degree_university(degree, "Faculty", number))
        yield Statement(f"{MEMBER} ub:{degree} {alma_mater}")
    if rank.professor:
        interest = drawn(0, UBA.research_interests - 1, "interest", number)
        yield Statement(f'{MEMBER} ub:researchInterest "Research{{{interest}}}"')
    if rank == UBA.ranks[0]:
        yield Statement(f"{MEMBER} ub:headOf {DEPARTMENT}", "i = head")


def before(rank: Rank) -> str:
    """Return the SQL of how many of the department's faculty come before those of the rank."""
    return " + ".join(["0", *(r.name for r in UBA.ranks[: UBA.ranks.index(rank)])])


def degree_university(degree: str, holders: str, number: str) -> str:
    """Return the SQL of the number of the university where one of the holders got the degree."""
    return drawn(0, UBA.degree_universities - 1, f"{holders} {degree}", number)


def undergraduate() -> Iterator[Statement]:
    """An undergraduate student, who may have an advisor."""
    kind = "UndergraduateStudent"
    yield from _student(kind, "Course", "courses", UBA.courses_of_undergraduate)
    advised = drawn(1, UBA.undergraduates_per_advised, f"{kind} is advised", "i")
    yield _advisor(kind, f"{advised} = 1")


def graduate() -> Iterator[Statement]:
    """A graduate student, who has an advisor and may assist in teaching or in research."""
    kind = "GraduateStudent"
    yield from _student(kind, "GraduateCourse", "graduate_courses", UBA.courses_of_graduate)
    yield _advisor(kind, "true")
    alma_mater = _university(degree_university(GRADUATE_DEGREE, kind, "i"))
    yield Statement(f"{MEMBER} ub:{GRADUATE_DEGREE} {alma_mater}")
    # Graduates are alike: to employ them in turn after a random first is as good as a lottery.
    turn = "pmod(i + first_assistant, graduates)"
    teaches = f"{turn} < teaching_assistants"
    researches = (
        f"{turn} BETWEEN teaching_assistants AND teaching_assistants + research_assistants - 1"
    )
    course = picked(turn, "teaching_assistants", "courses", "assisted course")
    yield Statement(f"{MEMBER} rdf:type ub:TeachingAssistant", teaches)
    yield Statement(
        f"{MEMBER} ub:teachingAssistantOf <http://www.{{host}}/Course{{{course}}}>", teaches
    )
    yield Statement(f"{MEMBER} rdf:type ub:ResearchAssistant", researches)


def publication() -> Iterator[Statement]:
    """A publication and its author."""
    yield Statement(f"{PUBLICATION} rdf:type ub:Publication")
    yield Statement(f'{PUBLICATION} ub:name "Publication{{publication}}"')
    yield Statement(f"{PUBLICATION} ub:publicationAuthor <http://www.{{host}}/{{author}}>")


def coauthor() -> Iterator[Statement]:
    """A graduate's part in a publication."""
    graduate = "<http://www.{host}/GraduateStudent{graduate}>"
    yield Statement(f"{PUBLICATION} ub:publicationAuthor {graduate}", "publication IS NOT NULL")


def _university(number: str) -> str:
    return f"<http://www.University{{{number}}}.edu>"


def _person(kind: str) -> Iterator[Statement]:
    yield from named(kind)
    yield Statement(f'{MEMBER} ub:emailAddress "{{kind}}{{i}}@{{host}}"')
    yield Statement(f'{MEMBER} ub:telephone "xxx-xxx-xxxx"')


def _teacher(number: str, course: str, starts: str, taught: Between) -> Iterator[Statement]:
    for j in range(taught.high):
        taught_course = f"get({starts}, {number}) + {j}"
        yield Statement(
            f"{MEMBER} ub:teacherOf <http://www.{{host}}/{course}{{{taught_course}}}>",
            f"{taught_course} < get({starts}, {number} + 1)",
        )


def _student(kind: str, course: str, courses: str, taken: Between) -> Iterator[Statement]:
    yield from _person(kind)
    yield Statement(f"{MEMBER} ub:memberOf {DEPARTMENT}")
    number = drawn(*taken, f"{kind} courses", "i")
    for j in range(taken.high):
        chosen = picked(f"{j}L", number, courses, f"{kind} course", "i")
        yield Statement(
            f"{MEMBER} ub:takesCourse <http://www.{{host}}/{course}{{{chosen}}}>", f"{j} < {number}"
        )


def _advisor(kind: str, when: str) -> Statement:
    """Return a professor: each rank, and each member of the rank, is equally likely."""
    ranks = [rank.name for rank in UBA.ranks if rank.professor]
    cases = [
        f"WHEN {at} THEN concat('{rank}', {drawn(0, f'{rank} - 1', f'{kind} advisor', 'i')})"
        for at, rank in enumerate(ranks)
    ]
    advisor = f"CASE {drawn(0, len(ranks) - 1, f'{kind} rank', 'i')} {' '.join(cases)} END"
    return Statement(f"{MEMBER} ub:advisor <http://www.{{host}}/{{{advisor}}}>", when)
