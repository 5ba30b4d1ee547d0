"""What footers say of Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inferlake import parquet
from inferlake.paths import place

SCHEMA = pa.schema([("id", pa.int64()), ("term", pa.string())])


def write(file: Path, ids: list[int | None], terms: list[str | None], group: int = 100) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table([ids, terms], schema=SCHEMA), file, row_group_size=group)


def test_rows_nulls_and_bounds_come_from_all_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [5, -3, None, 9], ["b", None, None, "a"], group=1)
    (file,) = parquet.described(place(tmp_path))
    assert (file.path, file.rows) == ("a.parquet", 4)
    assert file.nulls == {"id": 1, "term": 2}
    assert (file.mins["id"], file.maxs["id"]) == (-3, 9)
    assert file.size == (tmp_path / "a.parquet").stat().st_size


def test_paths_are_relative_and_sorted_and_empty_files_left_out(tmp_path: Path) -> None:
    write(tmp_path / "part=1" / "x.parquet", [1], ["a"])
    write(tmp_path / "part=0" / "y.parquet", [2, 3], ["b", "c"])
    write(tmp_path / "part=2" / "z.parquet", [], [])
    (tmp_path / "_SUCCESS").touch()
    files = parquet.described(place(tmp_path))
    assert [file.path for file in files] == ["part=0/y.parquet", "part=1/x.parquet"]
    assert parquet.rows(files) == 3


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert parquet.described(place(tmp_path / "nothing")) == ()


def test_filled_counts_rows_with_a_value_over_all_files(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1, None], ["a", None])
    write(tmp_path / "b.parquet", [None, 2], ["b", "c"])
    files = parquet.described(place(tmp_path))
    assert parquet.filled(files, "id") == 2
    assert parquet.filled(files, "term") == 3
    assert parquet.filled((), "term") == 0


def test_a_column_of_nulls_has_no_bounds(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [None, None], ["a", "b"])
    (file,) = parquet.described(place(tmp_path))
    assert "id" not in file.mins and "id" not in file.maxs
    assert file.nulls["id"] == 2


def test_rows_are_read_back_without_an_engine(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1, 2], ["a", "b"])
    write(tmp_path / "b.parquet", [3], ["c"])
    files = parquet.described(place(tmp_path))
    assert parquet.read_rows(place(tmp_path), files, ["term", "id"]) == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
    ]


def test_nulls_are_counted_where_the_writer_kept_no_statistics(tmp_path: Path) -> None:
    table = pa.table([[1, None, None], ["a", "b", None]], schema=SCHEMA)
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False, row_group_size=2)
    (file,) = parquet.described(place(tmp_path))
    assert file.nulls == {"id": 2, "term": 1}
    assert file.mins == file.maxs == {}
