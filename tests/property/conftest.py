"""One profile for all property tests: the same examples on every run, and no deadline.

A step of an engine takes milliseconds or seconds, so the tests make few examples, each of them a
batch of many terms or lines that the engine judges at once.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "inferlake",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("inferlake")
