"""A recording: the rows of one run of a benchmark, with the machine and the command line."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from inferlake.engines.machine import cores, machine_memory
from inferlake.errors import InputError

FORMAT = 1

# Whose versions a reader of the numbers will ask for.
_PACKAGES = ("inferlake", "pyspark", "pysail", "deltalake", "pyarrow", "reasonable", "owlrl")

# What is said of the machine that a recording was made on, wherever it is shown.
_MACHINE = ("cores", "memory_gb", "processor", "load_average", "python", "versions")

# What of a recording is no part of its file.
_NOT_SAVED = {"file", "replaces"}

Row = dict[str, Any]


@dataclass
class Recording:
    """What was measured so far. Every row is on disk, in `file`, before the next case begins."""

    benchmark: str
    options: Mapping[str, Any]
    file: Path | None = None
    rows: list[Row] = field(default_factory=list)
    machine: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    began: str = ""
    complete: bool = False
    # Whether another recording is in `file` until something was measured.
    replaces: bool = False

    @classmethod
    def begin(cls, benchmark: str, options: Mapping[str, Any], file: Path | None) -> Recording:
        """Return an empty recording, and write it: a place that cannot be written is told now.

        An older recording of the same benchmark is replaced, by the first row that is more than an
        error, and nothing else is.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        begun = cls(benchmark, options, file, [], machine(), tuple(sys.argv), now)
        if file is not None and file.exists():
            _check_older(file, benchmark)
            begun.replaces = True
            begun.write().unlink()
        else:
            begun.save()
        return begun

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.save()

    def finish(self) -> None:
        self.complete = True
        self.save()

    @property
    def failures(self) -> list[Row]:
        """The rows of our own that failed, or after which a store was not what it should be.

        A peer that fails or takes too long is no failure.
        """
        return [row for row in self.rows if is_wrong(row) or ("error" in row and "peer" not in row)]

    @property
    def is_saved(self) -> bool:
        """Whether there is a file of this recording, and not still of an older one."""
        return self.file is not None and (not self.replaces or self._measured)

    @property
    def _measured(self) -> bool:
        return any("error" not in row for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Return the recording as JSON would have it."""
        found = {name: value for name, value in asdict(self).items() if name not in _NOT_SAVED}
        return {"inferlake-bench": FORMAT, **found}

    def save(self) -> None:
        """Replace the file as a whole: whoever reads it meanwhile sees the one or the other."""
        if self.file is not None and self.is_saved:
            with _writing(self.file):
                self.write().replace(self.file)

    def write(self) -> Path:
        """Write the recording beside its file, and return where."""
        assert self.file is not None
        if not self.file.parent.is_dir():
            raise InputError(
                f"{self.file}: cannot write the recording: there is no folder {self.file.parent};"
                " make it, or name another file"
            )
        partial = self.file.with_name(f"{self.file.name}.{os.getpid()}.partial")
        with _writing(self.file):
            partial.write_text(json.dumps(self.as_dict(), indent=1, default=str) + "\n")
        return partial


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise InputError(f"{file}: cannot write the recording: {exc.strerror}") from exc


def is_wrong(row: Row) -> bool:
    """Tell whether a store was checked and did not equal a rebuild."""
    return row.get("right") is False


def _check_older(file: Path, benchmark: str) -> None:
    """Raise `InputError` unless a file is a recording of the same benchmark."""
    older = read(file)
    if older.benchmark != benchmark:
        raise InputError(
            f"{file}: has a recording of bench {older.benchmark}, which bench {benchmark} does not"
            " replace; name another file, or delete this one"
        )


def read(file: Path) -> Recording:
    """Return a saved recording, whether or not its run came to an end."""
    try:
        found = json.loads(file.read_text())
    except OSError as exc:
        raise InputError(f"{file}: cannot read it: {exc.strerror}") from exc
    except ValueError as exc:
        raise InputError(
            f"{file}: not JSON, so no recording of inferlake bench; name another file: {exc}"
        ) from exc
    if not _is_recording(found):
        raise InputError(
            f"{file}: no recording that this release can show; "
            "`inferlake bench COMMAND --json FILE` makes one where there is no other file"
        )
    found.pop("inferlake-bench")
    return Recording(**{**found, "command": tuple(found["command"])}, file=None)


def _is_recording(found: Any) -> bool:
    """Tell whether JSON has what a recording has, by name and by type, and no more."""
    if not isinstance(found, dict) or found.get("inferlake-bench") != FORMAT:
        return False
    types = {
        "benchmark": str,
        "options": dict,
        "rows": list,
        "machine": dict,
        "command": list,
        "began": str,
        "complete": bool,
    }
    assert types.keys() == {one.name for one in fields(Recording)} - _NOT_SAVED
    return (
        found.keys() == {"inferlake-bench", *types}
        and all(isinstance(found[name], one) for name, one in types.items())
        and all(isinstance(row, dict) for row in found["rows"])
        and all(name in found["machine"] for name in _MACHINE)
        and isinstance(found["machine"]["versions"], dict)
    )


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: processors, memory, how busy they are, versions."""
    return {
        "cores": cores(),
        "memory_gb": round(machine_memory() / 2**30, 1),
        "processor": _processor(),
        # Above a fraction of the cores at the start, others are at work here too.
        "load_average": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
