"""LUBM data follow the published profile, and are the same on both engines."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import mean, stdev

import pytest
from pyspark.sql import SparkSession

from inferlake.errors import EngineError, InputError
from inferlake.generate import LubmReport, generate_lubm, lubm, lubm_ontology
from inferlake.generate.lubm_profile import UBA, Between, picked

# What seed 0 says of universities 0 and 1. To change it is a change for users, to be told in the
# changelog: who compares measurements counts on equal data.
LUBM_2_LINES = 290224
LUBM_2_DIGEST = "76f77171f4edccc0e1583a1705ef0809b80c461d7b89f1b061dc0f9ea549b763"

Triple = tuple[str, str, str]


def lines_of(folder: Path) -> list[str]:
    texts = (
        gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
        for path in sorted(folder.iterdir())
    )
    return [line for text in texts for line in text.splitlines()]


def triple_of(line: str) -> Triple:
    """Return the terms by short names, such as `Department3.University0.edu/Course5`."""
    parts = re.fullmatch(r"<([^>]*)> <([^>]*)> (?:<([^>]*)>|(\"[^\"]*\")) \.", line)
    assert parts, line
    s, p, o, literal = parts.groups()
    return (
        s.removeprefix("http://www."),
        p.rpartition("#")[2],
        literal or o.rpartition("#")[2].removeprefix("http://www."),
    )


class Graph:
    """Triples to ask for by predicate and by class."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.triples = [triple_of(line) for line in lines]
        self.pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for s, p, o in self.triples:
            self.pairs[p].append((s, o))

    def members(self, *classes: str) -> set[str]:
        return {s for s, o in self.pairs["type"] if o in classes}

    def objects(self, predicate: str) -> dict[str, list[str]]:
        objects: dict[str, list[str]] = defaultdict(list)
        for s, o in self.pairs[predicate]:
            objects[s].append(o)
        return objects

    def subjects(self, predicate: str) -> dict[str, list[str]]:
        subjects: dict[str, list[str]] = defaultdict(list)
        for s, o in self.pairs[predicate]:
            subjects[o].append(s)
        return subjects

    def by_department(self, *classes: str) -> dict[str, set[str]]:
        members: dict[str, set[str]] = {name: set() for name in self.members("Department")}
        for member in self.members(*classes):
            members[member.split("/")[0]].add(member)
        return members

    def counts(self) -> Counter[str]:
        """Count triples by predicate, and those of `rdf:type` by class."""
        return Counter(f"{p} {o}" if p == "type" else p for _, p, o in self.triples)


RANKS = [rank.name for rank in UBA.ranks]
PROFESSORS = [rank.name for rank in UBA.ranks if rank.professor]


@cache
def lubm_2(session: SparkSession, folder: Path) -> tuple[str, ...]:
    generate_lubm(session, 2, out=str(folder))
    return tuple(lines_of(folder))


@cache
def graph_2(session: SparkSession, folder: Path) -> Graph:
    return Graph(lubm_2(session, folder))


@pytest.fixture
def folder(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where LUBM(2, 0) is, once for each engine."""
    return tmp_path_factory.getbasetemp() / f"lubm-2-{type(session).__module__}"


@pytest.fixture
def lines(session: SparkSession, folder: Path) -> tuple[str, ...]:
    return lubm_2(session, folder)


@pytest.fixture
def graph(session: SparkSession, folder: Path) -> Graph:
    return graph_2(session, folder)


def assert_within(counts: Iterable[int], between: Between) -> None:
    found = set(counts)
    assert between.low <= min(found) and max(found) <= between.high, (found, between)


# --- The same everywhere --------------------------------------------------------------------------


def test_every_engine_writes_these_very_lines(lines: tuple[str, ...]) -> None:
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
    assert (len(lines), digest) == (LUBM_2_LINES, LUBM_2_DIGEST)


def test_a_university_does_not_depend_on_the_others(
    session: SparkSession, lines: tuple[str, ...], tmp_path: Path
) -> None:
    for number in (0, 1):
        generate_lubm(session, 1, first=number, out=str(tmp_path / str(number)))
    alone = [lines_of(tmp_path / str(number)) for number in (0, 1)]
    assert sorted(alone[0] + alone[1]) == sorted(lines)


def test_another_seed_gives_other_data(
    session: SparkSession, lines: tuple[str, ...], tmp_path: Path
) -> None:
    generate_lubm(session, 1, seed=1, out=str(tmp_path / "seed-1"))
    other = set(lines_of(tmp_path / "seed-1"))
    assert len(other & set(lines)) < 0.9 * len(other)


def test_files_are_whole_or_absent(session: SparkSession, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lubm, "lubm_lines", lambda *_: "SELECT nothing FROM nowhere")
    with pytest.raises(EngineError, match="nothing was written"):
        generate_lubm(session, 1, out=str(tmp_path / "lubm"))
    assert list(tmp_path.iterdir()) == []


def test_gzip_files_hold_the_same_lines(
    session: SparkSession, lines: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "with a space" / "lubm"
    report = generate_lubm(session, 2, out=str(out), compression="gzip")
    files = sorted(out.iterdir())
    assert all(re.fullmatch(r"university-\d{5}-\d{5}\.nt\.gz", file.name) for file in files)
    assert report == LubmReport(2, len(lines), len(files), sum(f.stat().st_size for f in files))
    assert sorted(lines_of(out)) == sorted(lines)
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_the_schema_is_written_beside_the_data(
    session: SparkSession, tmp_path: Path, compression: str | None
) -> None:
    report = generate_lubm(session, 1, out=str(tmp_path), compression=compression, ontology=True)
    assert report.files == 2
    schema = next(tmp_path.glob("univ-bench.nt*"))
    data = schema.read_bytes()
    assert (gzip.decompress(data) if compression else data).decode() == lubm_ontology()
    assert len(lines_of(tmp_path)) == report.triples


def test_an_empty_folder_is_filled_and_a_full_one_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "lubm"
    out.mkdir()
    generate_lubm(session, 1, out=str(out))
    before = sorted(out.iterdir())
    assert [path.suffix for path in before] == [".nt"]
    with pytest.raises(InputError, match="not empty"):
        generate_lubm(session, 1, out=str(out))
    with pytest.raises(InputError, match="not empty"):
        generate_lubm(session, 1, out=str(before[0]))
    assert sorted(out.iterdir()) == before


# --- The profile ----------------------------------------------------------------------------------


def test_a_department_repeats_nothing(lines: tuple[str, ...]) -> None:
    repeated = {line for line, times in Counter(lines).items() if times > 1}
    assert all(line.endswith("#University> .") for line in repeated)
    departments = sum(line.endswith("#Department> .") for line in lines)
    assert max(Counter(lines).values()) <= departments


def test_numbers_of_members_are_in_range(graph: Graph) -> None:
    departments = graph.pairs["subOrganizationOf"]
    universities = Counter(o for s, o in departments if "/" not in s)
    assert sorted(universities) == ["University0.edu", "University1.edu"]
    assert_within(universities.values(), UBA.departments)
    for rank in UBA.ranks:
        assert_within(map(len, graph.by_department(rank.name).values()), rank.members)
    assert_within(map(len, graph.by_department("ResearchGroup").values()), UBA.research_groups)


@pytest.mark.parametrize(
    ("student", "ratio"),
    [
        ("UndergraduateStudent", UBA.undergraduates_per_faculty),
        ("GraduateStudent", UBA.graduates_per_faculty),
    ],
)
def test_numbers_of_students_follow_that_of_faculty(
    graph: Graph, student: str, ratio: Between
) -> None:
    faculty = graph.by_department(*RANKS)
    for department, students in graph.by_department(student).items():
        taught_by = len(faculty[department])
        assert ratio.low * taught_by <= len(students) <= ratio.high * taught_by


def test_one_full_professor_heads_a_department(graph: Graph) -> None:
    heads = graph.subjects("headOf")
    assert heads.keys() == graph.members("Department")
    assert all(len(head) == 1 for head in heads.values())
    assert {head for (head,) in heads.values()} <= graph.members("FullProfessor")


@pytest.mark.parametrize("kind", ["Course", "GraduateCourse"])
def test_courses_have_one_teacher_each(graph: Graph, kind: str) -> None:
    courses = graph.members(kind)
    teachers = {c: who for c, who in graph.subjects("teacherOf").items() if c in courses}
    assert teachers.keys() == courses
    assert all(len(who) == 1 for who in teachers.values())
    taught = Counter(who for (who,) in teachers.values())
    assert taught.keys() == graph.members(*RANKS)
    assert_within(taught.values(), UBA.taught_courses)


@pytest.mark.parametrize(
    ("student", "course", "taken"),
    [
        ("UndergraduateStudent", "Course", UBA.courses_of_undergraduate),
        ("GraduateStudent", "GraduateCourse", UBA.courses_of_graduate),
    ],
)
def test_students_take_different_courses_of_their_department(
    graph: Graph, student: str, course: str, taken: Between
) -> None:
    courses, takes = graph.members(course), graph.objects("takesCourse")
    students = graph.members(student)
    assert_within((len(takes[s]) for s in students), taken)
    for s in students:
        assert set(takes[s]) <= courses
        assert len(set(takes[s])) == len(takes[s])
        assert {c.split("/")[0] for c in takes[s]} == {s.split("/")[0]}


def test_advisors_are_professors_of_the_department(graph: Graph) -> None:
    advisors = graph.objects("advisor")
    professors = graph.members(*PROFESSORS)
    for student, advisor in advisors.items():
        assert len(advisor) == 1
        assert advisor[0] in professors
        assert advisor[0].split("/")[0] == student.split("/")[0]
    assert graph.members("GraduateStudent") <= advisors.keys()
    undergraduates = graph.members("UndergraduateStudent")
    share = len(undergraduates & advisors.keys()) / len(undergraduates)
    assert share == pytest.approx(1 / UBA.undergraduates_per_advised, rel=0.1)


def test_assistants_are_distinct_graduates_of_distinct_courses(graph: Graph) -> None:
    graduates = graph.by_department("GraduateStudent")
    teaching, research = (graph.by_department(f"{c}Assistant") for c in ("Teaching", "Research"))
    for assistants, one_in in (
        (teaching, UBA.graduates_per_teaching_assistant),
        (research, UBA.graduates_per_research_assistant),
    ):
        for department, employed in assistants.items():
            students = len(graduates[department])
            assert employed <= graduates[department]
            assert students // one_in.high <= len(employed) <= students // one_in.low
    assert all(not teaching[name] & research[name] for name in graduates)
    assisted = graph.pairs["teachingAssistantOf"]
    assert {s for s, _ in assisted} == graph.members("TeachingAssistant")
    assert len({s for s, _ in assisted}) == len(assisted) == len({c for _, c in assisted})
    assert {c for _, c in assisted} <= graph.members("Course")


def test_publications_have_one_author_of_faculty_and_some_graduates(graph: Graph) -> None:
    publications = graph.members("Publication")
    faculty, graduates = graph.members(*RANKS), graph.members("GraduateStudent")
    authors = graph.objects("publicationAuthor")
    assert authors.keys() == publications
    for publication, who in authors.items():
        assert len(set(who)) == len(who)
        assert {a for a in who if a in faculty} == {publication.rpartition("/")[0]}
        assert {a for a in who if a not in faculty} <= graduates
    written = Counter(author for who in authors.values() for author in who)
    for rank in UBA.ranks:
        assert_within((written[f] for f in graph.members(rank.name)), rank.publications)
    assert_within((written[g] for g in graduates), UBA.publications_of_graduate)


def test_degrees_come_from_known_universities(graph: Graph) -> None:
    known = graph.members("University")
    for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
        holders = graph.objects(degree)
        students = graph.members("GraduateStudent") if degree.startswith("under") else set()
        assert holders.keys() == graph.members(*RANKS) | students
        assert all(len(of) == 1 and of[0] in known for of in holders.values())
    numbers = {int(re.sub(r"\D", "", name)) for name in known}
    assert_within(numbers, Between(0, UBA.degree_universities - 1))


def test_interests_are_those_of_professors(graph: Graph) -> None:
    interests = graph.objects("researchInterest")
    assert interests.keys() == graph.members(*PROFESSORS)
    assert len({i for (i,) in interests.values()}) == UBA.research_interests


# --- The official data ----------------------------------------------------------------------------


def documents(lines: Iterable[str]) -> list[Graph]:
    """Split official lines where a document begins, each line of a document once."""
    parts: list[dict[str, None]] = []
    for line in lines:
        if line.endswith("owl#Ontology> ."):
            parts.append({})
        parts[-1][line] = None
    return [Graph(part) for part in parts]


@pytest.fixture
def official(shared_data: Path) -> list[Graph]:
    """The departments of LUBM(1, 0) as the official generator wrote it."""
    return documents(gzip.open(shared_data / "lubm" / "lubm-1.nt.gz", "rt").read().splitlines())


def test_a_department_says_as_much_as_an_official_one(graph: Graph, official: list[Graph]) -> None:
    departments = len(graph.members("Department"))
    ours = graph.counts()
    theirs = [department.counts() for department in official]
    names = {name for counts in theirs for name in counts}
    assert ours.keys() == names
    for name in names:
        counts = [department[name] for department in theirs]
        # Chance makes departments large and small, and there are few.
        slack = max(0.1 * mean(counts), 3 * stdev(counts) / len(counts) ** 0.5)
        assert ours[name] / departments == pytest.approx(mean(counts), abs=slack), name


def test_terms_look_like_official_ones(graph: Graph, official: list[Graph]) -> None:
    def shapes(triples: Iterable[Triple]) -> set[Triple]:
        return {tuple(re.sub(r"\d+", "0", term) for term in triple) for triple in triples}  # type: ignore[misc]

    theirs = [triple for department in official for triple in department.triples]
    assert shapes(graph.triples) == shapes(theirs)


# --- Random numbers -------------------------------------------------------------------------------


def test_picked_numbers_differ_and_are_equally_likely(session: SparkSession) -> None:
    rows = session.sql(f"""
        SELECT place, k, n, {picked("j", "k", "n", "test")} AS number
        FROM (SELECT *, explode(sequence(0L, k - 1)) AS j
              FROM (SELECT id AS place, explode(sequence(1L, 7L)) AS k, 7L AS n FROM range(700)))
    """).collect()
    samples = defaultdict(list)
    for row in rows:
        samples[row.place, row.k].append(row.number)
    assert all(len(set(sample)) == len(sample) for sample in samples.values())
    drawn = Counter(number for (_, k), sample in samples.items() if k == 3 for number in sample)
    assert sorted(drawn) == list(range(7))
    assert all(times == pytest.approx(300, rel=0.2) for times in drawn.values())
