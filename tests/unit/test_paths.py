"""Paths: one form for both engines, local or remote."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pyarrow.fs as pafs
import pytest

from inferlake.errors import InputError, RuleError, StoreError
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
    listed = Place._info

    def meanwhile(self: Place) -> pafs.FileInfo:
        """What an engine does that was just interrupted: write, and delete what was listed."""
        found = listed(self)
        if not written:
            written.append("once")
            (folder / "late").touch()
            raise OSError(39, "Directory not empty")
        return found

    written: list[str] = []
    monkeypatch.setattr(Place, "_info", meanwhile)
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


# --- what this user may not do -------------------------------------------------------------------


class Denying(pafs.LocalFileSystem):
    """A disk that lets nobody in, in pyarrow's words."""

    def _deny(self, doing: str) -> NoReturn:
        raise PermissionError(13, f"Cannot {doing}. Detail: [errno 13] Permission denied")

    def get_file_info(self, paths_or_selector: object) -> NoReturn:
        self._deny("look")

    def open_input_file(self, path: object) -> NoReturn:
        self._deny("open")


@pytest.mark.parametrize("look", [Place.info, Place.exists, Place.files, Place.names, Place.read])
@pytest.mark.parametrize("blame", [InputError, RuleError, StoreError])
def test_what_may_not_be_read_is_blamed_on_what_it_was_for(
    look: Callable[[Place], object], blame: type[InputError]
) -> None:
    denied = Place("/folder", Denying(), "/folder", blame).child("in")
    reason = (
        r"^/folder/in: cannot be read \(Cannot (look|open): Permission denied\); give this user"
    )
    with pytest.raises(blame, match=reason):
        look(denied)


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in ("file", "file/a/b"):
        at = place(tmp_path / folder, blame=StoreError)
        assert not at.is_writable()
        with pytest.raises(
            StoreError, match=f"^{at.path}: cannot be written .*/file: Not a direct"
        ):
            at.require_writable()


@pytest.mark.parametrize("flags,reason", [(0, "Permission denied"), (os.ST_RDONLY, "Read-only")])
def test_a_folder_that_may_not_be_written_is_told_by_the_reason(
    flags: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    with pytest.raises(InputError, match=rf"/new/er: cannot be written \({tmp_path}: {reason}"):
        place(tmp_path / "new" / "er").require_writable()
    place("mock:///bucket/kb").require_writable()  # a cloud is not asked


def test_asking_whether_a_folder_can_be_written_makes_nothing(tmp_path: Path) -> None:
    place(tmp_path / "new" / "er").require_writable()
    assert place(tmp_path).is_writable()
    assert not list(tmp_path.iterdir())


def test_a_file_is_written_if_its_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place(tmp_path / "file").require_writable(beside=True)
    with pytest.raises(InputError, match=r"/file/a: cannot be written \(.*/file: Not a directory"):
        place(tmp_path / "file" / "a").require_writable(beside=True)
