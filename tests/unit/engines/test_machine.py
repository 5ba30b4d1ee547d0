"""What is said where Java is missing or too old, and how much memory there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inferlake.engines import machine
from inferlake.engines.machine import has_java, java_command, machine_memory, require_java
from inferlake.errors import JavaMissing

GIB = 2**30


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


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
    monkeypatch.setattr(machine.os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(machine, "Path", lambda path: tmp_path / Path(path).name)
    assert machine_memory() == memory
