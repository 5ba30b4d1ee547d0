"""Mending Spark's checkpoint after a crash in the middle of writing it.

Spark refuses to start from a checkpoint with an empty or broken file. What such a file was to say
can be told from the rest, in these cases and no others:

- No batch is done, here or in the knowledge base: the stream has not begun. Start over.
- `offsets/N` is broken, and N is not in the knowledge base: the batch was being planned. Plan it
  again; what it was to read has not been read.
- `sources/S/M`, the files for one batch, is broken, and no plan has it yet: list them again.
- `commits/N` is broken, and N is in the knowledge base: do the batch again, which changes nothing.
- `metadata` is broken: it is but a name that Spark draws for the query. Draw another.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress

import pyarrow.fs as pafs

from inferlake.errors import InputError
from inferlake.paths import Place


def last_commit(checkpoint: Place) -> int | None:
    """Return the last batch that Spark knows to be done."""
    return max(_numbers(checkpoint.child("commits")), default=None)


def mend(checkpoint: Place, applied: int | None) -> bool:
    """Mend a checkpoint; `applied` is the last batch in the knowledge base. Tell if it was broken.

    Raises `InputError` for damage that no crash of ours explains.
    """
    offsets, commits = checkpoint.child("offsets"), checkpoint.child("commits")
    broken = _broken(offsets, _is_plan), _broken(commits, _is_commit)
    metadata = checkpoint.child("metadata")
    no_id = metadata.exists() and not _is_json(_text(metadata))
    bad_sources = _broken_sources(checkpoint)
    if not (broken[0] or broken[1] or no_id or bad_sources):
        return False
    if applied is None and not (_numbers(commits) - broken[1]):
        checkpoint.remove()
        return True
    for number in broken[0]:
        if (applied is not None and applied >= number) or number < max(_numbers(offsets)):
            raise _beyond(offsets.child(str(number)))
        _drop(offsets, number)
    for number in broken[1]:
        if applied is None or applied < number or number < max(_numbers(commits)):
            raise _beyond(commits.child(str(number)))
        _drop(commits, number)
    for file in bad_sources:
        _drop_unplanned(offsets, file)
    if no_id:
        _drop(checkpoint, "metadata")
        with metadata.filesystem.open_output_stream(metadata.path, compression=None) as sink:
            sink.write(json.dumps({"id": str(uuid.uuid4())}).encode())
    return True


def _drop_unplanned(offsets: Place, file: Place) -> None:
    """Drop the last entry of a source's log, if no plan goes as far."""
    path, _, name = file.path.rpartition("/")
    folder = Place(file.address.rpartition("/")[0], file.filesystem, path)
    entries = (info.base_name.partition(".")[0] for info in folder.files())
    last = max((int(entry) for entry in entries if entry.isdigit()), default=-1)
    planned = (_log_offsets(_text(offsets.child(str(n)))) for n in _numbers(offsets))
    if not name.isdigit() or int(name) < max([last, *(m + 1 for some in planned for m in some)]):
        raise _beyond(file)
    _drop(folder, name)


def _log_offsets(plan: str) -> list[int]:
    """Return how far into the logs of its sources a plan goes."""
    found = (json.loads(line) for line in plan.splitlines()[2:] if line.startswith("{"))
    return [int(one["logOffset"]) for one in found if "logOffset" in one]


def _beyond(file: Place) -> InputError:
    return InputError(
        f"{file.address}: damaged, and no crash explains it; restore the folder from a backup, or"
        " start the stream with a new checkpoint, and the source is read from the beginning"
    )


def _numbers(folder: Place) -> set[int]:
    selector = pafs.FileSelector(folder.path, allow_not_found=True)
    names = (info.base_name for info in folder.filesystem.get_file_info(selector))
    return {int(name) for name in names if name.isdigit()}


def _broken(folder: Place, whole: Callable[[str], bool]) -> set[int]:
    return {n for n in _numbers(folder) if not whole(_text(folder.child(str(n))))}


def _broken_sources(checkpoint: Place) -> list[Place]:
    """Return the lists of files that a folder's batches have, where they are not whole."""
    root = checkpoint.child("sources")
    names = [info.path[len(root.path) + 1 :] for info in root.files()]
    return [root.child(name) for name in names if not _is_source(_text(root.child(name)))]


def _text(file: Place) -> str:
    with file.filesystem.open_input_stream(file.path, compression=None) as stream:
        return stream.read().decode(errors="replace")


def _is_plan(text: str) -> bool:
    """Tell whether a text is a version, what Spark says of the batch, and an offset a source."""
    lines = text.splitlines()
    return len(lines) >= 3 and lines[0].startswith("v") and all(map(_is_whole, lines[1:]))


def _is_commit(text: str) -> bool:
    lines = text.splitlines()
    return len(lines) >= 2 and lines[0].startswith("v") and _is_json(lines[1])


def _is_source(text: str) -> bool:
    lines = text.lstrip("\0").splitlines()  # Kafka's begins with a zero
    return bool(lines) and lines[0].startswith("v") and all(map(_is_whole, lines[1:]))


def _is_whole(line: str) -> bool:
    """Tell whether a line is JSON to its end, or something that is not JSON at all."""
    return not line.startswith(("{", "[")) or _is_json(line)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _drop(folder: Place, name: object) -> None:
    """Delete a file, and the checksum beside it."""
    for path in (folder.child(f".{name}.crc").path, folder.child(str(name)).path):
        with suppress(FileNotFoundError):
            folder.filesystem.delete_file(path)
