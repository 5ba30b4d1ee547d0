"""Ids that collide change nothing: with a hash of a few bits, what goes in comes out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import strategies as st

from inferlake.kb import KnowledgeBase
from inferlake.session import Engine
from inferlake.terms import TermHash

from .terms import many

# A step takes twenty milliseconds on Sail and a second on Spark.
SEQUENCES = {"sail": 4, "spark": 1}
LOADS = {"sail": 4, "spark": 2}
BITS = {"sail": (3, 4), "spark": (3,)}

names = st.integers(0, 11).map("<http://example.org/{}>".format)
written_odd = st.integers(0, 5).map("<http://example.org/{}#%41>".format)
values = st.one_of(
    st.integers(0, 7).map('"{}"'.format),
    st.integers(0, 7).map('"{}"@en-us'.format),
    st.integers(0, 7).map('"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format),
)
triples = st.tuples(names, names, st.one_of(names, written_odd, values))
graphs = st.sets(triples, min_size=10, max_size=40)


def line(triple: tuple[str, str, str]) -> str:
    return " ".join((*triple, "."))


@pytest.mark.slow
def test_every_load_gives_the_union_so_far(engine: Engine, tmp_path: Path) -> None:
    loads = LOADS[engine.name]
    sequences = many(st.lists(graphs, min_size=loads, max_size=loads), 20)
    for bits in BITS[engine.name]:
        for number in range(SEQUENCES[engine.name]):
            folder = tmp_path / f"{bits}-{number}"
            folder.mkdir()
            # From the end: Hypothesis begins with the simplest.
            _loads_add_up(engine, TermHash(bits), sequences[-1 - number], folder)


def _loads_add_up(
    engine: Engine, hash: TermHash, sequence: list[set[tuple[str, str, str]]], folder: Path
) -> None:
    kb = KnowledgeBase(folder / "kb", engine=engine.name, hash=hash)
    wanted: set[str] = set()
    displaced: dict[str, int] = {}
    for step, graph in enumerate(sequence):
        file = folder / f"{step}.nt"
        file.write_text("".join(f"{line(triple)}\n" for triple in sorted(graph)))
        new = set(map(line, graph)) - wanted
        wanted |= new

        report = kb.load(file)

        kb.export(folder / f"{step}.out.nt")
        found = (folder / f"{step}.out.nt").read_text().splitlines()
        assert sorted(found) == sorted(wanted)
        assert report.added == len(new)
        rows = kb._store.terms.frame(engine).collect()
        assert Counter(row.id for row in rows).most_common(1)[0][1] == 1
        assert Counter(row.term for row in rows).most_common(1)[0][1] == 1
        assert all((row.id < 0) == row.term.startswith('"') for row in rows)
        now = {row.term: row.id for row in rows if row.id != hash.of(row.term)}
        assert displaced.items() <= now.items()
        displaced = now
    assert len(displaced) > 2


@pytest.mark.parametrize("how", ["remove", "patch"])
def test_only_the_named_terms_are_removed(engine: Engine, tmp_path: Path, how: str) -> None:
    """A term that was never stored takes nothing away, whoever has its id."""
    hash = TermHash(3)
    named = [f"<http://example.org/{n}>" for n in range(40)]
    alike = next((a, b) for a in named for b in named if a != b and hash.of(a) == hash.of(b))
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name, hash=hash)
    there, gone = (line((name, "<http://example.org/p>", '"o"')) for name in alike)
    (tmp_path / "there.nt").write_text(f"{there}\n")
    kb.load(tmp_path / "there.nt", rules="none")
    if how == "remove":
        (tmp_path / "gone.nt").write_text(f"{gone}\n")
        report = kb.update(remove=tmp_path / "gone.nt")
    else:
        (tmp_path / "gone.rdfp").write_text(f"D {gone}\n")
        report = kb.update(patch=tmp_path / "gone.rdfp")
    assert report.removed == 0 and kb.facts().count() == 1
