"""Servers that are not there, a Spark that does not start, and how much memory a local one gets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from inferlake.engines import connect, spark
from inferlake.errors import EngineError

GIB = 2**30


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (connect, spark):
        monkeypatch.setattr(module, "STARTING", 0)


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that is found, and that nothing may start."""
    monkeypatch.setattr(spark, "require_java", lambda: None)
    monkeypatch.setattr(spark, "_child_errors_to", lambda _: pytest.fail("a JVM was started"))


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
        connect.server_session(url)


def test_what_is_no_connect_address_is_told() -> None:
    with pytest.raises(EngineError, match="sc://host/path: no address of a Spark Connect server"):
        connect.server_session("sc://host/path")


@pytest.mark.usefixtures("impatient", "no_jvm")
def test_a_master_that_is_not_there_is_told_before_a_jvm_starts(free_port: int) -> None:
    master = f"spark://127.0.0.1:{free_port},127.0.0.1:{free_port}"
    with pytest.raises(EngineError, match=f"no Spark master answers at {master} .*: start it"):
        spark.spark_session(master, ())


@pytest.mark.parametrize("master", ["spark://host", "spark://host:x", "spark://", "spark://a b:1"])
@pytest.mark.usefixtures("no_jvm")
def test_what_is_no_address_of_a_master_is_told_at_once(master: str) -> None:
    with pytest.raises(EngineError, match=f"{master}: no address of a Spark master, such as"):
        spark.spark_session(master, ())


@pytest.mark.parametrize("master", ["foo", "localhost:7077", "local[", "http://host:7077", ""])
@pytest.mark.usefixtures("no_jvm")
def test_what_is_no_master_at_all_is_told_at_once(master: str) -> None:
    with pytest.raises(EngineError, match="no Spark master; write local"):
        spark.spark_session(master, ())


@pytest.mark.usefixtures("impatient")
def test_one_master_of_several_is_enough(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        spark._require_master(f"spark://127.0.0.1:{free_port},127.0.0.1:{port}")


def test_a_start_that_fails_is_told_without_the_stack_of_the_jvm(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("INFO fine\njava.net.BindException: taken\n\tat a.Error.c(B.java:1)\n")
    failed = RuntimeError(
        "An error occurred while calling X.\n: org.Wrong: cause\n\tat a.B.c(B.java:1)"
    )
    assert spark._start_failure(failed, log) == (
        "Spark could not start: org.Wrong: cause; java.net.BindException: taken; its own words are"
        f" in {log}"
    )
    assert "\n" not in spark._start_failure(RuntimeError(), tmp_path / "none")


def test_local_spark_gets_half_the_memory_and_at_least_a_gibibyte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "5g")
    assert spark.local_settings()["spark.driver.memory"] == "5g"
    monkeypatch.setattr(spark, "machine_memory", lambda: 16 * GIB)
    monkeypatch.delenv("SPARK_DRIVER_MEMORY")
    assert spark.local_settings()["spark.driver.memory"] == "8g"
    monkeypatch.setattr(spark, "machine_memory", lambda: GIB)
    assert spark.local_settings()["spark.driver.memory"] == "1g"
