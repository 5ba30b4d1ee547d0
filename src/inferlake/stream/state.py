"""Where a stream keeps how far it has come: a folder below the knowledge base, or one of choice.

    stream.json      who the stream is: an identity of its own, and what it reads
    checkpoint/      Spark's: which input each batch has, and which batches are done
    dead-letters/    what could not be read, a file for each batch
    spool/           the lines of the batch in hand

The identity is the name of the application transactions that its batches commit. It is as old as
the checkpoint: whoever deletes the folder gets another stream, which reads its source from the
beginning and is not taken for the old one.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow.fs as pafs

from inferlake.errors import InputError, StoreError
from inferlake.paths import Place, is_remote, place
from inferlake.store.store import STREAMS, Store
from inferlake.stream.letters import DeadLetters
from inferlake.stream.mend import last_commit, mend

_IDENTITY = "stream.json"
_LOCK = ".lock"


@dataclass
class State:
    """The folder of one stream, held by one process at a time."""

    at: Place
    name: str
    id: str
    # Keeps other processes out as long as it is open; None in a cloud, which has no locks.
    lock: IO[str] | None
    # Which of several runs this is, where a source cannot go on from where it was.
    run: str | None = None

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        checkpoint: str | None,
        source: str | None,
        *,
        run: str | None = None,
    ) -> State:
        """Take the folder of a stream, make it if there is none, and mend it where that is safe.

        Raises `InputError` if another process has it, or it is the folder of something else.
        """
        at = place(checkpoint) if checkpoint else store.place.child(STREAMS).child(name)
        found = at.info().type
        if found == pafs.FileType.File:
            raise InputError(f"{at.address}: a file; name a folder for the checkpoint")
        try:
            at.filesystem.create_dir(at.path, recursive=True)
            lock = _locked(at)
            state = cls(at, name, _identity(at, source), lock, run)
        except OSError as exc:
            raise StoreError(f"{at.address}: cannot be written: {exc}") from exc
        try:
            state._agree(store)
        except BaseException:
            state.close()
            raise
        state.spool.remove()
        return state

    @property
    def application(self) -> str:
        """The name under which batches are committed."""
        return f"inferlake-stream-{self.id}"

    @property
    def checkpoint(self) -> Place:
        """Spark's part."""
        return self.at.child("checkpoint")

    @property
    def letters(self) -> DeadLetters:
        """The dead letters."""
        folder = self.at.child("dead-letters")
        return DeadLetters(folder if self.run is None else folder.child(self.run))

    @property
    def spool(self) -> Place:
        """Where lines without files are written."""
        return self.at.child("spool")

    def close(self) -> None:
        """Let others have the folder, and remove it if nothing in it is of further use."""
        if self.run is not None and not self.at.child("dead-letters").exists():
            self._remove()
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def _remove(self) -> None:
        """Delete what this run has made, and the folder if nothing else is in it."""
        self.spool.remove()
        for name in (_IDENTITY, _LOCK):
            with suppress(FileNotFoundError):
                self.at.filesystem.delete_file(self.at.child(name).path)
        with suppress(OSError):  # somebody's files are in it
            self.at.remove_if_empty()

    def _agree(self, store: Store) -> None:
        """Mend the checkpoint, and make sure that the knowledge base is not behind it."""
        base = store.snapshot() if store.exists() else None
        applied = None if base is None else base.transaction(self.application)
        mend(self.checkpoint, applied)
        done = last_commit(self.checkpoint)
        if done is not None and (applied is None or applied < done):
            has = "none of its batches" if applied is None else f"batches up to {applied}"
            raise InputError(
                f"{self.at.address}: the checkpoint says that batch {done} is done, and"
                f" {store.place.address} has {has}; if it is another knowledge base, or an older"
                " copy, delete the folder, and the source is read from the beginning"
            )


def _locked(at: Place) -> IO[str] | None:
    if is_remote(at.address):
        return None
    lock = Path(at.path, _LOCK).open("a")  # noqa: SIM115  (open as long as the stream is)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        lock.close()
        raise InputError(
            f"{at.address}: another stream is at work with this checkpoint; stop it, or choose"
            " another name or checkpoint"
        ) from exc
    return lock


def _identity(at: Place, source: str | None) -> str:
    """Return who the stream is, now or since it was first started."""
    file = at.child(_IDENTITY)
    if file.exists():
        with file.filesystem.open_input_stream(file.path) as stream:
            said = json.loads(stream.read())
        if said["source"] != source:
            before, now = (one or "a DataFrame" for one in (said["source"], source))
            raise InputError(
                f"{at.address}: the checkpoint of a stream from {before}, not {now};"
                " choose another name or checkpoint"
            )
        return said["id"]
    everything = at.filesystem.get_file_info(pafs.FileSelector(at.path))
    strangers = sorted({info.base_name for info in everything} - {_LOCK, f".{_IDENTITY}"})
    if strangers:
        raise InputError(
            f"{at.address}: holds {strangers[0]} and is no checkpoint of a stream of ours;"
            " name a new folder"
        )
    said = {"id": uuid.uuid4().hex, "source": source}
    unfinished = at.child(f".{_IDENTITY}")
    with unfinished.filesystem.open_output_stream(unfinished.path, compression=None) as sink:
        sink.write(json.dumps(said).encode())
    _keep(unfinished)
    unfinished.filesystem.move(unfinished.path, file.path)
    return said["id"]


def _keep(file: Place) -> None:
    """Make sure that a local file survives a loss of power."""
    if is_remote(file.address):
        return
    with suppress(OSError), Path(file.path).open("rb") as opened:
        os.fsync(opened.fileno())
