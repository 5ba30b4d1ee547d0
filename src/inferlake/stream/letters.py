"""Dead letters: every line that could not be read, with its place and what is wrong with it.

A batch has one file, named by its number and written before the batch is committed. A batch that is
replayed writes the same file again: no line is lost, and none is there twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from inferlake.input import Bad
from inferlake.paths import Place
from inferlake.stream.batch import Origin


@dataclass(frozen=True)
class DeadLetters:
    """The folder of dead letters of one stream."""

    at: Place

    def write(self, number: int, bad: Iterable[Bad], origin: Origin) -> int:
        """Keep the bad lines of a batch, in place of any that are there, and return how many."""
        target = self.at.child(f"{number:012}.jsonl")
        found = iter(bad)
        first = next(found, None)
        if first is None:
            with suppress(FileNotFoundError):
                target.filesystem.delete_file(target.path)
            return 0
        target.filesystem.create_dir(self.at.path, recursive=True)
        unfinished = self.at.child(f".{number:012}.tmp")
        count = 0
        with unfinished.filesystem.open_output_stream(unfinished.path, compression=None) as sink:
            for line in self._lines(number, first, found, origin):
                sink.write(line)
                count += 1
        target.filesystem.move(unfinished.path, target.path)
        return count

    def _lines(
        self, number: int, first: Bad, others: Iterator[Bad], origin: Origin
    ) -> Iterator[bytes]:
        one: Bad | None = first
        while one is not None:
            said = {"column": one.column, "text": one.text, "message": one.message}
            record = {"batch": number, **origin(one), **said}
            yield f"{json.dumps(record, ensure_ascii=False)}\n".encode()
            one = next(others, None)
