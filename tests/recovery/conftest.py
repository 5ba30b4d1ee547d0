"""Processes to kill and to race."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .processes import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """The process that loaders are forked from, started once."""
    started = Nursery()
    yield started
    started.close()
