"""One profile for all property tests: the same examples on every run, and no deadline.

A step of an engine takes milliseconds or seconds, so the tests make few examples, each of them a
batch of many terms or lines that the engine judges at once. `bin/test-long` takes other examples,
by a seed for each part of its run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "inferlake",
    derandomize="INFERLAKE_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("inferlake")
