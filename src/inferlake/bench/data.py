"""LUBM data and DynamiTE's six kinds of updates, made once and kept in a folder.

The published updates are about universities 0 and 1 as UBA, the benchmark's own generator, writes
them. Ours are of the same kinds and sizes, about those that `inferlake generate lubm` writes.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from inferlake.bench.process import Case, measured
from inferlake.errors import EngineError, InputError
from inferlake.generate.lubm_schema import lubm_ontology
from inferlake.generate.lubm_triples import PREFIXES
from inferlake.paths import require_writable

# DynamiTE's names, in the order of the paper's table.
UPDATES = ("update1", "update2", "update3", "update4", "university", "2universities")
WAYS = ("add", "remove")

# The sizes of the published ones.
NAMES, ADDRESSES = 15_972, 8_330

_UB = PREFIXES["ub"]
_NAME, _ADDRESS = f" <{_UB}name> ", f" <{_UB}emailAddress> "
_SUBPROPERTY = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"

# What is added comes from universities that no store of ours has.
_ELSEWHERE = 100_000

# Generating takes a second or so for a university.
_PATIENCE_SECONDS = 3600


def default_folder() -> Path:
    """Return where data are kept that nobody named a place for."""
    return Path(tempfile.gettempdir()) / "inferlake-bench"


@dataclass(frozen=True)
class Data:
    """A folder of generated data. What is in it is complete; what is not there is made."""

    folder: Path

    def check(self) -> None:
        """Raise `InputError` unless data can be made in the folder. Makes the folder."""
        require_writable(self.folder, purpose="data", option="--data")

    def ontology(self) -> Path:
        """Return the file of the benchmark's schema."""
        file = self.folder / "univ-bench.nt"
        if not file.exists():
            self._publish(file, lambda made: made.write_text(lubm_ontology()))
        return file

    def lubm(self, universities: int, *, first: int = 0) -> Path:
        """Return the folder of so many universities, from number `first` on."""
        folder = self.folder / f"lubm-{first}-{first + universities - 1}"
        if not folder.is_dir():
            named = {"universities": universities, "first": first}
            self._publish(folder, lambda made: _generated(named, made))
        return folder

    def files(self, universities: int) -> list[str]:
        """Return the files of LUBM with so many universities, and of its schema."""
        return [*_files(self.lubm(universities)), str(self.ontology())]

    def updates(self) -> Path:
        """Return a folder of the six updates, each in a folder of its own such as `add_update3`."""
        folder = self.folder / "updates"
        if not folder.is_dir():
            home = self.lubm(1)
            self._publish(folder, lambda made: self._make_updates(made, home))
        return folder

    def update(self, folder: Path, way: str, name: str) -> list[str]:
        """Return the files of one update, of a folder of updates."""
        files = _files(folder / f"{way}_{name}")
        if not files:
            raise InputError(
                f"{folder}: no files in {way}_{name}; a folder of updates has add_update1, "
                "remove_update1 and so on, as DynamiTE's repository does"
            )
        return files

    def base(self, universities: int, published: Path | None) -> list[str]:
        """Return the files that the updates are about, as far as there are so many universities.

        With published updates, universities 0 and 1 are those that these remove.
        """
        if published is None:
            return self.files(universities)
        known = [
            file
            for file in self.update(published, "remove", "2universities")
            if universities > 1 or Path(file).name.startswith("University0_")
        ]
        others = _files(self.lubm(universities - 2, first=2)) if universities > 2 else []
        return [*known, *others, str(self.ontology())]

    def _make_updates(self, made: Path, home: Path) -> None:
        made.mkdir(parents=True)
        for name, lines in _small_updates(home).items():
            _write(made / name / f"{name}.nt", lines)
        for way, first in (("add", _ELSEWHERE), ("remove", 0)):
            for name, universities in (("university", 1), ("2universities", 2)):
                shutil.copytree(self.lubm(universities, first=first), made / f"{way}_{name}")

    def _publish(self, target: Path, make: Any) -> None:
        """Let `make` write what then appears at `target` as a whole."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            prefix = f"{target.name}.partial-"
            with tempfile.TemporaryDirectory(prefix=prefix, dir=self.folder) as partial:
                made = Path(partial) / target.name
                make(made)
                made.rename(target)
        except OSError as exc:
            if not target.exists():  # else another process was faster
                raise InputError(f"{target}: cannot be made: {exc.strerror or exc}") from exc


def _generated(named: dict[str, int], out: Path) -> None:
    """Generate LUBM data in a process of its own."""
    for row in measured(Case("data.generate", named, {"out": str(out)}), limit=_PATIENCE_SECONDS):
        if "limit" in row:  # no option's
            raise EngineError(f"LUBM data were not generated after {_PATIENCE_SECONDS:,} s")
        if "error" in row:
            raise EngineError(f"could not generate LUBM data: {row['error'].splitlines()[-1]}")


def generate(universities: int, first: int, out: str) -> Iterator[dict[str, Any]]:
    """Generate LUBM data, as a case: so that this process starts no engine."""
    from inferlake.generate import generate_lubm
    from inferlake.session import Sessions

    session = Sessions("sail").for_reading().session
    report = generate_lubm(session, universities, out=out, first=first)
    yield {"triples": report.triples, "bytes": report.bytes}


def lines_of(files: Iterable[str]) -> Iterator[str]:
    """Yield the lines of N-Triples files, plain or compressed with gzip, without their ends."""
    for file in files:
        with gzip.open(file, "rt") if file.endswith(".gz") else Path(file).open() as lines:
            for line in lines:
                yield line.rstrip("\n")


def _files(folder: Path) -> list[str]:
    return sorted(str(file) for file in folder.glob("*.nt*"))


def _write(file: Path, lines: Iterable[str]) -> None:
    file.parent.mkdir()
    file.write_text("".join(f"{line}\n" for line in lines))


def _small_updates(home: Path) -> dict[str, list[str]]:
    """Return the four updates of chosen triples: named things, addresses, one property."""
    names = list(islice((line for line in lines_of(_files(home)) if _NAME in line), NAMES))
    addresses = [line for line in lines_of(_files(home)) if _ADDRESS in line][:ADDRESSES]
    university = next(line for line in names if line.startswith("<http://www.University0.edu>"))
    head = f"<{_UB}headOf> {_SUBPROPERTY}"
    duty, manager = f"<{_UB}responsibleOf>", f"<{_UB}Manager>"
    return {
        "remove_update1": [university],
        "add_update1": [_renamed(university)],
        "remove_update2": names,
        "add_update2": [_renamed(line) for line in names],
        "remove_update3": addresses,
        # People that nobody has heard of before.
        "add_update3": [line.replace("University0.edu", "University0.com") for line in addresses],
        "remove_update4": [f"{head} <{_UB}worksFor> ."],
        "add_update4": [f"{head} {duty} .", f"{duty} {_SUBPROPERTY} {manager} ."],
    }


def _renamed(line: str) -> str:
    """Return the same under a property that no rule knows."""
    return line.replace(_NAME, f" <{_UB}completeName> ")
