"""Which engine a piece of work gets, and what is said where Java is missing. Starts none."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from inferlake import session
from inferlake.errors import EngineError, JavaMissing
from inferlake.session import Sessions, has_java, java_command, machine_memory, require_java

GIB = 2**30

# Before they are replaced.
CONNECT_SESSION, SPARK_SESSION = session._connect_session, session._spark_session


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What would have been started: the functions that start something only say so."""
    calls: list[tuple[Any, ...]] = []

    def recorder(name: str) -> Any:
        def start(*args: Any) -> Any:
            calls.append((name, *args))
            return (name, *args)

        return start

    for name in ("_sail_session", "_spark_session", "_connect_session"):
        monkeypatch.setattr(session, name, recorder(name))
    return calls


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with 16 GiB and Java."""
    monkeypatch.setattr(session, "machine_memory", lambda: 16 * GIB)
    monkeypatch.setattr(session, "has_java", lambda: True)
    return monkeypatch


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


# --- the choice ---------------------------------------------------------------------------------


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
    assert opened == [("_spark_session", "spark://host:7077", (("a", "1"), ("b", "2")))]


@pytest.mark.usefixtures("machine")
def test_a_connect_address_is_no_reason_to_start_a_jvm(opened: list[tuple[Any, ...]]) -> None:
    assert Sessions("auto", master="sc://host:15002").for_change(0).name == "spark"
    assert opened == [("_connect_session", "sc://host:15002")]


def test_nothing_starts_before_it_is_asked_for(opened: list[tuple[Any, ...]]) -> None:
    Sessions("spark", master="local[2]")
    assert opened == []


def test_an_unknown_engine_is_refused_with_those_there_are() -> None:
    name: Any = "flink"
    with pytest.raises(EngineError, match="no engine 'flink': choose one of auto, spark, sail"):
        Sessions(name)


# --- servers that are not there -----------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_STARTING", 0)


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that is found, and that nothing may start."""
    monkeypatch.setattr(session, "require_java", lambda: None)
    monkeypatch.setattr(session, "_child_errors_to", lambda _: pytest.fail("a JVM was started"))


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.usefixtures("impatient")
def test_a_connect_server_that_is_not_there_is_told(free_port: int) -> None:
    url = f"sc://127.0.0.1:{free_port}"
    with pytest.raises(EngineError, match=f"no Spark Connect server answers at {url} .*: start it"):
        CONNECT_SESSION(url)


def test_what_is_no_connect_address_is_told() -> None:
    with pytest.raises(EngineError, match="sc://host/path: no address of a Spark Connect server"):
        CONNECT_SESSION("sc://host/path")


@pytest.mark.usefixtures("impatient", "no_jvm")
def test_a_master_that_is_not_there_is_told_before_a_jvm_starts(free_port: int) -> None:
    master = f"spark://127.0.0.1:{free_port},127.0.0.1:{free_port}"
    with pytest.raises(EngineError, match=f"no Spark master answers at {master} .*: start it"):
        SPARK_SESSION(master, ())


@pytest.mark.usefixtures("impatient")
def test_one_master_of_several_is_enough(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        session._require_master(f"spark://127.0.0.1:{free_port},127.0.0.1:{port}")


def test_a_start_that_fails_is_told_without_the_stack_of_the_jvm(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("INFO fine\njava.net.BindException: taken\n\tat a.Error.c(B.java:1)\n")
    failed = RuntimeError(
        "An error occurred while calling X.\n: org.Wrong: cause\n\tat a.B.c(B.java:1)"
    )
    assert session._start_failure(failed, log) == (
        "Spark could not start: org.Wrong: cause; java.net.BindException: taken; its own words are"
        f" in {log}"
    )
    assert "\n" not in session._start_failure(RuntimeError(), tmp_path / "none")


# --- Java ---------------------------------------------------------------------------------------


def fake_java(folder: Path, version: str) -> Path:
    """Write a program that tells a version as Java does, to standard error."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.usefixtures("no_java")
def test_missing_java_is_told_with_the_remedy() -> None:
    assert not has_java()
    with pytest.raises(JavaMissing) as told:
        require_java()
    assert "needs Java 17 or newer" in str(told.value)
    assert "apt-get install" in str(told.value) and "--engine sail" in str(told.value)


@pytest.mark.usefixtures("no_java")
def test_java_home_goes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path = fake_java(tmp_path / "path", "21.0.1")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert java_command() == str(on_path)
    at_home = fake_java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_command() == str(at_home)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    assert java_command() is None


@pytest.mark.parametrize(
    ("version", "known_as"), [("1.8.0_392", "8"), ("11.0.2", "11"), ("9", "9")]
)
@pytest.mark.usefixtures("no_java")
def test_java_that_is_too_old_is_told(
    version: str, known_as: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = fake_java(tmp_path / "old", version)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.defpath}")
    with pytest.raises(JavaMissing, match=rf"17 or newer, and {java} is {known_as}: install"):
        require_java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
@pytest.mark.usefixtures("no_java")
def test_java_that_is_new_enough_will_do(
    version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'new', version).parent}:{os.defpath}")
    require_java()


# --- the machine --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "memory"),
    [("max", 8 * GIB), (str(2 * GIB), 2 * GIB), (str(100 * GIB), 8 * GIB), (None, 8 * GIB)],
)
def test_memory_is_that_of_the_machine_or_of_the_container_around(
    limit: str | None, memory: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 8 * GIB // 4096}
    monkeypatch.setattr(session.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(session, "Path", lambda path: tmp_path / Path(path).name)
    assert machine_memory() == memory


def test_local_spark_gets_half_the_memory_and_at_least_a_gibibyte(
    machine: pytest.MonkeyPatch,
) -> None:
    machine.setenv("SPARK_DRIVER_MEMORY", "5g")
    assert session.local_settings()["spark.driver.memory"] == "5g"
    machine.delenv("SPARK_DRIVER_MEMORY")
    assert session.local_settings()["spark.driver.memory"] == "8g"
    machine.setattr(session, "machine_memory", lambda: GIB)
    assert session.local_settings()["spark.driver.memory"] == "1g"
