"""LUBM data as one query.

Every number is a hash of the seed and of what it is for, so a university depends on the seed and
its own number only, whatever the engine, the partitioning and the number of universities. The data
follow the profile of UBA; they are not the triples that UBA itself writes for the same seed.

The steps widen rows, file > university > department > member > line, and never shuffle: all lines
of a file come from one partition. Sail's memory was seen to grow with their number, from 0.7 GB for
5 to 1.2 GB for 20.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from inferlake.generate import lubm_triples as triples
from inferlake.generate.lubm_profile import UBA, Between, drawn, picked
from inferlake.generate.lubm_triples import Statement, line

# The name of the column that says which file a line goes to; the other column is the line.
FILE = "file"

MOST_COAUTHORED = UBA.publications_of_graduate.high


@dataclass(frozen=True)
class Extent:
    """Which universities, and in how many files. A university is never split."""

    first: int
    universities: int
    files: int

    def universities_of(self, file: int) -> range:
        """Return the universities of the file; files have equally many, give or take one."""
        start, stop = (n * self.universities // self.files for n in (file, file + 1))
        return range(self.first + start, self.first + stop)


class Kind(NamedTuple):
    """A kind of members of a department: the SQL array of their numbers, what is said of them."""

    name: str
    numbers: str
    statements: tuple[Statement, ...]


def lubm_lines(seed: int, extent: Extent) -> str:
    """Return the SQL of all N-Triples lines, with the number of the file that each goes to.

    The lines of a department are distinct. Departments repeat each other where they state that a
    university, which gave degrees to people of both, is a university.
    """
    chain = ", ".join(f"{name} AS ({step})" for name, step in _steps(seed, extent).items())
    return f"WITH {chain} SELECT {FILE}, line FROM lines WHERE line IS NOT NULL"


def _steps(seed: int, extent: Extent) -> dict[str, str]:
    """Return the query's steps by name, each of which reads the one before."""
    n = extent.universities
    start, stop = (
        f"{extent.first} + ({turn}) * {n} div {extent.files}" for turn in ("id", "id + 1")
    )
    departments = _up_to(drawn(*UBA.departments, "departments"))
    return {
        "files": f"SELECT id AS {FILE}, explode(sequence({start}, {stop} - 1)) AS university "
        f"FROM range(0, {extent.files}, 1, {extent.files})",
        # All random numbers of a university, and then of a department, depend on its `place`.
        "universities": f"SELECT *, xxhash64('{seed}', university) AS place FROM files",
        "numbered": f"SELECT *, explode({departments}) AS department FROM universities",
        "departments": _select(
            "numbered",
            f"{FILE}, university, department",
            place="xxhash64(place, department)",
            host="concat('Department', department, '.University', university, '.edu')",
        ),
        "ranked": _select(
            "departments",
            research_groups=drawn(*UBA.research_groups, "research groups"),
            **{rank.name: drawn(*rank.members, rank.name) for rank in UBA.ranks},
        ),
        "staffed": _select("ranked", faculty=" + ".join(rank.name for rank in UBA.ranks)),
        "populated": _select(
            "staffed",
            head=drawn(0, f"{UBA.ranks[0].name} - 1", "head"),
            undergraduates=_times_faculty(UBA.undergraduates_per_faculty, "undergraduates"),
            graduates=_times_faculty(UBA.graduates_per_faculty, "graduates"),
            course_starts=_starts(drawn(*UBA.taught_courses, "taught", "f")),
            graduate_course_starts=_starts(
                drawn(*UBA.taught_graduate_courses, "taught graduate", "f")
            ),
            publication_starts=_starts(_published()),
        ),
        "employed": _select(
            "populated",
            courses="element_at(course_starts, -1)",
            graduate_courses="element_at(graduate_course_starts, -1)",
            publications="element_at(publication_starts, -1)",
            teaching_assistants=_of_graduates(UBA.graduates_per_teaching_assistant, "teaching"),
            research_assistants=_of_graduates(UBA.graduates_per_research_assistant, "research"),
            first_assistant=drawn(0, "graduates - 1", "first assistant"),
        ),
        "kinds": f"SELECT *, inline(array({', '.join(map(_numbers, KINDS))})) FROM employed",
        "members": "SELECT *, explode(numbers) AS i FROM kinds",
        # Publications and coauthors find the publication in question, and who of faculty wrote it.
        "writing": _select("members", graduate=f"i div {MOST_COAUTHORED}"),
        "written": _select("writing", written=_written()),
        "signed": _select("written", signer=_signer()),
        "authored": _select(
            "signed",
            author=_by_rank(
                "signer", [f"concat('{r.name}', signer - ({triples.before(r)}))" for r in UBA.ranks]
            ),
            publication="written - get(publication_starts, signer)",
        ),
        "lines": f"SELECT {FILE}, explode({_said()}) AS line FROM authored",
    }


def _select(source: str, kept: str = "*", **columns: str) -> str:
    added = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    return f"SELECT {kept}, {added} FROM {source}"


def _up_to(count: str) -> str:
    # Not for none: sequence(0, -1) counts down. No count that the profile gives is 0.
    return f"sequence(0L, {count} - 1)"


def _each(count: str, variable: str, value: str) -> str:
    return f"transform({_up_to(count)}, {variable} -> {value})"


def _times_faculty(ratio: Between, purpose: str) -> str:
    return drawn(f"{ratio.low} * faculty", f"{ratio.high} * faculty", purpose)


def _of_graduates(per_one: Between, purpose: str) -> str:
    return drawn(f"graduates div {per_one.high}", f"graduates div {per_one.low}", purpose)


def _starts(share: str) -> str:
    """Return the SQL of where the share of each member of faculty starts, and of the end."""
    return (
        f"aggregate({_each('faculty', 'f', share)}, array(0L), "
        "(starts, share) -> concat(starts, array(element_at(starts, -1) + share)))"
    )


def _by_rank(number: str, values: Iterable[str]) -> str:
    """Return the SQL of the value for the rank of the faculty member of that number."""
    cases = [
        f"WHEN {number} < {triples.before(rank)} + {rank.name} THEN {value}"
        for rank, value in zip(UBA.ranks, values, strict=True)
    ]
    return f"CASE {' '.join(cases)} END"


def _published() -> str:
    return _by_rank("f", [drawn(*rank.publications, "publications", "f") for rank in UBA.ranks])


def _mentioned() -> str:
    """Return the SQL of the universities, each once, that the department's document mentions."""
    faculty = [
        _each("faculty", "f", triples.degree_university(degree, "Faculty", "f"))
        for degree in triples.FACULTY_DEGREES
    ]
    degree = triples.degree_university(triples.GRADUATE_DEGREE, "GraduateStudent", "g")
    graduates = _each("graduates", "g", degree)
    return f"array_distinct(concat(array(university), {', '.join(faculty)}, {graduates}))"


def _written() -> str:
    """Return the SQL of the department's publication that a row is about."""
    count = drawn(*UBA.publications_of_graduate, "coauthored", "graduate")
    turn = f"i % {MOST_COAUTHORED}"
    # At least 1, because an engine may divide before it looks at the condition.
    chosen = picked(
        turn, f"greatest({count}, 1)", "publications", "coauthored publication", "graduate"
    )
    return (
        "CASE WHEN kind = 'Publication' THEN i "
        f"WHEN kind = 'Coauthor' AND {turn} < {count} THEN {chosen} END"
    )


def _signer() -> str:
    """Return the SQL of the number of the faculty member whose publication it is."""
    begun = "filter(publication_starts, start -> start <= written)"
    return f"CASE WHEN written IS NOT NULL THEN size({begun}) - 1 END"


KINDS = (
    Kind("Department", "array(department)", tuple(triples.department())),
    Kind("University", _mentioned(), tuple(triples.university("i"))),
    *(Kind(rank.name, _up_to(rank.name), tuple(triples.faculty(rank))) for rank in UBA.ranks),
    Kind("Course", _up_to("courses"), tuple(triples.named("Course"))),
    Kind("GraduateCourse", _up_to("graduate_courses"), tuple(triples.named("GraduateCourse"))),
    Kind("UndergraduateStudent", _up_to("undergraduates"), tuple(triples.undergraduate())),
    Kind("GraduateStudent", _up_to("graduates"), tuple(triples.graduate())),
    Kind("ResearchGroup", _up_to("research_groups"), tuple(triples.research_group())),
    Kind("Publication", _up_to("publications"), tuple(triples.publication())),
    # So many for each graduate, of which as many become a publication as were drawn.
    Kind("Coauthor", _up_to(f"graduates * {MOST_COAUTHORED}"), tuple(triples.coauthor())),
)


def _numbers(kind: Kind) -> str:
    return f"named_struct('kind', '{kind.name}', 'numbers', {kind.numbers})"


def _said() -> str:
    cases = [
        f"WHEN '{kind.name}' THEN array({', '.join(map(line, kind.statements))})" for kind in KINDS
    ]
    return f"CASE kind {' '.join(cases)} END"
