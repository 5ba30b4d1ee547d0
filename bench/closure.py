"""From stored triples to committed inferences, beside other reasoners in the same run.

    .venv/bin/python bench/closure.py [--universities 50] [--repeat 3] [--ontology FILE]
        [--systems sail,spark,maplib,reasonable] [--peers PYTHON]

Inferlake reads a stored version, derives its RDFS closure and commits it. The others hold the
triples in memory when the clock starts, and nothing is durable when it stops. They are no
dependencies: `--peers` names a Python that has them (pip install maplib reasonable). Systems take
turns, each in a process of its own, so that one slow minute of the machine is everybody's. Read
ratios of one run; reasonable derives OWL RL, which is more than RDFS, and cannot do less.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_OURS = ("sail", "spark")

# Run by a Python that has the peers, with the folder of files as its argument.
_PEERS = {
    "maplib": """
import sys, time, json, resource
from maplib import Model
model = Model()
for file in sys.argv[1:]:
    model.read(file, format="ntriples")
before = model.size() if hasattr(model, "size") else None
began = time.perf_counter()
model.infer_rdfs()
seconds = time.perf_counter() - began
rows = model.query("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
""",
    "reasonable": """
import os, sys, time, json, resource, tempfile
import reasonable
reasoner = reasonable.PyReasoner()
folder = tempfile.mkdtemp()
for number, file in enumerate(sys.argv[1:]):
    # It tells formats by suffix and knows Turtle, of which N-Triples is a part.
    link = os.path.join(folder, f"{number}.ttl")
    os.symlink(os.path.abspath(file), link)
    reasoner.load_file(link)
began = time.perf_counter()
rows = len(reasoner.reason())
seconds = time.perf_counter() - began
""",
}
_TOLD = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({"seconds": seconds, "found": str(rows), "peak_memory_mb": peak}))
"""


def ours(engine: str, files: list[str]) -> dict[str, Any]:
    """Load without rules, then derive: only the second is what we measure."""
    import inferlake
    from inferlake.session import peak_memory

    with tempfile.TemporaryDirectory(prefix="inferlake-bench-") as folder:
        kb = inferlake.open(Path(folder) / "kb", engine=engine)  # type: ignore[arg-type]
        loaded = kb.load(*files, rules="none")
        nothing = Path(folder) / "nothing.nt"
        nothing.write_text("")
        kb.load(nothing, rules="none")  # the same small work once, so that what it needs is there
        began = time.perf_counter()
        report = kb.load(nothing, rules="rdfs")
        whole = time.perf_counter() - began
        return {
            "seconds": report.seconds["derive"] + report.seconds["commit"],
            "whole_command": round(whole, 2),
            "found": f"{loaded.added:,} asserted, {report.derived:,} derived",
            "triples": loaded.added,
            "rounds": [str(done) for done in report.rounds],
            "peak_memory_mb": peak_memory() // 2**20,
        }


def _run(system: str, files: list[str], peers: str) -> dict[str, Any]:
    if system in _OURS:
        command = [sys.executable, __file__, "--only", system, *files]
    else:
        command = [peers, "-c", _PEERS[system] + _TOLD, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:] or done.returncode}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Parse arguments, let the systems take turns, print each result as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--universities", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ontology", type=Path)
    parser.add_argument("--systems", default="sail,spark")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--only", choices=_OURS, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.only:
        print(json.dumps(ours(chosen.only, chosen.files)))
        return
    from load import generated

    files = sorted(map(str, generated(chosen.universities).glob("*.nt")))
    files += [str(chosen.ontology)] if chosen.ontology else []
    best: dict[str, float] = {}
    for turn in range(chosen.repeat):
        for system in chosen.systems.split(","):
            result = _run(system, files, chosen.peers)
            print(json.dumps({"turn": turn + 1, "system": system, **result}), flush=True)
            if "seconds" in result:
                best[system] = min(best.get(system, result["seconds"]), result["seconds"])
    for system, seconds in best.items():
        ratio = seconds / min(best.values())
        print(f"{system:12} {seconds:8.2f} s at best, {ratio:6.1f} times the fastest")


if __name__ == "__main__":
    main()
