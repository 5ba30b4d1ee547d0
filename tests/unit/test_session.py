"""Which engine a piece of work gets. Starts none."""

from __future__ import annotations

from typing import Any

import pytest

from inferlake import session
from inferlake.errors import EngineError
from inferlake.session import Sessions

GIB = 2**30


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What would have been started: the functions that start something only say so."""
    calls: list[tuple[Any, ...]] = []

    def recorder(name: str) -> Any:
        def start(*args: Any) -> Any:
            calls.append((name, *args))
            return (name, *args)

        return start

    for name in ("sail_session", "spark_session", "server_session"):
        monkeypatch.setattr(session, name, recorder(name))
    return calls


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with 16 GiB and Java."""
    monkeypatch.setattr(session, "machine_memory", lambda: 16 * GIB)
    monkeypatch.setattr(session, "has_java", lambda: True)
    return monkeypatch


@pytest.mark.usefixtures("machine")
def test_work_that_fits_in_memory_goes_to_sail_and_the_rest_to_spark() -> None:
    sessions = Sessions("auto")
    assert sessions.for_change(0).name == "sail"
    assert sessions.for_change(4 * GIB).name == "sail"
    assert sessions.for_change(4 * GIB + 1).name == "spark"
    assert sessions.for_reading().name == "sail"


def test_without_java_everything_goes_to_sail(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(session, "has_java", lambda: False)
    assert Sessions("auto").for_change(1000 * GIB).name == "sail"


@pytest.mark.usefixtures("machine")
def test_an_engine_that_is_named_is_used_whatever_the_size() -> None:
    assert Sessions("sail").for_change(1000 * GIB).name == "sail"
    assert Sessions("spark").for_change(0).name == "spark"


@pytest.mark.usefixtures("machine")
def test_a_session_that_is_given_is_used_for_everything(opened: list[tuple[Any, ...]]) -> None:
    given: Any = object()
    engine = Sessions("auto", given).for_change(0)
    assert (engine.name, engine.session) == ("spark", given)
    assert opened == []


@pytest.mark.usefixtures("machine")
def test_a_master_is_used_even_for_small_work(opened: list[tuple[Any, ...]]) -> None:
    conf = {"b": "2", "a": "1"}
    assert Sessions("auto", master="spark://host:7077", conf=conf).for_reading().name == "spark"
    assert opened == [("spark_session", "spark://host:7077", (("a", "1"), ("b", "2")))]


@pytest.mark.usefixtures("machine")
def test_a_connect_address_is_no_reason_to_start_a_jvm(opened: list[tuple[Any, ...]]) -> None:
    assert Sessions("auto", master="sc://host:15002").for_change(0).name == "spark"
    assert opened == [("server_session", "sc://host:15002")]


def test_nothing_starts_before_it_is_asked_for(opened: list[tuple[Any, ...]]) -> None:
    Sessions("spark", master="local[2]")
    assert opened == []


def test_an_unknown_engine_is_refused_with_those_there_are() -> None:
    name: Any = "flink"
    with pytest.raises(EngineError, match="no engine 'flink': choose one of auto, spark, sail"):
        Sessions(name)
