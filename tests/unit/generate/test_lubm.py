"""The parts of the LUBM generator that need no engine."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from inferlake.errors import InputError
from inferlake.generate import generate_lubm
from inferlake.generate.lubm import file_count, file_name
from inferlake.generate.lubm_plan import KINDS, Extent, lubm_lines
from inferlake.generate.lubm_profile import UBA, Between, drawn, picked
from inferlake.generate.lubm_triples import PREFIXES, Statement, line


@pytest.mark.parametrize(
    ("universities", "cores", "files"),
    [(1, 8, 1), (5, 8, 5), (10, 2, 2), (50, 2, 5), (51, 2, 6), (50, 8, 8), (1000, 8, 100)],
)
def test_files_are_as_many_as_cores_or_of_ten_universities(
    universities: int, cores: int, files: int
) -> None:
    assert file_count(universities, cores) == files


@pytest.mark.parametrize("files", [1, 2, 3, 7, 23])
def test_every_university_is_in_one_file(files: int) -> None:
    extent = Extent(first=40, universities=23, files=files)
    shares = [extent.universities_of(file) for file in range(files)]
    assert list(chain(*shares)) == list(range(40, 63))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_file_names_sort_like_their_universities() -> None:
    extent = Extent(first=95, universities=20, files=4)
    names = [file_name(extent, file) for file in range(4)]
    assert names == sorted(names)
    assert names[1] == "university-00100-00104"


def test_statement_becomes_a_line_of_n_triples() -> None:
    sql = line(Statement('<http://{host}/{i}> ub:name "A{i + 1}"'))
    name = f"<{PREFIXES['ub']}name>"
    assert sql == (
        f"CASE WHEN true THEN concat('<http://', host, '/', i, '> {name} \"A', i + 1, '\" .') END"
    )


def test_statement_may_depend_on_a_condition() -> None:
    sql = line(Statement("<a:a> rdf:type owl:Ontology", when="i = 0"))
    ontology = f"<{PREFIXES['owl']}Ontology>"
    assert sql == f"CASE WHEN i = 0 THEN concat('<a:a> <{PREFIXES['rdf']}type> {ontology} .') END"


def test_drawn_numbers_depend_on_place_purpose_and_key() -> None:
    assert drawn(3, 8, "why", "i") == "(3 + pmod(xxhash64(place, 'why', i), 8 - (3) + 1))"


def test_picked_numbers_share_an_angle_and_differ_by_stratum() -> None:
    sql = picked("j", "k", "n", "why", "i")
    assert "xxhash64(place, 'why', i)" in sql
    assert "xxhash64(place, 'why', i, j)" in sql


def test_every_statement_has_three_terms() -> None:
    # Holes may have spaces inside; outside of them there are exactly two.
    for kind in KINDS:
        for statement in kind.statements:
            assert len(re.sub("{[^}]*}", "", statement.text).split(" ")) == 3, statement


def test_purposes_are_not_shared_between_kinds() -> None:
    # Two draws with the same purpose and number would be the same draw.
    faculty = {rank.name for rank in UBA.ranks}
    by_kind = {
        kind.name: set(re.findall(r"place, '([^']*)'", str(kind.statements)))
        for kind in KINDS
        if kind.name not in faculty
    }
    by_kind["Faculty"] = set(re.findall(r"place, '([^']*)'", str(KINDS[2].statements)))
    purposes = list(chain(*by_kind.values()))
    assert len(purposes) == len(set(purposes))


def test_there_are_courses_enough_to_pick_from() -> None:
    # `picked` needs as many numbers as it shall pick, and `sequence` at least one.
    fewest = sum(rank.members.low for rank in UBA.ranks) * UBA.taught_courses.low
    assert fewest >= UBA.courses_of_undergraduate.high
    assert fewest >= UBA.courses_of_graduate.high
    assistants_per_faculty = (
        UBA.graduates_per_faculty.high / UBA.graduates_per_teaching_assistant.low
    )
    assert assistants_per_faculty <= UBA.taught_courses.low
    assert UBA.graduates_per_faculty.low >= UBA.graduates_per_research_assistant.low


def test_ranges_are_not_empty() -> None:
    ranges = [value for value in vars(UBA).values() if isinstance(value, Between)]
    ranges += [between for rank in UBA.ranks for between in (rank.members, rank.publications)]
    assert all(between.low <= between.high for between in ranges)


def test_query_depends_on_seed_and_extent() -> None:
    extent = Extent(first=0, universities=2, files=1)
    assert lubm_lines(0, extent) == lubm_lines(0, extent)
    assert lubm_lines(0, extent) != lubm_lines(1, extent)
    assert lubm_lines(0, extent) != lubm_lines(0, Extent(first=2, universities=2, files=1))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"universities": 0}, "1 or more"),
        ({"universities": 1, "first": -1}, "numbered from 0"),
        ({"universities": 1, "compression": "zip"}, "choose gzip"),
    ],
)
def test_arguments_are_checked_before_the_engine_is_asked(
    arguments: dict[str, int], reason: str, tmp_path
) -> None:
    no_session: object = None
    with pytest.raises(InputError, match=reason):
        generate_lubm(no_session, out=str(tmp_path / "lubm"), **arguments)  # type: ignore[arg-type]


def test_a_path_that_engines_read_as_a_pattern_is_refused(tmp_path) -> None:
    no_session: object = None
    with pytest.raises(InputError, match="without any of"):
        generate_lubm(no_session, 1, out=str(tmp_path / "lubm[1]"))  # type: ignore[arg-type]
