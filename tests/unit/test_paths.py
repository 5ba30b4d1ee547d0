"""Paths: one form for both engines, local or remote."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs
import pytest

from inferlake.errors import InputError
from inferlake.paths import Place, absolute, is_remote, place


@pytest.mark.parametrize("path", ["s3://bucket/kb", "gs://b/k", "abfss://c@a/k", "hdfs://h:1/x"])
def test_other_schemes_than_file_are_remote(path: str) -> None:
    assert is_remote(path)
    assert absolute(path) == path
    assert absolute(f"{path}/") == path


@pytest.mark.parametrize("path", ["kb", "/kb", "./a:b", "file:///kb", "~/kb"])
def test_paths_and_file_uris_are_local(path: str) -> None:
    assert not is_remote(path)
    assert absolute(path).startswith("/")


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("a/b.nt") == absolute(Path("a/b.nt")) == str(tmp_path / "a" / "b.nt")
    assert absolute(f"file://{tmp_path}/a") == absolute("a/") == str(tmp_path / "a")


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert absolute("~/kb") == str(tmp_path / "kb")


def test_a_child_is_below_in_address_and_path(tmp_path: Path) -> None:
    child = place(tmp_path).child("facts")
    assert child.address == child.path == str(tmp_path / "facts")
    assert not child.exists()
    (tmp_path / "facts").mkdir()
    assert child.exists()


def test_files_are_listed_to_any_depth_without_dotted_names(tmp_path: Path) -> None:
    for name in ("b/c/2.parquet", "a.parquet", ".a.crc", "b/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    names = [info.path for info in place(tmp_path).files()]
    assert names == [str(tmp_path / "a.parquet"), str(tmp_path / "b/c/2.parquet")]
    assert place(tmp_path / "nowhere").files() == []


def test_a_folder_is_removed_with_all_below_and_nothing_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").touch()
    place(folder).remove()
    place(folder).remove()
    assert not folder.exists()


def test_a_folder_that_somebody_still_writes_to_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    listed = Place.info

    def meanwhile(self: Place) -> pafs.FileInfo:
        """What an engine does that was just interrupted: write, and delete what was listed."""
        found = listed(self)
        if not written:
            written.append("once")
            (folder / "late").touch()
            raise OSError(39, "Directory not empty")
        return found

    written: list[str] = []
    monkeypatch.setattr(Place, "info", meanwhile)
    place(folder).remove()
    assert written and not folder.exists()


def test_free_space_is_known_before_the_folder_exists(tmp_path: Path) -> None:
    free = place(tmp_path / "not" / "yet").free_bytes()
    assert free is not None and free > 0


def test_a_remote_place_keeps_its_address_and_has_no_free_space() -> None:
    memory = place("mock:///bucket/kb")
    assert memory.address == "mock:///bucket/kb"
    assert not isinstance(memory.filesystem, pafs.LocalFileSystem)
    assert memory.path.endswith("bucket/kb")
    assert memory.free_bytes() is None


def test_an_unknown_scheme_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"gopher://a/b: no file system"):
        place("gopher://a/b")
