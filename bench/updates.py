"""DynamiTE's six updates of LUBM, added and removed: seconds, files and rows, beside a rebuild.

    .venv/bin/python bench/updates.py --shared DIR [--universities 1,5,50] [--engine sail]
        [--algorithms bf,rebuild] [--only update1,update3] [--repeat 3] [--no-verify]

DIR has `lubm/univ-bench.nt`, `lubm/lubm-1.nt.gz` and `dynamite-updates/`. The store holds the
ontology, universities 0 and 1 as DynamiTE's updates know them, and generated ones beyond. Every
update is made and taken back again: what `add_*` adds is then removed, what `remove_*` removes is
then added. So both directions of one set are measured, from parsing to the commit. The published
seconds are DynamiTE's on LUBM(8000) with a cluster's memory: beside ours they only show which
updates are hard.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inferlake
from inferlake.generate import generate_lubm
from inferlake.session import Sessions

UPDATES = ("update1", "update2", "update3", "update4", "university", "2universities")

# Seconds of DynamiTE: additions, removals by counting, and by DRed (for all of them, 2,000 and up).
PUBLISHED = {
    "update1": (0.117, 0.117),
    "update2": (8.2, 25.7),
    "update3": (3.7, 25.4),
    "update4": (31.8, 51.0),
    "university": (16.8, 74.6),
    "2universities": (30.5, 135.8),
}


def base_files(shared: Path, universities: int, data: Path) -> list[Path]:
    """Return the files of LUBM with so many universities, of which 0 and 1 are DynamiTE's."""
    files = [shared / "lubm" / "univ-bench.nt", shared / "lubm" / "lubm-1.nt.gz"]
    if universities > 1:
        both = shared / "dynamite-updates" / "remove_2universities"
        files += sorted(both.glob("University1_*"))
    if universities > 2:
        files.append(_others(universities, data))
    return files


def _others(universities: int, data: Path) -> Path:
    """Generate the universities from number 2 on."""
    folder = data / f"lubm-2-to-{universities}"
    if not folder.exists():
        session = Sessions("sail").for_reading().session
        generate_lubm(session, universities - 2, out=str(folder), first=2)
    return folder


def measure(engine: str, files: list[Path], updates: Path, options: Any) -> Iterator[dict]:
    """Load the base, then make each update and take it back."""
    with tempfile.TemporaryDirectory(prefix="inferlake-bench-") as folder:
        kb = inferlake.open(Path(folder) / "kb", engine=engine)  # type: ignore[arg-type]
        kb.load(*files)
        kb.compact()
        _warm(kb, Path(folder))
        for name in UPDATES if not options.only else options.only.split(","):
            for kind in ("add", "remove"):
                for algorithm in options.algorithms.split(","):
                    for turn in range(options.repeat if algorithm != "rebuild" else 1):
                        yield from _there_and_back(
                            kb, updates, kind, name, algorithm, options, verify=not turn
                        )


def _there_and_back(
    kb: Any, updates: Path, kind: str, name: str, algorithm: str, options: Any, *, verify: bool
) -> Iterator[dict]:
    folder = updates / f"{kind}_{name}"
    for way in (kind, "remove" if kind == "add" else "add"):
        began = time.perf_counter()
        report = kb.update(**{way: folder}, algorithm=algorithm)
        row = {
            "update": f"{kind}_{name}",
            "way": way,
            "algorithm": algorithm,
            "seconds": time.perf_counter() - began,
            "phases": {phase: round(spent, 3) for phase, spent in report.seconds.items()},
            "changed": report.added + report.removed,
            "derived": report.derived,
            "withdrawn": report.withdrawn,
            "files_read": report.files_read,
            "rows_read": report.rows_read,
            "files_stored": report.files_stored,
            "rows_stored": report.rows_stored,
            "rounds": len(report.rounds),
            "said": [str(done) for done in report.rounds] if options.rounds else [],
        }
        if verify and not options.no_verify:
            row["right"] = kb.verify().ok
        yield row
    kb.compact()


def _warm(kb: Any, folder: Path) -> None:
    """Let the engine compile and cache what every change needs."""
    line = folder / "warm.nt"
    line.write_text("<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n")
    for _ in range(2):
        kb.update(add=line)
        kb.update(remove=line)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--universities", default="1,5,50")
    parser.add_argument("--engine", default="sail")
    parser.add_argument("--algorithms", default="bf,rebuild")
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--rounds", action="store_true")
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        files = base_files(options.shared, int(options.one), options.data)
        for row in measure(options.engine, files, options.shared / "dynamite-updates", options):
            print(json.dumps(row), flush=True)
        return
    for size in options.universities.split(","):
        print(f"LUBM({size}) on {options.engine}", flush=True)
        told = subprocess.run(
            [sys.executable, *sys.argv, "--one", size], check=True, stdout=subprocess.PIPE
        )
        _table([json.loads(line) for line in told.stdout.splitlines()])


def _table(rows: list[dict[str, Any]]) -> None:
    """Print medians: seconds beside a rebuild's and the published ones, and what was read."""
    times: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        times.setdefault((row["update"], row["way"], row["algorithm"]), []).append(row)
    medians = {key: statistics.median(r["seconds"] for r in some) for key, some in times.items()}
    print("update                way     by       seconds  rebuild/it  published", end="")
    print("   files of stored          rows of stored  right")
    for (update, way, algorithm), some in times.items():
        seconds, last = medians[update, way, algorithm], some[0]
        again = medians.get((update, way, "rebuild"))
        ratio = f"{again / seconds:9.1f}x" if again else " " * 10
        published = PUBLISHED[update.split("_", 1)[1]][way == "remove"]
        right = all(row["right"] for row in some if "right" in row)
        print(
            f"{update:21} {way:7} {algorithm:8} {seconds:7.3f}  {ratio}  {published:9.3f}"
            f"  {last['files_read']:6} of {last['files_stored']:3}"
            f"  {last['rows_read']:10,} of {last['rows_stored']:10,}  {right}"
        )


if __name__ == "__main__":
    main()
