"""A Spark cluster of a master and two workers, each a process of its own, all on the loopback."""

from __future__ import annotations

import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from inferlake.engines.machine import has_java

_SPARK_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 60
_LOAD_SECONDS = 200

# These processes live for seconds: compiling hot code well would cost more than it gains.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# What the driver does: load two files, export them, and then what it must not be able to do.
_DRIVER = """
import json, sys
from inferlake.kb import KnowledgeBase

kb_path, master, conf, out, *files = sys.argv[1:]
kb = KnowledgeBase(kb_path, engine="spark", master=master, conf=json.loads(conf))
report = kb.load(*files)
kb.export(out)
try:
    kb.facts().collect()
    refused = ""
except Exception as exc:
    refused = str(exc)
print(json.dumps({"added": report.added, "refused": refused}))
"""


class Daemon:
    """A process of the cluster, with its log read as it comes."""

    def __init__(self, folder: Path, *command: str) -> None:
        env = {
            **os.environ,
            "SPARK_HOME": str(_SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _SHORT_LIVED,
        }
        self._process = subprocess.Popen(
            [str(_SPARK_HOME / "bin" / "spark-class"), *command],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Executors are children of workers: the whole group goes at the end.
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def wait(self, pattern: str) -> re.Match[str]:
        """Return the first match of `pattern` in a line of the log not seen yet."""
        while True:
            line = self._lines.get(timeout=_START_SECONDS)
            self._said.append(line)
            assert line, "".join(self._said)
            if found := re.search(pattern, line):
                return found

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_START_SECONDS)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers of one core each, and yield the master's address."""
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as stack:
        master = Daemon(folder, f"{deploy}.master.Master", *here)
        stack.callback(master.close)
        address = master.wait(r"Starting Spark master at (spark://\S+)")[1]
        for number in range(2):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"))
            worker = Daemon(folder, f"{deploy}.worker.Worker", *here, *size, address)
            stack.callback(worker.close)
        for _ in range(2):
            master.wait("Registering worker")
        yield address


def _incompressible_lines(count: int, kind: str) -> list[str]:
    chance = random.Random(kind)
    subject, text = f"<http://example.org/{kind}/{{}}>", "<http://example.org/text>"
    return [f'{subject.format(n)} {text} "{chance.randbytes(350).hex()}" .' for n in range(count)]


@pytest.mark.skipif(not has_java(), reason="Apache Spark needs Java, and there is none here")
def test_workers_load_what_is_too_big_for_the_driver(tmp_path: Path) -> None:
    files = {"nt": _incompressible_lines(3000, "nt"), "ttl": _incompressible_lines(2000, "ttl")}
    for suffix, lines in files.items():
        (tmp_path / f"input.{suffix}").write_text("\n".join(lines) + "\n")
    conf = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": _SHORT_LIVED,
        "spark.executor.extraJavaOptions": _SHORT_LIVED,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        # Less than a third of either file's text, compressed: whoever collected it would fail.
        "spark.driver.maxResultSize": "256k",
        # Broadcasts pass through the driver too, up to a limit of their own.
        "spark.sql.autoBroadcastJoinThreshold": "64k",
    }
    out = tmp_path / "exported.nt"
    inputs = [str(tmp_path / f"input.{suffix}") for suffix in files]
    with cluster(tmp_path) as master:
        driver = [sys.executable, "-c", _DRIVER, str(tmp_path / "kb"), master, json.dumps(conf)]
        run = subprocess.run(
            [*driver, str(out), *inputs],
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=_LOAD_SECONDS,
        )
        assert run.returncode == 0, run.stderr
    expected = sorted(line for lines in files.values() for line in lines)
    assert sorted(out.read_text().splitlines()) == expected
    told = json.loads(run.stdout)
    assert told["added"] == len(expected)
    assert "spark.driver.maxResultSize" in told["refused"]
