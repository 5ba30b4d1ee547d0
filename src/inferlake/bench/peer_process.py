"""The process that a peer runs in. It may be another Python's: only the peer is imported here.

PYTHON peer_process.py PEER RDFS|"OWL 2 RL" FILE...
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any


def maplib(derives: str, files: Sequence[str]) -> tuple[Callable[[], Any], Callable[[], int]]:
    """Return how to derive, once the files are in memory, and how to count all triples then."""
    from maplib import Model  # type: ignore[import-not-found]  # an optional peer

    model: Any = Model()
    for file in files:
        model.read(file, format="ntriples")

    def count() -> int:
        rows = model.query("SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }")
        return int(rows[0, 0])

    return model.infer_rdfs, count


def reasonable(derives: str, files: Sequence[str]) -> tuple[Callable[[], Any], Callable[[], int]]:
    """As above. It tells formats by suffix and knows Turtle, of which N-Triples is a part."""
    from reasonable import PyReasoner  # type: ignore[import-not-found]  # an optional peer

    reasoner: Any = PyReasoner()
    with tempfile.TemporaryDirectory() as folder:
        for number, file in enumerate(files):
            link = Path(folder) / f"{number}.ttl"
            link.symlink_to(Path(file).absolute())
            reasoner.load_file(str(link))
    found: list[Any] = []
    return lambda: found.extend(reasoner.reason()), lambda: len(found)


def owlrl(derives: str, files: Sequence[str]) -> tuple[Callable[[], Any], Callable[[], int]]:
    """As above."""
    import owlrl as peer  # type: ignore[import-not-found]  # an optional peer
    from rdflib import Graph  # type: ignore[import-not-found]  # comes with it

    graph = Graph()
    for file in files:
        graph.parse(file, format="nt")
    semantics = peer.RDFS_Semantics if derives == "RDFS" else peer.OWLRL_Semantics
    return lambda: peer.DeductiveClosure(semantics).expand(graph), lambda: len(graph)


def main(name: str, derives: str, *files: str) -> None:
    """Time reading and deriving, and print both."""
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is not a row
    import_module(name)  # nobody's reasoning
    began = time.perf_counter()
    derive, count = {"maplib": maplib, "reasonable": reasonable, "owlrl": owlrl}[name](
        derives, files
    )
    read = time.perf_counter()
    derive()
    derived = time.perf_counter()
    row = {
        "version": version(name),
        "read_seconds": read - began,
        "closure_seconds": derived - read,
        "file_seconds": derived - began,
        "closure": count(),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(row), file=rows, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
