"""Streams with a window: after every batch the state is that of the window, and nothing else."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from inferlake.errors import InputError
from inferlake.evaluate.reference import closure
from inferlake.kb import KnowledgeBase
from inferlake.rules.load import compiled, read_rules
from inferlake.rules.model import TRIPLE
from inferlake.session import Engine
from inferlake.stream.report import BatchReport
from inferlake.stream.sources import Lines
from inferlake.stream.spool import Message

from .conftest import SUB_CLASS, TYPE, ByHand, Triple, assert_right, facts, line, name, put

only_sail = pytest.mark.parametrize("engine", ["sail"], indirect=True)

WINDOW = timedelta(milliseconds=10)
# The time of files that `put` lets appear `at=0`, in milliseconds.
EPOCH = 1_700_000_000_000


def _typed(n: object, kind: str = "C0") -> Triple:
    return (name(f"i{n}"), TYPE, name(kind))


def _event(triple: Triple, time: int | None, verb: str = "", offset: int = 0) -> Message:
    return Message(f"{verb} {line(triple)}".encode(), offset, event=time)


class Windowed(ByHand):
    """A stream by hand with a window, beside a model that is plain Python."""

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        *background: Triple,
        profile: str = "rdfs",
        **options: Any,
    ) -> None:
        self.profile = profile
        kb = KnowledgeBase(folder / "kb", engine=engine.name, rules=profile)
        put(folder / "background.nt", map(line, background))
        kb.load(folder / "background.nt")
        # Events have their own times, unless a test says otherwise.
        super().__init__(kb, folder, **{"window": WINDOW, "time_column": "ts"} | options)
        self.background = set(background)
        self.until: dict[Triple, int] = {}
        self.clock: int | None = None

    def says(self, time: int) -> None:
        """Let the wall clock say a time."""
        self.writer.now = lambda: time

    def closed(self) -> set[Triple]:
        stated = {(TRIPLE, triple) for triple in self.background | self.until.keys()}
        found = closure(compiled(read_rules([self.profile])), stated)
        return {args for relation, args in found if relation == TRIPLE}

    def step(self, messages: list[Message], number: int | None = None) -> BatchReport:
        """Make a batch of events, and compare everything with the model."""
        report = self.lines(messages, number)
        times = [one.event for one in messages if one.event is not None]
        self.clock = max([*times, *([] if self.clock is None else [self.clock])], default=None)
        assert self.clock is not None
        before = self.closed()
        self.until = {t: end for t, end in self.until.items() if end > self.clock}
        expired, late = len(before - self.closed()), 0
        for one in messages:
            words = one.text.decode().split()
            gone, triple = words[0] == "D", tuple(words[-4:-1])
            assert one.event is not None
            if gone:
                self.until.pop(triple, None)
                self.background.discard(triple)
            elif one.event + 10 <= self.clock:
                late += 1
            else:
                end = one.event + 10
                self.until[triple] = max(end, self.until.get(triple, end))
        assert (report.expired, report.late, report.clock) == (expired, late, self.clock)
        self.check()
        return report

    def check(self) -> None:
        assert_right(self.kb, self.background | self.until.keys(), self.profile)
        rows = [tuple(row)[:4] for row in self.kb.expiring().collect()]
        asserted = {row[:3]: row[3] for row in rows if row[3] is not None}
        assert asserted == {t: e for t, e in self.until.items() if t not in self.background}


@only_sail
def test_every_batch_leaves_what_is_in_the_window(engine: Engine, tmp_path: Path):
    """Schema and data come, come again, come late and are removed, in any order."""
    dice = random.Random(5)
    chain = [(name(f"C{n}"), SUB_CLASS, name(f"C{n + 1}")) for n in range(4)]
    stream = Windowed(engine, tmp_path, *chain[:2], _typed("stays"))
    pool = [_typed(n, f"C{n % 4}") for n in range(10)] + chain[2:]
    for number in range(8):
        now = 100 + 4 * number
        some = dice.choices(pool, k=8)
        messages = [_event(t, now - dice.randrange(14)) for t in some]
        if number % 3:
            gone = dice.choices(pool, k=2)
            messages += [_event(t, now, "D") for t in gone] + [_event(some[0], now, "A")]
        messages.append(_event(_typed(f"new{number}"), now))
        dice.shuffle(messages)
        stream.step(messages)
    assert stream.writer.summary.expired > 0 and stream.writer.summary.late > 0
    assert stream.kb.verify().ok
    assert stream.step([_event(_typed("last"), 1_000)]).expired > 0
    assert facts(stream.kb, "asserted") == {*chain[:2], _typed("stays"), _typed("last")}
    stream.writer.close()


@only_sail
def test_what_comes_again_stands_until_the_later_time(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path)
    stream.step([_event(_typed(1), 100), _event(_typed(2), 100)])
    stream.step([_event(_typed(1), 105)])
    assert stream.step([_event(_typed(3), 110)]).expired == 1
    assert facts(stream.kb) == {_typed(1), _typed(3)}
    # Once removed, it has its new time, though an earlier word gave it a later one.
    stream.step([_event(_typed(3), 112), _event(_typed(3), 112, "D"), _event(_typed(3), 108, "A")])
    assert stream.until[_typed(3)] == 118
    stream.writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["spark"], indirect=True)
def test_the_same_on_spark(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path, _typed(0), profile="none")
    again = [_event(_typed(3), 104), _event(_typed(3), 104, "D"), _event(_typed(3), 101, "A")]
    stream.step([_event(_typed(1), 100), _event(_typed(2), 94), *again])
    assert stream.step([_event(_typed(4), 110)]).expired == 1
    stream.writer.close()


@only_sail
def test_a_replayed_batch_changes_nothing(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path, _typed(0))
    batch = [_event(_typed(1), 100)]
    version = stream.step(batch).version
    stream.step([_event(_typed(2), 109)])
    stream.reopen()
    again = stream.lines(batch, number=0)
    assert again.repeated and (again.expired, again.late) == (0, 0)
    assert stream.kb.version == again.version == version + 1
    stream.number = 1
    stream.check()
    stream.writer.close()


@only_sail
def test_what_could_not_be_read_is_kept_as_it_came(engine: Engine, tmp_path: Path):
    """A graph gives way to the time, and is in the dead letters all the same."""
    stream = Windowed(engine, tmp_path)
    subject, other = name("a"), "<http://example.org/p> <http://example.org/o>"
    bad = [
        f'{subject} {name("p")} "x"^^<no type> <http://example.org/g> .  # why',
        f"A {subject} {other} _:g x .",
        "oops <inferlake:at:7>",
        f"{subject} <relative> {name('o')} .",
    ]
    good = [
        f"{subject} {other} <http://example.org/g#1> .",
        f"{name('b')} {other} _:g .",
        f"<{name('c')[1:]}<http://example.org/p><http://example.org/o>.",
        f"A {name('d')} {other} {name('g')} .",
        "# a comment",
    ]
    messages = [Message(one.encode(), n, event=100) for n, one in enumerate(bad + good)]
    timeless = Message(f"{name('e')} {other} .".encode(), 20)
    report = stream.lines([*messages, timeless, _event(_typed("no"), None, "D", 21)])
    assert {s for s, _, _ in facts(stream.kb)} == {subject, name("b"), name("c"), name("d")}
    assert {row.until for row in stream.kb.expiring().collect()} == {110}
    letters = {one["offset"]: one for one in map(json.loads, stream.letters())}
    assert report.bad == len(letters) == len(bad) + 1
    assert [letters[n]["text"] for n in range(3)] == bad[:3]
    assert letters[20]["text"] == timeless.text.decode()
    assert letters[20]["message"] == "no time of the event: it is null"
    # Plain lines alone take the way of the engine, if they are many.
    many = [_event(_typed(n), None if n == 7 else 101, offset=n) for n in range(3_000)]
    assert stream.lines(many).bad == 1
    assert json.loads(stream.letters()[-1])["offset"] == 7
    untils = [row.until for row in stream.kb.expiring().collect()]
    assert (untils.count(110), untils.count(111)) == (4, 2_999)
    stream.writer.close()


@pytest.mark.parametrize("size", [1, 4_000], ids=["small", "large"])
@only_sail
def test_files_are_of_the_time_when_they_were_written(engine: Engine, tmp_path: Path, size: int):
    """Each file has its own, in every format, alone or among changes; the clock is the wall's."""
    stream = Windowed(engine, tmp_path, time_column=None, window=timedelta(seconds=10))
    stream.says(EPOCH + 9_000)
    some = {
        n: [_typed(f"{n}-{m}") for m in range(size if n < 2 else 1)] for n in (0, 1, 2, 3, 4, 5)
    }
    early = put(tmp_path / "early.nt", map(line, some[0]), at=-5)
    kept = put(tmp_path / "kept.nq", (f"{line(t)[:-1]}{name('g')} ." for t in some[1]), at=0)
    turtle = put(tmp_path / "kept.ttl", map(line, some[2]), at=4)
    report = stream.files(early, kept, turtle)
    assert (report.late, report.clock) == (size, EPOCH + 9_000), "one file is too old"
    expected = dict.fromkeys(some[1], EPOCH + 10_000)
    assert _untils(stream.kb) == expected | {some[2][0]: EPOCH + 14_000}
    # Among changes, and with one that is newer than can be.
    stream.says(EPOCH + 12_000)
    first = put(tmp_path / "1.nt", map(line, some[3]), at=5)
    patch = put(tmp_path / "2.rdfp", [f"D {line(some[3][0])}", f"A {line(some[4][0])}"], at=11)
    update = put(tmp_path / "3.ru", [f"INSERT DATA {{ {line(some[5][0])} }}"], at=500)
    report = stream.files(first, patch, update)
    assert report.clock == EPOCH + 12_000 and report.expired == len(some[1])
    left = {some[2][0]: 14_000, some[4][0]: 21_000, some[5][0]: 22_000}
    assert _untils(stream.kb) == {t: EPOCH + e for t, e in left.items()}
    stream.says(EPOCH + 21_500)
    many = [put(tmp_path / f"many{n}.nt", [line(_typed(n))], at=13 + n) for n in range(9)]
    stream.files(*many)
    assert _untils(stream.kb)[_typed(8)] == EPOCH + 31_000
    assert stream.kb.verify().ok
    stream.writer.close()


def _untils(kb: KnowledgeBase) -> dict[Triple, int]:
    return {tuple(row)[:3]: row.until for row in kb.expiring().collect()}


@only_sail
def test_nothing_comes_and_facts_go(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path, _typed("stays"), time_column=None)
    writer = stream.writer
    stream.says(100)
    stream.lines([_event(_typed(1), 95), _event(_typed(2), 98)])
    version = stream.kb.version
    for time in (100, 104):
        stream.says(time)
        assert writer.expire_if_due() is None and stream.kb.version == version
    stream.says(106)
    report = writer.expire_if_due()
    assert report is not None and report.batch is None
    assert (report.expired, report.clock, report.version) == (1, 106, version + 1)
    assert "1 fact expired" in str(report)
    assert writer.expire_if_due() is None
    # Another writer's doing is seen, and a removal is not waited for.
    (tmp_path / "gone.nt").write_text(line(_typed(2)))
    stream.kb.update(remove=tmp_path / "gone.nt")
    stream.says(200)
    assert writer.expire_if_due() is None
    assert facts(stream.kb) == {_typed("stays")}
    summary = writer.summary
    assert (summary.batches, summary.expired, summary.clock) == (1, 1, 106)
    writer.stop()
    assert writer.expire_if_due() is None
    writer.close()


@only_sail
def test_a_pipe_that_falls_silent(engine: Engine, tmp_path: Path):
    """From end to end by the wall clock: facts go while the pipe is open and says nothing."""
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="none")
    read, write = os.pipe()
    reports: list[BatchReport] = []
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb", buffering=0) as sink:
        stream = kb.stream("-", trigger="50ms", window=timedelta(seconds=1))
        running = stream.start(pipe=source, listener=reports.append)
        sent = 0
        while running.summary.expired < 1:
            if running.summary.late == sent:  # at first, and where a machine is too slow
                sink.write(f"{line(_typed(0))}\n".encode())
                sent += 1
            assert not running.await_termination(0.05)
        done = running.stop()
        sink.close()
    assert (done.added, done.expired, done.batches) == (1, 1, sent) and not done.expiry_failures
    assert reports[-1].batch is None
    assert facts(kb) == set() and kb.history()[0].operation == "expire"


@only_sail
def test_an_expiry_that_fails_is_told_and_tried_again(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path, time_column=None, trigger="10ms")
    stream.says(100)
    stream.lines([_event(_typed(1), 100)])
    stream.says(200)
    apply, failures = stream.writer.target.apply, [OSError("disk full")] * 3

    def failing(change: Any) -> Any:
        if failures:
            raise failures.pop()
        return apply(change)

    object.__setattr__(stream.writer.target, "apply", failing)
    stream.writer.keep_time()
    while stream.writer.summary.expired < 1:
        assert stream.writer._expiring is not None
        stream.writer._expiring.join(0.02)
    stream.writer.close()
    assert stream.writer.summary.expiry_failures == ("disk full",)
    assert "could not expire between batches: disk full" in str(stream.writer.summary)
    assert facts(stream.kb) == set()


@only_sail
def test_events_alone_move_the_clock_of_a_time_column(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path)
    stream.says(10_000)
    stream.step([_event(_typed(1), 100)])
    stream.writer.keep_time()
    assert stream.writer._expiring is None
    # Without any time in it, a batch does not move it either.
    assert stream.lines([_event(_typed(2), None)]).clock == 100
    stream.writer.close()


@only_sail
def test_messages_of_kafka_have_their_times(engine: Engine, tmp_path: Path):
    stream = Windowed(engine, tmp_path, time_column=None, window=timedelta(hours=1))
    schema = "value STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    time = int(moment.timestamp() * 1000)
    times = [moment, moment + timedelta(minutes=1), datetime(2999, 1, 1, tzinfo=UTC)]
    rows = [(line(_typed(n)), 0, n, one) for n, one in enumerate(times)]
    frame = engine.session.createDataFrame(rows, schema)
    given = Lines(frame, timed=True)
    batch = given.batch(0, given.frame(engine.session), stream.writer.state)
    stream.says(time + 1)
    report = stream.writer.write(0, lambda: batch)
    untils, hour = _untils(stream.kb), 3_600_000
    assert [untils[_typed(n)] for n in range(2)] == [time + hour, time + hour + 60_000]
    assert untils[_typed(2)] < 32_500_000_000_000, "nothing came later than its batch"
    assert report.clock == time + 1
    stream.writer.close()


def test_what_cannot_be_a_window(tmp_path: Path):
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="none")
    cases: dict[str, dict[str, Any]] = {
        "of use with a window only": {"time_column": "ts"},
        "a millisecond or more": {"window": timedelta(seconds=-1)},
        "not 600; write timedelta": {"window": 600},
        "one of a streaming DataFrame": {"window": WINDOW, "time_column": "ts"},
    }
    for expected, options in cases.items():
        for source in ("-", tmp_path):
            with pytest.raises(InputError, match=expected):
                kb.stream(source, **options).start()
    assert not (tmp_path / "kb").exists()


@pytest.mark.slow
def test_a_folder_that_falls_silent(streaming: Any, tmp_path: Path):
    """The same with files, planned by Spark; after a restart the clock goes on."""
    kb = KnowledgeBase(tmp_path / "kb", rules="rdfs")
    schema = (name("C0"), SUB_CLASS, name("C1"))
    put(tmp_path / "background.nt", [line(schema)])
    kb.load(tmp_path / "background.nt")
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder / "new.nt", [line(_typed(1))], at=10**9)  # from the future: of the present
    put(folder / "old.nt", [line(_typed(2))])
    window = timedelta(seconds=2)
    running = kb.stream(folder, trigger="available-now", window=window).start()
    assert running.await_termination(120)
    assert (running.summary.added, running.summary.late, running.summary.expired) == (1, 1, 0)
    assert_right(kb, {schema, _typed(1)})
    running = kb.stream(folder, trigger="100ms", window=window).start()
    while running.summary.expired < 2:
        assert not running.await_termination(0.05)
    assert running.stop().batches == 0
    assert_right(kb, {schema})
    assert kb.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["BIGINT(ts)", "timestamp_millis(ts)"])
def test_a_time_column_from_end_to_end(kind: str, streaming: Any, tmp_path: Path):
    """A streaming DataFrame, over a background that stays, and a restart."""
    kb = KnowledgeBase(tmp_path / "kb", rules="rdfs")
    schema = (name("C0"), SUB_CLASS, name("C1"))
    put(tmp_path / "background.nt", [line(schema)])
    kb.load(tmp_path / "background.nt")
    folder = tmp_path / "in"
    folder.mkdir()
    frame = streaming.readStream.schema("value STRING, ts BIGINT").json(str(folder))
    frame = frame.selectExpr("value", f"{kind} AS seen", "value AS word")

    def run(number: int, *rows: tuple[str, int | None]) -> BatchReport:
        put(folder / str(number), (json.dumps({"value": v, "ts": t}) for v, t in rows), at=number)
        options: Any = {"time_column": "seen", "window": WINDOW, "name": "s"}
        running = kb.stream(frame, trigger="available-now", **options).start()
        assert running.await_termination(120) and running.last is not None
        return running.last

    first = run(0, (line(_typed(1)), 100), (line(_typed(2)), 104), (line(_typed(3)), None))
    assert (first.added, first.bad, first.clock) == (2, 1, 104)
    assert_right(kb, {schema, _typed(1), _typed(2)})
    second = run(1, (f"A {line(_typed(4))}", 111), (f"D {line(_typed(2))}", 111))
    assert (second.expired, second.removed, second.clock) == (2, 1, 111)
    assert_right(kb, {schema, _typed(4)})
    assert run(2, (line(_typed(5)), 101)).late == 1
    assert_right(kb, {schema, _typed(4)})
    assert kb.verify().ok
    for expected, column in {"has no column": "nowhere", "not a time": "word"}.items():
        with pytest.raises(InputError, match=expected):
            kb.stream(frame, time_column=column, window=WINDOW, name="t").start()
