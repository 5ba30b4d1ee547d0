"""From files to a committed version: triples per second, peak memory, and the cost of one triple.

    .venv/bin/python bench/load.py [--universities 50] [--engines sail,spark] [--data DIR]

Each engine runs in a process of its own, one after the other, on the same generated files. Read the
ratio between them, and the numbers of one run beside each other; an absolute time is the machine's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import inferlake
from inferlake.generate import generate_lubm
from inferlake.session import Sessions, peak_memory

SMALL_LOADS = 12


def measure(engine: str, data: Path) -> dict[str, Any]:
    """Load `data` into a fresh store, then one triple at a time."""
    with tempfile.TemporaryDirectory(prefix="inferlake-bench-") as folder:
        kb = inferlake.open(Path(folder) / "kb", engine=engine)  # type: ignore[arg-type]
        Sessions(engine).for_reading().sql("SELECT 1").collect()  # type: ignore[arg-type]
        began = time.perf_counter()
        report = kb.load(data)
        seconds = time.perf_counter() - began
        singles = [_one_triple(kb, Path(folder), n) for n in range(SMALL_LOADS)]
        stats = kb.stats()
        return {
            "engine": engine,
            "triples": report.read,
            "seconds": round(seconds, 2),
            "triples_per_second": round(report.read / seconds),
            "phases": {name: round(spent, 2) for name, spent in report.seconds.items()},
            "peak_memory_mb": peak_memory() // 2**20,
            "bytes_per_triple": round(stats.bytes / stats.asserted, 1),
            # The first few warm caches and compilers up.
            "one_triple_ms": round(1000 * statistics.median(singles[2:])),
        }


def _one_triple(kb: inferlake.KnowledgeBase, folder: Path, number: int) -> float:
    line = folder / "one.nt"
    line.write_text(
        f"<http://example.org/{number}> <http://example.org/p> <http://example.org/o> .\n"
    )
    began = time.perf_counter()
    kb.load(line)
    return time.perf_counter() - began


def generated(universities: int) -> Path:
    """Return a folder of LUBM data, made once and kept beside this file."""
    out = Path(__file__).parent / "data" / f"lubm-{universities}"
    if not out.is_dir():
        session = Sessions("sail").for_reading().session
        generate_lubm(session, universities, out=str(out))
    return out


def in_own_process(engine: str, data: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", engine, "--data", str(data)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--universities", type=int, default=50)
    parser.add_argument("--engines", default="sail,spark")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child, options.data)))
        return
    data = options.data or generated(options.universities)
    rows = [in_own_process(engine, data) for engine in options.engines.split(",")]
    heads = ("triples", "triples/s", "one triple", "peak", "B/triple")
    print(f"{'engine':8}" + "".join(f"{head:>12}" for head in heads))
    for row in rows:
        print(
            f"{row['engine']:8}{row['triples']:>12,}{row['triples_per_second']:>12,}"
            f"{row['one_triple_ms']:>9} ms{row['peak_memory_mb']:>9} MB"
            f"{row['bytes_per_triple']:>12}"
        )
        print(f"        {row['phases']}")
    if len(rows) == 2:
        first, second = (row["triples_per_second"] for row in rows)
        print(
            f"{rows[0]['engine']} loads {first / second:.1f} times as fast as {rows[1]['engine']}"
        )


if __name__ == "__main__":
    main()
