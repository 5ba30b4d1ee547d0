"""Structured Streaming: folders, frames, restarts, two streams at once, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from inferlake.errors import EngineError, InputError
from inferlake.kb import KnowledgeBase
from inferlake.stream.running import RunningStream

from .conftest import SUB_CLASS, TYPE, Triple, assert_right, facts, line, name, put

pytestmark = pytest.mark.slow


@pytest.fixture
def kb(streaming: Any, tmp_path: Path) -> KnowledgeBase:
    """A knowledge base whose batches run on Sail, and are planned by Spark."""
    (tmp_path / "in").mkdir()
    return KnowledgeBase(tmp_path / "kb", rules="rdfs")


def _finished(kb: KnowledgeBase, source: Any, **options: Any) -> RunningStream:
    """Run a stream over what is there now."""
    running = kb.stream(source, trigger="available-now", **options).start()
    assert running.await_termination(120)
    return running


def _typed(n: int) -> Triple:
    return (name(f"i{n}"), TYPE, name("C"))


def test_a_folder_from_start_to_restart(kb: KnowledgeBase, tmp_path: Path):
    """Files of three formats, in batches of two; then more, for a stream that starts again."""
    folder = tmp_path / "in"
    schema = (name("C"), SUB_CLASS, name("D"))
    put(folder / "a file.nt", [line(_typed(0)), "oops"], at=0)
    put(folder / "b.rdfp", [f"A {line(_typed(1))}", f"D {line(_typed(0))}"], at=1)
    put(folder / "c.ttl", [line(schema)], at=2)
    put(folder / "passed-over.tmp", ["not looked at"], at=3)
    first = _finished(kb, folder, max_files=2)
    assert [one.batch for one in first.reports] == [0, 1]
    assert {one.engine for one in first.reports} == {"sail"}
    assert (first.summary.lines, first.summary.bad) == (5, 1)
    assert_right(kb, {_typed(1), schema})
    put(folder / "d.nt", [line(_typed(2))], at=4)
    second = _finished(kb, folder)
    assert [(one.batch, one.added, one.repeated) for one in second.reports] == [(2, 1, False)]
    assert_right(kb, {_typed(1), _typed(2), schema})
    assert not _finished(kb, folder).reports, "nothing came"
    # What streams keep is in nobody's way.
    kb.compact()
    kb.vacuum()
    assert kb.stats().asserted == 3 and kb.verify().ok
    assert len(_letters(kb)) == 1
    # The checkpoint gone, the source is read from the beginning, and its last words count again.
    shutil.rmtree(next((tmp_path / "kb" / "streams").iterdir()))
    again = _finished(kb, folder)
    assert again.summary.lines == 6 and again.summary.repeated == 0
    assert_right(kb, {_typed(1), _typed(2), schema})


def test_batches_on_spark(kb: KnowledgeBase, tmp_path: Path):
    """The same work on the engine of large batches, from inside a query of Spark's."""
    on_spark = KnowledgeBase(tmp_path / "kb", engine="spark", rules="rdfs")
    schema = (name("C"), SUB_CLASS, name("D"))
    put(tmp_path / "in" / "a.nt", [line(_typed(0)), line(schema)], at=0)
    put(tmp_path / "in" / "b.rdfp", [f"D {line(_typed(0))}", f"A {line(_typed(1))}"], at=1)
    done = _finished(on_spark, tmp_path / "in", max_files=1)
    assert [one.engine for one in done.reports] == ["spark", "spark"]
    assert_right(kb, {_typed(1), schema})


def _letters(kb: KnowledgeBase) -> list[dict[str, Any]]:
    files = sorted(Path(kb.path, "streams").glob("*/dead-letters/*.jsonl"))
    return [json.loads(one) for file in files for one in file.read_text().splitlines()]


def test_a_batch_that_spark_does_not_know_to_be_done(kb: KnowledgeBase, tmp_path: Path):
    """The crash between our commit and Spark's: the batch comes again, and is recognised."""
    put(tmp_path / "in" / "a.nt", [line(_typed(0)), "bad"])
    version = _finished(kb, tmp_path / "in", name="s").summary.version
    commits = tmp_path / "kb" / "streams" / "s" / "checkpoint" / "commits"
    for file in commits.iterdir():
        file.unlink()
    (tmp_path / "in" / "a.nt").unlink()
    (only,) = _finished(kb, tmp_path / "in", name="s").reports
    assert only.repeated and only.version == version == kb.version
    assert len(_letters(kb)) == 1


@pytest.mark.parametrize("broken", ["metadata", "offsets/0", "sources/0/0"])
@pytest.mark.parametrize("text", ["", "v1\n{"])
def test_a_checkpoint_of_a_stream_that_had_not_begun(
    broken: str, text: str, kb: KnowledgeBase, tmp_path: Path
):
    put(tmp_path / "in" / "a.nt", [line(_typed(0))])
    _finished(kb, tmp_path / "in", name="s")
    shutil.rmtree(tmp_path / "kb" / "facts")  # as before the first commit
    shutil.rmtree(tmp_path / "kb" / "terms")
    checkpoint = tmp_path / "kb" / "streams" / "s" / "checkpoint"
    shutil.rmtree(checkpoint / "commits")
    (checkpoint / broken).write_text(text)
    kb = KnowledgeBase(tmp_path / "kb", rules="rdfs")
    assert _finished(kb, tmp_path / "in", name="s").summary.added == 1
    assert facts(kb) == {_typed(0)}


def test_a_plan_that_was_not_written_to_its_end(kb: KnowledgeBase, tmp_path: Path):
    """Of a stream that has begun: the batch is planned again, with all that it was to have."""
    put(tmp_path / "in" / "a.nt", [line(_typed(0))], at=0)
    _finished(kb, tmp_path / "in", name="s")
    checkpoint = tmp_path / "kb" / "streams" / "s" / "checkpoint"
    (checkpoint / "offsets" / "1").write_text('v1\n{"batch')
    (checkpoint / "metadata").write_text("")
    put(tmp_path / "in" / "b.nt", [line(_typed(1))], at=1)
    assert _finished(kb, tmp_path / "in", name="s").summary.added == 1
    assert facts(kb) == {_typed(0), _typed(1)}


def test_two_streams_into_one_knowledge_base(kb: KnowledgeBase, tmp_path: Path):
    """From a folder and from a frame, at the same time, with folds beside them."""
    spark = kb._sessions.for_streaming().session
    (tmp_path / "lines").mkdir()
    frame = spark.readStream.text(str(tmp_path / "lines"))
    streams = [
        kb.stream(tmp_path / "in", trigger="100ms", fold_after=2).start(),
        kb.stream(frame, name="frame", trigger="100ms", fold_after=2).start(),
    ]
    expected: set[Triple] = set()
    for n in range(4):
        put(tmp_path / "in" / f"{n}.nt", [line(_typed(n))], at=n)
        put(tmp_path / "lines" / str(n), [line(_typed(100 + n)), f"A {line(_typed(200 + n))}"])
        expected |= {_typed(n), _typed(100 + n), _typed(200 + n)}
        for one in streams:
            one.process_all_available()
        assert facts(kb) == expected
    done = [one.stop() for one in streams]
    assert [one.added for one in done] == [4, 8]
    assert sum(one.folds for one in done) > 0
    assert kb.verify().ok
    # One source by two streams: both read all of it, and what is there already stays once.
    assert _finished(kb, tmp_path / "in", name="another").summary.added == 0
    assert facts(kb) == expected


def test_a_stream_is_stopped_after_the_batch_in_hand(kb: KnowledgeBase, tmp_path: Path):
    begun, go = threading.Event(), threading.Event()
    stream = kb.stream(tmp_path / "in", trigger="50ms", name="s")
    apply = stream.target.apply

    def slowly(change: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return apply(change)

    object.__setattr__(stream.target, "apply", slowly)
    put(tmp_path / "in" / "a.nt", [line(_typed(0))], at=0)
    running = stream.start()
    assert begun.wait(60)
    put(tmp_path / "in" / "b.nt", [line(_typed(1))], at=1)
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    time.sleep(0.3)
    assert stopping.is_alive(), "it waits for the batch"
    go.set()
    stopping.join(60)
    assert not running.is_active and facts(kb) == {_typed(0)}
    assert _finished(kb, tmp_path / "in", name="s").summary.added == 1
    assert facts(kb) == {_typed(0), _typed(1)}


def test_a_failure_ends_the_stream_with_its_own_error(kb: KnowledgeBase, tmp_path: Path):
    put(tmp_path / "in" / "a.nt", [line(_typed(0)), "bad line"])
    running = kb.stream(tmp_path / "in", trigger="50ms", on_error="fail").start()
    with pytest.raises(InputError, match=r"(?s)a\.nt:2:.*--on-error dead-letter"):
        running.await_termination(60)
    put(tmp_path / "in" / "a.nt", [line(_typed(0))])  # mended in its place
    assert _finished(kb, tmp_path / "in", on_error="fail").summary.added == 1


def test_what_cannot_be_a_stream(kb: KnowledgeBase, tmp_path: Path, streaming: Any):
    rates = streaming.readStream.format("rate").load()
    lines = rates.selectExpr("STRING(value) AS value")
    cases = {
        "not a stream": lambda: kb.stream(streaming.range(1)),
        "no column value2": lambda: kb.stream(lines, column="value2"),
        "is bigint": lambda: kb.stream(rates),
        "Sail or Spark Connect": lambda: kb.stream(
            KnowledgeBase(tmp_path / "x", engine="sail")._sessions.for_reading().session.range(1)
        ),
        "a list is no stream": lambda: kb.stream([1]),  # type: ignore[arg-type]
        "no trigger": lambda: kb.stream(lines, trigger="soon"),
        "no name for a stream": lambda: kb.stream(lines, name="../x"),
        "on_error is": lambda: kb.stream(lines, on_error="skip"),  # type: ignore[arg-type]
        "no such folder": lambda: kb.stream(tmp_path / "absent"),
        "no source of a stream": lambda: kb.stream("http://example.org/x"),
        "write kafka://": lambda: kb.stream("kafka://nowhere"),
        "is no checkpoint": lambda: kb.stream(lines, checkpoint=tmp_path / "other"),
    }
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    for expected, make in cases.items():
        with pytest.raises(InputError, match=expected):
            make().start()
    if not os.environ.get("INFERLAKE_KAFKA"):  # else Spark has the connector
        with pytest.raises(EngineError, match="spark-sql-kafka"):
            kb.stream("kafka://localhost:9092/topic").start()
    with pytest.raises(EngineError, match="needs Apache Spark"):
        KnowledgeBase(tmp_path / "x", engine="sail").stream(tmp_path).start()
    assert not (tmp_path / "kb" / "facts").exists()


def test_whose_checkpoint_it_is(kb: KnowledgeBase, tmp_path: Path):
    put(tmp_path / "in" / "a.nt", [line(_typed(0))])
    outside = tmp_path / "checkpoint"
    running = kb.stream(tmp_path / "in", checkpoint=outside, trigger="50ms").start()
    running.process_all_available()
    with pytest.raises(InputError, match="another stream is at work"):
        kb.stream(tmp_path / "in", checkpoint=outside).start()
    running.stop()
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(InputError, match="checkpoint of a stream from"):
        kb.stream(tmp_path / "elsewhere", checkpoint=outside).start()
    other = KnowledgeBase(tmp_path / "kb2", rules="rdfs")
    with pytest.raises(InputError, match="none of its batches"):
        other.stream(tmp_path / "in", checkpoint=outside).start()


def test_a_topic_of_kafka(streaming: Any, tmp_path: Path):
    """Against a broker at INFERLAKE_KAFKA, with the connector in Spark's packages."""
    broker = os.environ.get("INFERLAKE_KAFKA")
    if not broker:
        pytest.skip("names no broker: INFERLAKE_KAFKA=host:port")
    kb = KnowledgeBase(tmp_path / "kb", rules="rdfs")
    topic = f"inferlake-{os.getpid()}"
    rows = [(line(_typed(0)),), (f"A {line(_typed(1))}\nD {line(_typed(0))}",), ("oops",)]
    for row in rows:  # one by one: their order is what is tested
        frame = streaming.createDataFrame([row], "value STRING")
        frame.write.format("kafka").option("kafka.bootstrap.servers", broker).option(
            "topic", topic
        ).save()
    done = _finished(kb, f"kafka://{broker}/{topic}")
    assert (done.summary.lines, done.summary.bad) == (4, 1)
    assert facts(kb) == {_typed(1)}
    (letter,) = _letters(kb)
    assert (letter["offset"], letter["partition"], letter["text"]) == (2, 0, "oops")
    assert not _finished(kb, f"kafka://{broker}/{topic}").reports
