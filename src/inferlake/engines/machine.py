"""What this machine has: memory, processors, Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from inferlake.errors import JavaMissing

# Spark 4 is compiled for Java 17.
OLDEST_JAVA = 17

JAVA_REMEDY = (
    "install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17) or point JAVA_HOME at it; or use --engine sail, which needs no Java"
)


def machine_memory() -> int:
    """Return the memory in bytes that this machine, or the container around it, has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(total, int(text)) if text.isdigit() else total


def peak_memory() -> int:
    """Return the largest resident size in bytes of this process and of its children, added up.

    That is what Sail, a local JVM and its Python workers took; of a cluster nothing is known here,
    and where there is no /proc the answer is 0.
    """
    me = Path("/proc/self")
    if not me.exists():
        return 0
    children = [Path("/proc", pid) for pid in _descendants(me.resolve().name)]
    return sum(map(_high_water, [me, *children]))


def resident_memory(pid: int) -> int:
    """Return the bytes of memory that a process has now; 0 where nothing tells."""
    words = _words(Path("/proc", str(pid), "status"))
    return int(words[words.index("VmRSS:") + 1]) * 1024 if "VmRSS:" in words else 0


def _descendants(pid: str) -> list[str]:
    tasks = Path("/proc", pid, "task").glob("*/children")
    direct = [child for task in tasks for child in _words(task)]
    return direct + [other for child in direct for other in _descendants(child)]


def _high_water(process: Path) -> int:
    words = _words(process / "status")
    return int(words[words.index("VmHWM:") + 1]) * 1024 if "VmHWM:" in words else 0


def _words(file: Path) -> list[str]:
    """Return the words in a file of /proc, none if its thread or process has just ended."""
    try:
        return file.read_text().split()
    except OSError:
        return []


def cores() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def java_command() -> str | None:
    """Return the `java` that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if java.is_file() else None
    return shutil.which("java")


def has_java() -> bool:
    """Tell whether Apache Spark could start here."""
    return java_command() is not None


def require_java() -> None:
    """Raise `JavaMissing`, with the remedy, unless a Java new enough for Spark is there."""
    java = java_command()
    if java is None:
        raise JavaMissing(f"Apache Spark needs Java {OLDEST_JAVA} or newer: {JAVA_REMEDY}")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    if found and int(found[1]) < OLDEST_JAVA:
        raise JavaMissing(
            f"Apache Spark needs Java {OLDEST_JAVA} or newer, and {java} is {found[1]}:"
            f" {JAVA_REMEDY}"
        )
