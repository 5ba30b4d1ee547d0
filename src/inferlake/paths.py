"""Paths, local or in a cloud, through pyarrow's file systems alone."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from inferlake.errors import InputError

# So often a folder is deleted in which others are at work, with so many seconds between.
_ATTEMPTS = 100
_PAUSE = 0.01


def is_remote(path: str) -> bool:
    """Tell a URI such as `s3://bucket/kb` from a local path."""
    return "://" in path and not path.startswith("file://")


def absolute(path: str | os.PathLike[str]) -> str:
    """Return the form of `path` that both engines, deltalake and every worker understand alike.

    Local paths become absolute and lose `file://`: an engine would otherwise resolve them against
    its own folder.
    """
    text = os.fspath(path)
    if is_remote(text):
        return text.rstrip("/")
    # abspath rather than absolute(): `x/../a.nt` and `a.nt` are one file, with one scope.
    return os.path.abspath(Path(text.removeprefix("file://")).expanduser())  # noqa: PTH100


def require_writable(folder: Path, *, purpose: str, option: str) -> None:
    """Raise `InputError` unless files can be written into a local folder. Makes the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        raise InputError(
            f"{folder}: no folder for {purpose}: {exc.strerror}; name another by {option}"
        ) from exc


@dataclass(frozen=True)
class Place:
    """A folder or file: its address for engines, its file system, and its path there."""

    address: str
    filesystem: pafs.FileSystem
    path: str

    def child(self, name: str) -> Place:
        """Return the place `name` below this one."""
        return Place(f"{self.address}/{name}", self.filesystem, f"{self.path}/{name}")

    def exists(self) -> bool:
        """Tell whether anything is there."""
        return self.info().type != pafs.FileType.NotFound

    def info(self) -> pafs.FileInfo:
        """Return type, size and time of what is there."""
        return self.filesystem.get_file_info([self.path])[0]

    def files(self) -> list[pafs.FileInfo]:
        """List every file below, at any depth; none where the folder does not exist.

        Names that begin with a dot are passed over: Hadoop keeps checksums under such names.
        """
        selector = pafs.FileSelector(self.path, recursive=True, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        files = (f for f in found if f.type == pafs.FileType.File and f.base_name[0] != ".")
        return sorted(files, key=lambda f: f.path)

    def remove(self) -> None:
        """Delete the folder with all below it; what is not there is no error.

        An engine that was interrupted may at the same time delete what it had begun to write, or
        still write a file: so what fails is tried again, for a second.
        """
        for attempt in range(_ATTEMPTS):
            try:
                if self.info().type == pafs.FileType.Directory:
                    self.filesystem.delete_dir(self.path)
                return
            except PermissionError:
                raise
            except OSError:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(_PAUSE)

    def remove_if_empty(self) -> None:
        """Delete a local folder unless something is in it; a cloud has no empty folders."""
        if not is_remote(self.address):
            Path(self.path).rmdir()

    def free_bytes(self) -> int | None:
        """Return the free space of a local disk; None in a cloud, which has no such number."""
        if is_remote(self.address):
            return None
        folder = Path(self.path)
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free


def place(path: str | os.PathLike[str]) -> Place:
    """Resolve `path` to its file system; credentials come from the environment, by pyarrow."""
    address = absolute(path)
    if not is_remote(address):
        return Place(address, pafs.LocalFileSystem(), address)
    try:
        filesystem, inner = pafs.FileSystem.from_uri(address)
    except (pa.ArrowInvalid, OSError) as exc:
        raise InputError(f"{address}: no file system for this address ({exc})") from exc
    return Place(address, filesystem, inner)
