"""Shared fixtures: both engines, once each, and the optional data beside the project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferlake.engines.machine import has_java
from inferlake.kb import KnowledgeBase
from inferlake.session import Engine, Sessions

# Tests are many small plans: the JVM's second compiler would cost more time than it saves.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
# Several JVMs are at work at a time, those of killed processes among them: none may take half of
# the machine, as one alone would.
os.environ.setdefault("SPARK_DRIVER_MEMORY", "3g")

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(params=["sail", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn; the sessions behind them are started once for the whole run."""
    if request.param == "spark" and not has_java():
        pytest.skip("Apache Spark needs Java, and there is none here")
    return Sessions(request.param).for_reading()


@pytest.fixture
def session(engine: Engine):
    """The PySpark session of each engine in turn."""
    return engine.session


@pytest.fixture
def kb(engine: Engine, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base that does not exist yet, without rules, on each engine in turn."""
    yield KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="none")


@pytest.fixture
def shared_data() -> Path:
    """The public data sets beside the project; tests that need them skip where they are absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the public data sets at {SHARED_DATA}")
    return SHARED_DATA
