"""Paths, local or in a cloud, through pyarrow's file systems alone."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from inferlake.errors import InferlakeError, InputError

# So often a folder is deleted in which others are at work, with so many seconds between.
_ATTEMPTS = 100
_PAUSE = 0.01

# How pyarrow puts what the operating system said behind its own words.
_DETAIL = re.compile(r"\. Detail: \[errno \d+\] ")


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
    """Raise `InputError` unless files can be written into a local folder. Makes the folder.

    Unlike `Place.require_writable` it does not ask but tries, which takes longer and is certain.
    """
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
    """A folder or file: its address for engines, its file system, and its path there.

    What this user may not read or write is an error of the type `blame`, with the remedy.
    """

    address: str
    filesystem: pafs.FileSystem
    path: str
    blame: type[InferlakeError] = field(default=InputError, repr=False, compare=False)

    def child(self, name: str) -> Place:
        """Return the place `name` below this one."""
        return replace(self, address=f"{self.address}/{name}", path=f"{self.path}/{name}")

    def exists(self) -> bool:
        """Tell whether anything is there."""
        return self.info().type != pafs.FileType.NotFound

    def info(self) -> pafs.FileInfo:
        """Return type, size and time of what is there."""
        with self._readable():
            return self._info()

    def _info(self) -> pafs.FileInfo:
        return self.filesystem.get_file_info([self.path])[0]

    def read(self) -> bytes:
        """Return what is in the file."""
        with self._readable(), self.filesystem.open_input_file(self.path) as source:
            return source.read()

    def names(self) -> list[str]:
        """Return what files and folders are called that are in this folder."""
        with self._readable():
            found = self.filesystem.get_file_info(pafs.FileSelector(self.path))
        return sorted(info.base_name for info in found)

    def files(self) -> list[pafs.FileInfo]:
        """List every file below, at any depth; none where the folder does not exist.

        Names that begin with a dot are passed over: Hadoop keeps checksums under such names.
        """
        selector = pafs.FileSelector(self.path, recursive=True, allow_not_found=True)
        with self._readable():
            found = self.filesystem.get_file_info(selector)
        files = (f for f in found if f.type == pafs.FileType.File and f.base_name[0] != ".")
        return sorted(files, key=lambda f: f.path)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Tell what the operating system keeps from this user."""
        try:
            yield
        except PermissionError as exc:
            reason = _DETAIL.sub(": ", exc.strerror or str(exc))
            raise self.blame(
                f"{self.address}: cannot be read ({reason}); give this user the right to read it"
            ) from exc

    def is_writable(self) -> bool:
        """Tell whether this user may write into the folder, or make it; always so in a cloud."""
        return self._refusal(Path(self.path)) is None

    def require_writable(self, *, beside: bool = False) -> None:
        """Raise unless this user may write into the folder, or make it; or else `beside` it.

        Asks the operating system, in microseconds, and makes nothing. A cloud is not asked.
        """
        folder = Path(self.path)
        if reason := self._refusal(folder.parent if beside else folder):
            raise self.blame(
                f"{self.address}: cannot be written ({reason}); nothing was changed; give this user"
                " the right to write there, or name another place"
            )

    def _refusal(self, folder: Path) -> str | None:
        """Return why nothing can be written into `folder`, or None if it can."""
        if is_remote(self.address):
            return None
        there = _nearest(folder)
        if not there.is_dir():
            return f"{there}: {os.strerror(errno.ENOTDIR)}"
        if os.access(there, os.W_OK | os.X_OK):
            return None
        read_only = os.statvfs(there).f_flag & os.ST_RDONLY
        return f"{there}: {os.strerror(errno.EROFS if read_only else errno.EACCES)}"

    def remove(self) -> None:
        """Delete the folder with all below it; what is not there is no error.

        An engine that was interrupted may at the same time delete what it had begun to write, or
        still write a file: so what fails is tried again, for a second.
        """
        for attempt in range(_ATTEMPTS):
            try:
                if self._info().type == pafs.FileType.Directory:
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
        return shutil.disk_usage(_nearest(Path(self.path))).free


def _nearest(path: Path) -> Path:
    """Return `path`, or the nearest folder above it that is there as far as this user can see."""
    # Unlike Path.exists, this takes what may not be looked at for missing.
    while not os.path.exists(path):  # noqa: PTH110
        path = path.parent
    return path


def place(path: str | os.PathLike[str], *, blame: type[InferlakeError] = InputError) -> Place:
    """Resolve `path` to its file system; credentials come from the environment, by pyarrow."""
    address = absolute(path)
    if not is_remote(address):
        return Place(address, pafs.LocalFileSystem(), address, blame)
    try:
        filesystem, inner = pafs.FileSystem.from_uri(address)
    except (pa.ArrowInvalid, OSError) as exc:
        raise InputError(f"{address}: no file system for this address ({exc})") from exc
    return Place(address, filesystem, inner, blame)
