"""The process that one case runs in: reads the case, calls its function, prints its rows."""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib import import_module


def main() -> None:
    """Run the case on standard input; rows are lines of JSON on standard output."""
    rows = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what engines and libraries print is not a row
    spec = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    module, function = spec["measure"].split(".")
    measure = getattr(import_module(f"inferlake.bench.{module}"), function)
    for row in measure(**spec["named"], **spec["given"]):
        print(json.dumps(row, default=str), file=rows)
    rows.close()
    sys.stdout.flush()
    # An engine's threads may outlive its work, and nothing is left to save.
    os._exit(0)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
