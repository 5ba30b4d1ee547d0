"""Changes: what became true between two versions, and what ceased to be, as rows and as a patch."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import inferlake.export
from inferlake.errors import InputError, NotAStore, StoreError, VersionNotFound
from inferlake.kb import KnowledgeBase, LayerChoice
from inferlake.session import Engine
from inferlake.store.table import Table

EX = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
NOTHING: tuple[set[str], set[str]] = (set(), set())

Put = Callable[..., Path]

# What these tests ask is the driver's or the log's doing, and would take minutes on Spark.
on_sail = pytest.mark.parametrize("engine", ["sail"], indirect=True)


def name(local: str) -> str:
    return f"<{EX}{local}>"


def is_a(instance: str, kind: str) -> str:
    return f"{name(instance)} {TYPE} {name(kind)}"


def below(one: str, other: str) -> str:
    return f"{name(one)} {SUB} {name(other)}"


def facts(kb: KnowledgeBase, layer: LayerChoice = "all") -> set[str]:
    rows = kb.facts(layer).collect()
    assert len(rows) == len(set(rows))
    return {f"{row.subject} {row.predicate} {row.object}" for row in rows}


def changed(
    kb: KnowledgeBase,
    since: int | None = None,
    until: int | None = None,
    layer: LayerChoice = "all",
) -> tuple[set[str], set[str]]:
    """Return what was added and what was removed; nothing is told twice."""
    found = kb.changes(since, until, layer)
    rows = [(row.change, f"{row.subject} {row.predicate} {row.object}") for row in found]
    assert len(rows) == len({fact for _, fact in rows})
    assert {change for change, _ in rows} <= {"added", "removed"}
    return (
        {fact for change, fact in rows if change == "added"},
        {fact for change, fact in rows if change == "removed"},
    )


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """A function that writes triples, or lines, to a file and returns its path."""

    def write(file: str, *lines: str) -> Path:
        end = "" if file.endswith((".rdfp", ".dl")) else " ."
        (tmp_path / file).write_text("".join(f"{line}{end}\n" for line in lines), "utf-8")
        return tmp_path / file

    return write


@pytest.fixture
def rdfs(engine: Engine, tmp_path: Path, put: Put) -> KnowledgeBase:
    """Version 1 of a store under rdfs, in which tom is a cat and so an animal."""
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name)
    kb.load(put("start.nt", below("Cat", "Animal"), is_a("tom", "Cat")), rules="rdfs")
    assert facts(kb, "derived") == {is_a("tom", "Animal")}
    return kb


# --- what is told --------------------------------------------------------------------------------


def test_between_any_two_versions_the_difference_of_their_facts(
    rdfs: KnowledgeBase, put: Put, engine: Engine
) -> None:
    rdfs.load(put("a.nt", is_a("kit", "Cat"), is_a("tom", "Cat")))
    rdfs.update(remove=put("b.nt", is_a("tom", "Cat"), is_a("never", "there")))
    rdfs.compact()
    rdfs.update(add=put("c.nt", is_a("tom", "Cat")), remove=put("d.nt", below("Cat", "Animal")))
    rdfs.vacuum(timedelta(days=7))
    rdfs.change_rules(remove="rdfs")
    rdfs.change_rules(add="rdfs")
    assert rdfs.version == 8
    layers: tuple[LayerChoice, ...] = ("all", "asserted", "derived")
    pairs = [(2, 8), (1, 6), *((v, v + 1) for v in range(8))]
    few = engine.name == "spark"  # the files are the same, whatever engine wrote them
    for layer in layers[: 1 if few else 3]:
        pairs = pairs[: 1 if few else None]
        known = {v: facts(rdfs.at(v), layer) for v in {v for pair in pairs for v in pair}}
        for earlier, later in pairs:
            before, after = known[earlier], known[later]
            assert changed(rdfs, earlier, later, layer) == (after - before, before - after)


@on_sail
def test_the_default_is_the_last_version(rdfs: KnowledgeBase, put: Put) -> None:
    everything = {below("Cat", "Animal"), is_a("tom", "Cat"), is_a("tom", "Animal")}
    assert changed(rdfs) == (everything, set())
    rdfs.update(remove=put("a.nt", is_a("tom", "Cat")))
    gone = {is_a("tom", "Cat"), is_a("tom", "Animal")}
    assert changed(rdfs) == (set(), gone)
    assert changed(rdfs, until=1) == (everything, set())
    assert changed(rdfs, since=0) == ({below("Cat", "Animal")}, set())
    assert changed(rdfs.at(1)) == (everything, set()), "of the version that it shows"
    assert changed(rdfs.at(1), since=0) == (everything, set())
    assert changed(rdfs.at(0)) == NOTHING, "there is none before"


def test_a_fact_that_moves_between_layers_changes_in_each_and_not_in_all(
    rdfs: KnowledgeBase, put: Put
) -> None:
    moved = {is_a("tom", "Animal")}
    rdfs.load(put("a.nt", is_a("tom", "Animal")))
    assert changed(rdfs) == NOTHING
    assert changed(rdfs, layer="asserted") == (moved, set())
    assert changed(rdfs, layer="derived") == (set(), moved)

    rdfs.update(remove=put("a.nt", is_a("tom", "Animal")))
    assert changed(rdfs) == NOTHING
    assert changed(rdfs, layer="asserted") == (set(), moved)
    assert changed(rdfs, layer="derived") == (moved, set())
    for layer in ("all", "asserted", "derived"):
        assert changed(rdfs, since=1, layer=layer) == NOTHING, "there and back again"


@on_sail
def test_what_goes_and_comes_back_has_not_changed(rdfs: KnowledgeBase, put: Put) -> None:
    rdfs.update(remove=put("a.nt", is_a("tom", "Cat")))
    rdfs.compact()
    rdfs.load(put("a.nt", is_a("tom", "Cat")))
    assert changed(rdfs, since=1) == NOTHING
    assert changed(rdfs, since=2) == ({is_a("tom", "Cat"), is_a("tom", "Animal")}, set())


@on_sail
def test_maintenance_changes_nothing(rdfs: KnowledgeBase, put: Put) -> None:
    rdfs.update(remove=put("a.nt", is_a("tom", "Cat")))
    version = rdfs.version
    rdfs.compact()
    rdfs.vacuum(timedelta(days=7))
    rdfs.change_rules(add="rdfs")  # the rules that it has
    assert rdfs.version == version + 3
    for since in range(version, rdfs.version):
        assert changed(rdfs, since) == NOTHING
    assert changed(rdfs, rdfs.version, rdfs.version) == NOTHING


@on_sail
def test_changes_are_a_frame_of_four_columns(rdfs: KnowledgeBase) -> None:
    found = rdfs.changes()
    assert (found.earlier, found.later) == (0, 1)
    assert found.frame.columns == ["change", "subject", "predicate", "object"]
    assert found.frame.where("change = 'added'").count() == 3
    assert list(rdfs.changes(1)) == []


# --- what is refused -----------------------------------------------------------------------------


@pytest.fixture
def sail(tmp_path: Path, put: Put) -> KnowledgeBase:
    """A store of two versions on Sail, for what no engine sees."""
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="none")
    kb.load(put("a.nt", is_a("tom", "Cat")))
    kb.load(put("a.nt", is_a("kit", "Cat")))
    return kb


def test_versions_in_the_wrong_order_are_to_be_swapped(sail: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="version 2 is later than 1: swap them"):
        sail.changes(2, 1)
    with pytest.raises(InputError, match="version 2 is later than 1: swap them"):
        sail.at(1).changes(2)


@pytest.mark.parametrize(
    ("since", "until", "missing"), [(0, 9, 9), (9, None, 9), (9, 9, 9), (9, 1, 9), (-1, None, -1)]
)
def test_a_version_that_there_is_not_is_told(
    since: int, until: int | None, missing: int, sail: KnowledgeBase
) -> None:
    told = rf"/kb: no version {missing}; `inferlake history` lists"
    with pytest.raises(VersionNotFound, match=told):
        sail.changes(since, until)


def test_a_version_that_was_vacuumed_is_told(sail: KnowledgeBase, tmp_path: Path) -> None:
    sail.compact()
    sail.vacuum(timedelta(0))
    for call in (sail.changes, lambda v: sail.export_changes(tmp_path / "out.rdfp", v)):
        for version in (1, None):  # the last change began there
            with pytest.raises(VersionNotFound, match="version 1 was vacuumed; the oldest that is"):
                call(version)
    assert not (tmp_path / "out.rdfp").exists()
    assert changed(sail, sail.version) == NOTHING


def test_files_that_a_vacuum_takes_from_under_a_reader_are_told(
    sail: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sail takes missing files for empty ones: rows would be missing, and nobody told."""
    held = sail.changes(0, 1)
    sail.forget(f"{EX}tom")

    def vacuumed(*args: Any, **kwargs: Any) -> Any:
        sail.vacuum(timedelta(0))
        return written(*args, **kwargs)

    written = inferlake.export._lines
    monkeypatch.setattr("inferlake.export._lines", vacuumed)
    with pytest.raises(StoreError, match="a vacuum deleted files while they were read: do it"):
        sail.export(tmp_path / "all.nt")
    assert not (tmp_path / "all.nt").exists()
    monkeypatch.undo()
    with pytest.raises(StoreError, match="a vacuum deleted files"):
        list(held)
    assert sail.export(tmp_path / "all.nt").triples == len(facts(sail)) > 0


def test_a_patch_that_would_lack_rows_does_not_appear(
    sail: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vacuumed(*args: Any, **kwargs: Any) -> Any:
        sail.compact()
        sail.vacuum(timedelta(0))
        return written(*args, **kwargs)

    written = inferlake.export._lines
    monkeypatch.setattr("inferlake.export._lines", vacuumed)
    with pytest.raises(StoreError, match="a vacuum deleted files"):
        sail.export_changes(tmp_path / "out.rdfp", 0, 1)
    assert not (tmp_path / "out.rdfp").exists()


def test_a_vacuum_keeps_no_version_that_a_compaction_has_just_replaced(
    sail: KnowledgeBase, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    sail.load(put("more.nt", is_a("kit", "Cat")))
    before, expired = sail.version, Table.expired

    def compacted(table: Table, *args: int) -> list[str]:
        if sail.version == before:
            sail.compact()
        return expired(table, *args)

    monkeypatch.setattr(Table, "expired", compacted)
    sail.vacuum(timedelta(0))
    with pytest.raises(VersionNotFound, match=f"version {before} was vacuumed"):
        sail.changes(before)


def test_other_arguments_are_checked(sail: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no layer 'every': choose all, asserted or derived"):
        sail.changes(layer="every")  # type: ignore[arg-type]
    other = KnowledgeBase(tmp_path / "other", engine="sail")
    with pytest.raises(NotAStore, match="no store there"):
        other.changes()
    with pytest.raises(NotAStore, match="no store there"):
        other.export_changes(tmp_path / "out.rdfp")


# --- RDF Patch -----------------------------------------------------------------------------------


def patch_of(text: str) -> tuple[set[str], set[str]]:
    """Return what a patch adds and deletes; it is one transaction, deletions first."""
    lines = text.split("\n")
    assert (lines[0], lines[-2:]) == ("TX .", ["TC .", ""])
    verbs = "".join(line[0] for line in lines[1:-2])
    assert re.fullmatch("D*A*", verbs)
    added = {line[2:-2] for line in lines[1:-2] if line[0] == "A"}
    deleted = {line[2:-2] for line in lines[1:-2] if line[0] == "D"}
    assert len(added) + len(deleted) == len(verbs)
    return added, deleted


def test_changes_are_written_as_one_transaction(
    rdfs: KnowledgeBase, put: Put, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    rdfs.update(remove=put("a.nt", is_a("tom", "Cat")), add=put("b.nt", is_a("kit", "Cat")))
    told = changed(rdfs)
    assert [len(part) for part in told] == [2, 2]

    report = rdfs.export_changes(tmp_path / "out.rdfp")
    assert (report.version, report.triples) == (2, 4)
    assert patch_of((tmp_path / "out.rdfp").read_text()) == told
    assert rdfs.export_changes(tmp_path / "out.rdfp.gz").triples == 4
    assert patch_of(gzip.decompress((tmp_path / "out.rdfp.gz").read_bytes()).decode()) == told
    capfdbinary.readouterr()
    assert rdfs.export_changes().triples == 4
    assert patch_of(capfdbinary.readouterr().out.decode()) == told
    assert not Path(rdfs.path, "_staging").exists()

    assert rdfs.export_changes(str(tmp_path / "OUT.RDFP"), 2, 2).triples == 0
    assert (tmp_path / "OUT.RDFP").read_text() == "TX .\nTC .\n"
    assert rdfs.export_changes(tmp_path / "none.rdfp.gz", 2, 2).triples == 0
    assert gzip.decompress((tmp_path / "none.rdfp.gz").read_bytes()) == b"TX .\nTC .\n"


@pytest.mark.parametrize("file", ["out.nt", "out", "out.rdfp.zip", "out/", "out.gz", "out.ru"])
def test_other_names_are_refused(file: str, sail: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"changes are written to \.rdfp or \.rdfp\.gz"):
        sail.export_changes(f"{tmp_path}/{file}")
    assert not (tmp_path / file).exists()
    assert not Path(sail.path, "_staging").exists()


@pytest.mark.parametrize("file", ["a.nt/out.rdfp", "folder.rdfp"])
def test_a_file_that_cannot_be_written_is_told(
    file: str, sail: KnowledgeBase, tmp_path: Path
) -> None:
    (tmp_path / "folder.rdfp").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=f"{file}: cannot be written"):
        sail.export_changes(tmp_path / file)
    assert sorted(tmp_path.iterdir()) == before


ODD = """
@prefix : <http://example.org/> .
:a :text "a \\"quoted\\" \\\\ text\\nof two lines\\r\\t\\b\\f" , '''it's''' , "" .
:a :text " . " , "# no comment" , "été"@fr , "color"@en-us , "تفاح"@ar .
:a :text "\\U0001F600\\u0001\\u007F\\u0085\\u2028" .
:a :text "<_:b>" .
:a :number 1 , 1.50 , 1e6 , "x"^^:datatype , true .
<http://example.org/%20%3E?q='#é> :p <urn:x:y> , <mailto:a@b.c> .
:a :p [ :q ( 1 "x" ) ; :r _:n ] .
_:n :p :a , _:n .
"""


def test_a_patch_makes_the_later_version_of_a_copy_of_the_earlier(
    engine: Engine, tmp_path: Path
) -> None:
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="rdfs")
    (tmp_path / "a.ttl").write_text(ODD, "utf-8")
    (tmp_path / "b.ttl").write_text(
        ODD.replace("text", "label").replace("1.50", "2") + ':a :text "new" .', "utf-8"
    )
    kb.load(tmp_path / "a.ttl")
    earlier = facts(kb, "asserted")
    shutil.copytree(kb.path, tmp_path / "copy")
    kb.update(remove=tmp_path / "a.ttl", add=tmp_path / "b.ttl")
    later = facts(kb, "asserted")
    assert len(later) > 20 and len(earlier - later) > 10

    report = kb.export_changes(tmp_path / "out.rdfp", layer="asserted")
    assert report.triples == len(earlier ^ later)
    copy = KnowledgeBase(tmp_path / "copy", engine=engine.name)
    done = copy.update(patch=tmp_path / "out.rdfp")
    assert (done.added, done.removed) == (len(later - earlier), len(earlier - later))
    assert facts(copy, "asserted") == later
    assert facts(copy) == facts(kb)
    assert copy.verify().ok


@on_sail
def test_a_patch_of_everything_makes_a_store_of_the_same_facts(
    rdfs: KnowledgeBase, put: Put, tmp_path: Path
) -> None:
    rdfs.load(put("a.nt", is_a("kit", "Cat")))
    rdfs.export_changes(tmp_path / "all.rdfp.gz", 0)
    other = KnowledgeBase(tmp_path / "other", engine=rdfs.reading_engine)  # type: ignore[arg-type]
    other.load(put("none.nt"), rules="none")
    other.update(patch=tmp_path / "all.rdfp.gz")
    assert facts(other, "asserted") == facts(rdfs)
