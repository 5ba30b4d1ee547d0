"""However a graph is written in lines, a load and an export give its distinct canonical triples."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import strategies as st

from inferlake.input import discover
from inferlake.kb import KnowledgeBase

from .terms import blanks, iris, literals, many, ordinary_iris

FORMATS = {"nt": ox.RdfFormat.N_TRIPLES, "nq": ox.RdfFormat.N_QUADS}
LINE_ENDS = {"nt": ("\n", "\r\n"), "nq": ("\n", "\r")}


def parsed(text: str, suffix: str) -> list[ox.Quad] | None:
    """Return the statements of `text`, or None if one of them is not valid."""
    try:
        return list(ox.parse(text.encode(), format=FORMATS[suffix]))
    except (SyntaxError, ValueError):
        return None


def valid(strategy: st.SearchStrategy[str], count: int) -> st.SearchStrategy[str]:
    """Return a choice of some of the strategy's terms that are right, canonical or not."""
    found = (term for term in many(strategy, count) if parsed(f"<a:s> <a:p> {term} .", "nt"))
    # What ends a line anywhere would end it here too.
    return st.sampled_from([term for term in found if not set("\r\n") & set(term)])


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Return lines of N-Triples, and of N-Quads behind them: most plain, many not."""
    names = st.one_of(ordinary_iris, valid(iris, 250))
    nodes = st.one_of(names, valid(blanks, 250))
    objects = st.one_of(nodes, valid(literals, 500), valid(literals, 500))
    space = st.sampled_from([" "] * 12 + ["\t", "  ", " \t ", ""])
    start = st.sampled_from([""] * 12 + [" ", "\t"])
    end = st.sampled_from(["."] * 12 + [". ", '.# a <b> "c', ".\t#", ". #"])
    graph = st.one_of(st.just(""), st.just(""), nodes)
    parts = st.tuples(start, nodes, space, names, space, objects, space, graph, space, end)
    statement = parts.map("".join)
    other = st.sampled_from(["", "# a comment", "   ", "\t# <a:a> <a:b> <a:c> .", "#"])
    return many(st.one_of(statement, statement, statement, statement, other), 1000)


def write(folder: Path, lines: list[str]) -> list[Path]:
    """Write the lines that are right into files of each format, with different line ends."""
    files = []
    for suffix, ends in LINE_ENDS.items():
        right = [line for line in lines if parsed(line, suffix) is not None]
        for number, end in enumerate(ends):
            file = folder / f"{number}.{suffix}"
            # One of the files ends without the end of a line.
            last = end if number else ""
            file.write_bytes((end.join(right[number :: len(ends)]) + last).encode())
            files.append(file)
    return files


def expected(file: Path) -> set[str]:
    """Return the triples of a file in N-Triples, its blank nodes in the scope of the file."""
    (described,) = discover([file])
    statements = parsed(file.read_bytes().decode(), described.format)
    assert statements

    def name(term: object) -> str:
        return f"_:{described.scope}{term.value}" if isinstance(term, ox.BlankNode) else str(term)

    return {f"{name(q.subject)} {q.predicate} {name(q.object)} ." for q in statements}


@pytest.mark.slow
def test_a_load_gives_what_a_parser_reads(
    kb: KnowledgeBase, lines: list[str], tmp_path: Path
) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    files = write(inputs, lines)
    wanted = set().union(*map(expected, files))
    assert len(wanted) > 300

    report = kb.load(inputs)
    kb.export(tmp_path / "out.nt")
    found = (tmp_path / "out.nt").read_bytes().decode().split("\n")

    assert sorted(found[:-1]) == sorted(wanted)
    assert report.added == len(wanted)


def test_bad_lines_among_good_ones_are_counted_and_left_out(
    kb: KnowledgeBase, lines: list[str], tmp_path: Path
) -> None:
    good = [line for line in lines if parsed(line, "nt")][:50]
    bad = ["<a:s> <a:p> <a:o>", "<a:s> <a:p> <a:o> . x", '<a:s> <a:p> "o .', "x", "_:x _:y _:z ."]
    mixed = [line for pair in zip(good, (bad * 10), strict=True) for line in pair]
    file = tmp_path / "mixed.nt"
    file.write_bytes("\n".join(mixed).encode())
    only_good = tmp_path / "good.nt"
    only_good.write_bytes("\n".join(good).encode())
    scopes = [discover([one])[0].scope for one in (file, only_good)]

    report = kb.load(file, on_error="skip")
    kb.export(tmp_path / "out.nt")

    assert report.bad_count == 10 * len(bad)
    found = set((tmp_path / "out.nt").read_bytes().decode().split("\n")[:-1])
    assert {line.replace(scopes[0], scopes[1]) for line in found} == expected(only_good)
