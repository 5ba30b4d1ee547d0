"""Processes to kill and to race."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .processes import Loader, Nursery, Pair


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """The process that loaders are forked from, started once."""
    started = Nursery()
    yield started
    started.close()


@pytest.fixture(scope="module")
def _loaders(nursery: Nursery) -> Iterator[list[Loader]]:
    started = [nursery.loader(), nursery.loader()]
    yield started
    for loader in started:
        loader.kill()


@pytest.fixture
def pair(nursery: Nursery, _loaders: list[Loader]) -> Iterator[Pair]:
    """Two processes, the same for the tests of one module, unless a test fails midway."""
    yield _loaders[0], _loaders[1]
    for number, loader in enumerate(_loaders):
        if not loader.idle:
            loader.kill()
            _loaders[number] = nursery.loader()
