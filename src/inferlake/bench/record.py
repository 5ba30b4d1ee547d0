"""A recording: the rows of one run of a benchmark, with the machine and the command line."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from inferlake.errors import InputError
from inferlake.session import cores, machine_memory

FORMAT = 1

# Whose versions a reader of the numbers will ask for.
_PACKAGES = ("inferlake", "pyspark", "pysail", "deltalake", "pyarrow", "reasonable", "owlrl")

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

    @classmethod
    def begin(cls, benchmark: str, options: Mapping[str, Any], file: Path | None) -> Recording:
        """Return an empty recording, and write it: a place that cannot be written is told now.

        An older recording is replaced, and nothing else.
        """
        if file is not None and file.exists():
            read(file)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        begun = cls(benchmark, options, file, [], machine(), tuple(sys.argv), now)
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
        """The rows of our own that failed; a peer that fails or takes too long is no failure."""
        return [row for row in self.rows if "error" in row and "peer" not in row]

    def as_dict(self) -> dict[str, Any]:
        """Return the recording as JSON would have it."""
        found = {name: value for name, value in asdict(self).items() if name != "file"}
        return {"inferlake-bench": FORMAT, **found}

    def save(self) -> None:
        """Replace the file as a whole: whoever reads it meanwhile sees the one or the other."""
        if self.file is None:
            return
        partial = self.file.with_name(f"{self.file.name}.{os.getpid()}.partial")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps(self.as_dict(), indent=1, default=str) + "\n")
            partial.replace(self.file)
        except OSError as exc:
            raise InputError(f"{self.file}: cannot write the recording: {exc.strerror}") from exc


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
    if not isinstance(found, dict) or found.get("inferlake-bench") != FORMAT:
        raise InputError(
            f"{file}: no recording that this release can show; "
            "`inferlake bench COMMAND --json FILE` makes one where there is no other file"
        )
    found.pop("inferlake-bench")
    return Recording(**{**found, "command": tuple(found["command"])}, file=None)


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
