"""Files of facts: what their names say, and what the driver sees of them. No engine is started."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from inferlake.datalog.files import check_columns, examine, find, looks_headed
from inferlake.errors import InputError


@pytest.mark.parametrize(
    ("name", "kind", "compression"),
    [
        ("a.csv", ".csv", None),
        ("A.TSV.GZ", ".tsv", "gzip"),
        ("a.facts.bz2", ".facts", "bz2"),
        ("a.parquet", ".parquet", None),
        ("a.nt.zst", ".nt", "zstd"),
        ("a.b.ttl", ".ttl", None),
    ],
)
def test_the_suffix_says_what_a_file_is(
    name: str, kind: str, compression: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).touch()
    (file,) = find(str(tmp_path / name))
    assert (file.kind, file.compression) == (kind, compression)


def test_folders_and_globs_are_files_in_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a.tsv", "_SUCCESS", ".hidden.csv", "notes.txt"):
        (tmp_path / name).touch()
    assert [Path(file.at.path).name for file in find(str(tmp_path))] == ["a.tsv", "b.csv"]
    assert [Path(file.at.path).name for file in find(str(tmp_path / "*.csv"))] == ["b.csv"]
    with pytest.raises(InputError, match="no such file or folder"):
        find(str(tmp_path / "*.parquet"))
    with pytest.raises(InputError, match="no file of facts there"):
        find(str(tmp_path / "*.txt"))


@pytest.mark.parametrize("name", ["_a.csv", ".a.csv", "a[1].csv", "a*.csv"])
def test_names_that_engines_would_not_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    (file,) = find(str(tmp_path / name))
    assert not file.read_by_engines


def test_rows_have_the_lines_they_end_in(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfa,"b\nc"\n\nd,e\n')
    (file,) = find(str(tmp_path / "a.csv"))
    assert list(file.rows()) == [(2, ["a", "b\nc"]), (4, ["d", "e"])]
    assert file.columns == 2
    with gzip.open(tmp_path / "a.facts.gz", "wb") as sink:
        sink.write(b'"a\t\r\nb\t"\n')
    (file,) = find(str(tmp_path / "a.facts.gz"))
    assert list(file.rows()) == [(1, ['"a', ""]), (2, ["b", '"'])]


@pytest.mark.parametrize(
    ("content", "crlf"),
    [(b"a,b\r\n", True), (b'"a\r\n",b\n', False), (b'"a\n",b\r\n', True), (b"", False)],
)
def test_how_rows_end(content: bytes, crlf: bool, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    (file,) = find(str(tmp_path / "a.csv"))
    assert file.ends_rows_with_crlf is crlf


def test_the_first_row_that_is_too_short_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4,5\n6\n")
    (file,) = find(str(tmp_path / "a.csv"))
    check_columns(file, "edge", 2)
    with pytest.raises(InputError, match=r"a\.csv:2: 3 columns here, and edge has 2 arguments"):
        examine(file, "edge", 2)
    with pytest.raises(InputError, match=r"a\.csv: 2 columns here, and edge has 3 arguments"):
        check_columns(file, "edge", 3)


@pytest.mark.parametrize(
    ("content", "headed"),
    [("x,y\n1,a\n", True), ("x,y\na,b\n", False), ("1,y\n2,z\n", False), ("x,y\n", False)],
)
def test_words_over_numbers_look_like_a_header(content: str, headed: bool, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    (file,) = find(str(tmp_path / "a.csv"))
    assert looks_headed(file) is headed
