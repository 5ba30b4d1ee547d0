"""Removal from cliques, where every fact has many proofs: how much each algorithm has to look at.

    .venv/bin/python bench/cliques.py [--engine sail] [--cliques 100] [--members 30] [--links 10]
        [--remove 100] [--seed 1]

A relation is symmetric and transitive, and each member of a clique is linked explicitly with some
others at random: the case that Motik, Nenov, Piro and Horrocks made their Backward/Forward
algorithm for (AAAI 2015, Table 2, whose columns these are). The counts are the same on every
machine; the seconds are not.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import inferlake
from inferlake.maintain import Algorithm

LINKED = "<http://example.org/linked>"
RULES = f"""
[symmetric] [?y, {LINKED}, ?x] :- [?x, {LINKED}, ?y] .
[transitive] [?x, {LINKED}, ?z] :- [?x, {LINKED}, ?y], [?y, {LINKED}, ?z] .
"""


def edges(cliques: int, members: int, links: int, chance: random.Random) -> list[tuple[str, str]]:
    """Return explicit links: of each member to so many others of its clique."""
    found = set()
    for clique in range(cliques):
        names = [f"<http://example.org/{clique}/{member}>" for member in range(members)]
        for name in names:
            others = [other for other in names if other != name]
            found |= {(name, other) for other in chance.sample(others, links)}
    return sorted(found)


def measure(options: Any, algorithm: Algorithm, folder: Path) -> dict[str, Any]:
    """Remove some links by one algorithm from a fresh store."""
    chance = random.Random(options.seed)
    links = edges(options.cliques, options.members, options.links, chance)
    gone = chance.sample(links, options.remove)
    for name, some in (("all.nt", links), ("gone.nt", gone)):
        (folder / name).write_text("".join(f"{a} {LINKED} {b} .\n" for a, b in some))
    (folder / "rules.dl").write_text(RULES)
    kb = inferlake.open(folder / "kb", engine=options.engine)
    loaded = kb.load(folder / "all.nt", rules=str(folder / "rules.dl"))
    began = time.perf_counter()
    report = kb.update(remove=folder / "gone.nt", algorithm=algorithm)
    seconds = time.perf_counter() - began
    work = report.work
    return {
        "algorithm": algorithm,
        "facts": loaded.added + loaded.derived,
        "removed": report.removed,
        "withdrawn": report.withdrawn,
        "C": work.checked,
        "D": work.examined,
        "forward": work.forward,
        "backward": work.backward,
        "deletion": work.deletion,
        "derivations": work.forward + work.backward + work.deletion,
        "rounds": len(report.rounds),
        "seconds": round(seconds, 2),
        "right": kb.verify().ok,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", default="sail")
    for name, size in (("cliques", 100), ("members", 30), ("links", 10), ("remove", 100)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--algorithms", default="bf,dred,counting,rebuild")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for algorithm in options.algorithms.split(","):
        with tempfile.TemporaryDirectory(prefix="inferlake-bench-") as folder:
            rows.append(measure(options, algorithm, Path(folder)))
    if options.json:
        print(json.dumps(rows))
        return
    names = list(rows[0])
    cells = [
        [f"{row[n]:,}" if isinstance(row[n], int) else str(row[n]) for n in names] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for line in (names, *cells):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


if __name__ == "__main__":
    main()
