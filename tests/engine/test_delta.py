"""A store is two plain Delta tables: whoever reads Delta reads the facts, with one query."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from inferlake.kb import KnowledgeBase
from inferlake.session import Engine
from inferlake.store import Commit, Layer, Store
from inferlake.terms import FULL

# The query that the documentation gives to readers, as it stands there.
_DOCUMENT = Path(__file__).parents[2] / "docs" / "store.md"
CURRENT_FACTS_SQL = _DOCUMENT.read_text().split("```sql\n")[1].split("```")[0]

Fact = tuple[str, str, str, str]

INPUT = """\
<http://example.org/a> <http://example.org/p> <http://example.org/b> .
<http://example.org/b> <http://example.org/p> <http://example.org/c> .
<http://example.org/c> <http://example.org/p> "a \\"quoted\\" text\\n" .
_:x <http://example.org/p> "été"@fr .
_:x <http://example.org/q> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


def name(local: str) -> str:
    return f"<http://example.org/{local}>"


def by_inferlake(kb: KnowledgeBase) -> list[Fact]:
    rows = kb.facts().collect()
    return sorted((row.subject, row.predicate, row.object, row.layer) for row in rows)


def by_duckdb(path: str, version: int | None = None) -> list[Fact]:
    facts = DeltaTable(f"{path}/facts", version=version)
    with duckdb.connect() as database:
        database.register("facts", facts.to_pyarrow_dataset())
        database.register("terms", DeltaTable(f"{path}/terms").to_pyarrow_dataset())
        return sorted(database.sql(CURRENT_FACTS_SQL).fetchall())


def by_deltalake(path: str, version: int | None = None) -> list[Fact]:
    """Read the tables with deltalake, and replay the signed rows in the order of versions."""
    rows = DeltaTable(f"{path}/facts", version=version).to_pyarrow_table().to_pylist()
    terms = DeltaTable(f"{path}/terms").to_pyarrow_table().to_pylist()
    term = {row["id"]: row["term"] for row in terms}
    standing: set[tuple[int, int, int, str]] = set()
    for row in sorted(rows, key=lambda row: (row["version"], row["sign"])):
        assert row["relation"] == "triple"
        fact = (row["s"], row["p"], row["o"], row["layer"])
        (standing.add if row["sign"] == 1 else standing.discard)(fact)
    return sorted((term[s], term[p], term[o], layer) for s, p, o, layer in standing)


def write(
    store: Store, engine: Engine, layer: Layer, sign: int, *facts: tuple[str, str, str]
) -> None:
    """Commit signed rows as reasoning and removals do."""
    table = store.facts.table
    base = table.snapshot()
    rows = ", ".join(
        f"({', '.join(str(FULL.of(term)) for term in fact)}, {base.version + 1})" for fact in facts
    )
    frame = engine.sql(f"SELECT * FROM VALUES {rows} AS rows(s, p, o, version)")
    written = table.write(frame.selectExpr(*(f"BIGINT({c}) AS {c}" for c in frame.columns)))
    table.commit(
        base, Commit({"operation": "test"}, store.facts.actions(written, layer, sign=sign))
    )


def test_the_documented_query_reads_layers_and_removals(
    kb: KnowledgeBase, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "input.nt"
    file.write_text(INPUT)
    kb.load(file)
    store = Store.at(kb.path)
    a, b, c, p, q = map(name, "abcpq")
    write(store, engine, "derived", 1, (a, p, c), (b, q, c), (c, q, a))
    write(store, engine, "derived", -1, (b, q, c))
    write(store, engine, "asserted", -1, (b, p, c))
    # A derived fact that is then asserted changes its layer; one that was removed comes back.
    file.write_text(f"{a} {p} {c} .\n{b} {p} {c} .\n")
    report = kb.load(file)
    assert (report.added, report.version) == (2, 5)

    facts = by_inferlake(kb)
    assert [fact for fact in facts if fact[3] == "derived"] == [(c, q, a, "derived")]
    assert len(facts) == 7
    assert {(a, p, c, "asserted"), (b, p, c, "asserted")} <= set(facts)
    assert by_duckdb(kb.path) == by_deltalake(kb.path) == facts
    if engine.name == "sail":  # the same files and log, whoever wrote them
        for version in range(report.version + 1):
            past = by_inferlake(kb.at(version))
            assert by_duckdb(kb.path, version) == by_deltalake(kb.path, version) == past
    check_log(store)

    kb.compact()
    assert by_duckdb(kb.path) == by_deltalake(kb.path) == by_inferlake(kb) == facts
    check_log(store)


def check_log(store: Store) -> None:
    """Compare what the log says of each live file with the file."""
    for table in (store.facts.table, store.terms.table):
        delta = DeltaTable(table.place.path)
        assert delta.protocol().min_reader_version == 1
        assert delta.metadata().partition_columns == list(table.partition_columns)
        in_files = [f.name for f in table.schema.fields if f.name not in table.partition_columns]
        described = {file.path: file for file in table.snapshot().files}
        assert len(described) == len(delta.file_uris())
        for path, file in described.items():
            at = Path(table.place.path, path)
            data = pq.ParquetFile(at).read()
            # What only wide relations have is not in a file of triples.
            assert data.column_names == [name for name in in_files if name != "rest"]
            assert (at.stat().st_size, data.num_rows) == (file.size, file.rows)
            for column in file.mins:
                values = data.column(column).to_pylist()
                assert (min(values), max(values)) == (file.mins[column], file.maxs[column])


# --- the log, which does not depend on the engine ------------------------------------------------


@pytest.fixture
def sail(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase(tmp_path / "kb", engine="sail", rules="none")


def test_statistics_in_the_log_find_the_one_file_that_matters(
    sail: KnowledgeBase, tmp_path: Path
) -> None:
    for local in "abcdef":
        (tmp_path / "one.nt").write_text(f'{name(local)} {name("p")} "{local}" .\n')
        sail.load(tmp_path / "one.nt")
    wanted = ds.field("s") == FULL.of(name("c"))
    dataset = DeltaTable(f"{sail.path}/facts").to_pyarrow_dataset()
    assert len(list(dataset.get_fragments(filter=wanted))) == 1
    assert dataset.to_table(filter=wanted).num_rows == 1


def test_commits_say_whether_they_change_data(sail: KnowledgeBase, tmp_path: Path) -> None:
    """Readers of the change between versions must not see a compaction as new facts."""
    for local in "ab":
        (tmp_path / "one.nt").write_text(f"{name(local)} {name('p')} {name('o')} .\n")
        sail.load(tmp_path / "one.nt")
    sail.compact()
    for table in ("facts", "terms"):
        log = Path(sail.path, table, "_delta_log")
        flags = [
            {
                action[kind]["dataChange"]
                for action in map(json.loads, (log / f"{version:020}.json").open())
                for kind in ("add", "remove")
                if kind in action
            }
            for version in range(4)
        ]
        assert flags == [set(), {True}, {True}, {False}]


def test_a_log_with_checkpoints_keeps_versions_and_batches(
    sail: KnowledgeBase, tmp_path: Path
) -> None:
    file = tmp_path / "input.nt"
    file.write_text(INPUT)
    sail.load(file, transaction=("app", 7))
    table = Store.at(sail.path).facts.table
    for _ in range(110):  # deltalake writes a checkpoint every hundred versions
        table.commit(table.snapshot(), Commit({"operation": "test"}))
    assert list(Path(sail.path, "facts", "_delta_log").glob("*.checkpoint.parquet"))
    assert sail.version == 111
    assert [info.version for info in sail.history()] == list(range(111, -1, -1))
    assert sail.load(file, transaction=("app", 7)).repeated
    assert sail.load(file, transaction=("app", 8)).added == 0
    assert len(by_inferlake(sail.at(1))) == len(by_duckdb(sail.path)) == 5
    check_log(Store.at(sail.path))
