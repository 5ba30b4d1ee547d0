"""Every batch leaves the version that a rebuild would, whatever is in it and in whichever order."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from inferlake.errors import InputError
from inferlake.kb import KnowledgeBase
from inferlake.session import Engine
from inferlake.stream.spool import Message

from .conftest import SUB_CLASS, TYPE, ByHand, Triple, assert_right, facts, line, name, put

_DOMAIN = "<http://www.w3.org/2000/01/rdf-schema#domain>"


def _schema(classes: int) -> list[Triple]:
    chain = [(name(f"C{n}"), SUB_CLASS, name(f"C{n + 1}")) for n in range(classes)]
    domains = [(name(f"p{n}"), _DOMAIN, name(f"C{n}")) for n in range(classes)]
    return chain + domains


def _instances(count: int, classes: int) -> list[Triple]:
    typed = [(name(f"i{n}"), TYPE, name(f"C{n % classes}")) for n in range(count)]
    linked = [(name(f"i{n}"), name(f"p{n % classes}"), name(f"i{n + 1}")) for n in range(count)]
    return typed + linked


def test_schema_and_removals_in_every_batch(engine: Engine, tmp_path: Path):
    """The ontology is spread over all batches, before and after the instances it concerns."""
    kb = KnowledgeBase(tmp_path / "kb", engine=engine.name, rules="rdfs")
    by_hand = ByHand(kb, tmp_path)
    dice = random.Random(11)
    classes, batches = 6, 10 if engine.name == "sail" else 2
    coming = _schema(classes) + _instances(40, classes)
    dice.shuffle(coming)
    asserted: set[Triple] = set()
    for number in range(batches):
        new = coming[number * len(coming) // batches : (number + 1) * len(coming) // batches]
        old = dice.sample(sorted(asserted), min(len(asserted), 6))
        both = dice.sample(new, 2)  # the last word on these is that they go
        lines = [f"A {line(t)}" for t in new[::2]] + [line(t) for t in new[1::2]]
        lines += [f"D {line(t)}" for t in (*old, *both)]
        report = by_hand.lines(lines)
        asserted = (asserted | set(new)) - set(old) - set(both)
        assert (report.lines, report.bad) == (len(lines), 0)
        assert_right(by_hand.kb, asserted)
    assert by_hand.kb.verify().ok
    by_hand.writer.close()


def test_files_take_their_turns(by_hand: ByHand, tmp_path: Path):
    """Triples between two patches count between them, in any format."""
    a, b, c = ((name(x), name("p"), name("o")) for x in "abc")
    first = put(tmp_path / "1.nt", [line(a), line(b)])
    second = put(tmp_path / "2.rdfp", [f"D {line(a)}", f"D {line(b)}", f"A {line(c)}"])
    third = put(tmp_path / "3.ttl", [line(b)])
    by_hand.files(first, second, third)
    assert facts(by_hand.kb) == {b, c}
    by_hand.files(third, first, second)
    assert facts(by_hand.kb) == {c}


def test_lines_count_in_the_order_of_partitions_and_offsets(by_hand: ByHand):
    triple = (name("a"), name("p"), name("o"))
    add, delete = f"A {line(triple)}".encode(), f"D {line(triple)}".encode()
    by_hand.lines([Message(add, 0, 0), Message(delete, 1, 0)])
    assert facts(by_hand.kb) == set()
    by_hand.lines([Message(delete + b"\r\n" + add, 0, 0)])
    assert facts(by_hand.kb) == {triple}
    by_hand.lines([Message(add, 7, 0), Message(delete, 3, 1)])
    assert facts(by_hand.kb) == set(), "partition 1 comes after partition 0"


def test_plain_lines_are_added_and_transactions_do_not_wait(by_hand: ByHand):
    a, b = ((name(x), name("p"), '"A line. With <all> sorts"@en') for x in "ab")
    report = by_hand.lines(["TX .", line(a), "# a comment", "", f"A {line(b)}", "TC ."])
    assert facts(by_hand.kb) == {a, b}
    assert (report.lines, report.bad) == (2, 0)
    report = by_hand.lines(["TX .", f"D {line(a)}", "TA ."])
    assert facts(by_hand.kb) == {b} and report.bad == 1
    assert "takes nothing back" in by_hand.letters()[0]


def test_blank_nodes_belong_to_their_stream(by_hand: ByHand, tmp_path: Path):
    by_hand.lines([f"_:x {name('p')} {name('o')} ."])
    by_hand.lines([f"_:x {name('q')} {name('o')} ."])
    ((node,),) = {(subject,) for subject, _, _ in facts(by_hand.kb)}
    other = ByHand(KnowledgeBase(tmp_path / "kb2", engine="sail", rules="none"), tmp_path)
    other.lines([f"_:x {name('p')} {name('o')} ."])
    assert node not in {subject for subject, _, _ in facts(other.kb)}
    by_hand.lines([f"D {node} {name('p')} {name('o')} .", f"D _:x {name('q')} {name('o')} ."])
    assert facts(by_hand.kb) == set()
    other.writer.close()


def test_a_batch_counts_once(by_hand: ByHand, tmp_path: Path):
    """A replayed batch changes nothing, even if its files are gone, or others are there."""
    a, b = ((name(x), name("p"), name("o")) for x in "ab")
    file = put(tmp_path / "a.nt", [line(a), "nonsense"])
    done = by_hand.files(file)
    assert not done.repeated and len(by_hand.letters()) == 1
    by_hand.reopen()
    put(file, [line(b), "other nonsense", "more"])
    again = by_hand.files(file, number=done.batch)
    assert again.repeated and again.version == done.version == by_hand.kb.version
    file.unlink()
    assert by_hand.files(file, number=done.batch).repeated
    assert facts(by_hand.kb) == {a}
    assert len(by_hand.letters()) == 1
    summary = by_hand.writer.summary
    assert (summary.batches, summary.repeated) == (2, 2), "of the stream that was opened again"


def test_a_batch_that_failed_leaves_its_letters_once(by_hand: ByHand, monkeypatch):
    """Letters are written before the commit: the batch that is tried again writes them again."""
    apply = by_hand.writer.target.apply

    def crash(change):
        apply(change)
        raise OSError("the power went")

    object.__setattr__(by_hand.writer.target, "apply", crash)
    with pytest.raises(OSError, match="power"):
        by_hand.lines(["oops", line((name("a"), name("p"), name("o")))])
    object.__setattr__(by_hand.writer.target, "apply", apply)
    assert len(by_hand.letters()) == 1
    by_hand.reopen()
    assert by_hand.lines(["oops"], number=0).repeated
    assert len(by_hand.letters()) == 1


def test_all_bad_lines_are_kept(by_hand: ByHand, tmp_path: Path):
    """Not only those that errors show; in a file that is large enough for the engine to split."""
    good = [line((name(f"i{n}"), name("p"), f'"{"x" * 60}"')) for n in range(2_000)]
    long = "y" * 600
    bad = [f'{name(n)} {name("p")} "{long}{n}" nonsense .' for n in range(20)]
    right = f'{name(3)} {name("p")} "{long}" .'
    lines = [*good, *bad, right, bad[3], "not a line at all"]
    random.Random(3).shuffle(lines)
    report = by_hand.files(put(tmp_path / "large.nt", lines))
    assert (report.lines, report.bad) == (len(lines), 22)
    letters = [json.loads(one) for one in by_hand.letters()]
    assert len(letters) == 22
    assert facts(by_hand.kb, "asserted") >= {(name(3), name("p"), f'"{long}"')}
    for one in letters:
        assert one["source"] == str(tmp_path / "large.nt") and one["message"]
        assert one["text"] == lines[one["line"] - 1]


def test_letters_say_where_lines_were(by_hand: ByHand):
    good = line((name("a"), name("p"), name("o")))
    report = by_hand.lines(
        [Message(f"{good}\n{good} x".encode(), 41, 2), Message(b"A \xff\xfe .", 5, 3)]
    )
    assert (report.lines, report.bad) == (3, 2)
    letters = [json.loads(one) for one in by_hand.letters()]
    places = [(one["source"], one["partition"], one["offset"], one["batch"]) for one in letters]
    assert places == [("a topic", 2, 41, 0), ("a topic", 3, 5, 0)]
    assert letters[0]["text"] == f"{good} x"


def test_a_file_that_cannot_be_read_is_a_letter_of_its_own(by_hand: ByHand, tmp_path: Path):
    a = (name("a"), name("p"), name("o"))
    good = put(tmp_path / "good.nt", [line(a)])
    small, large = tmp_path / "cut.nt.gz", tmp_path / "large.nt.gz"
    small.write_bytes(b"\x1f\x8b\x08\x00nonsense")
    large.write_bytes(b"\x1f\x8b\x08\x00" + random.Random(1).randbytes(200_000))
    report = by_hand.files(good, small, large)
    assert report.bad == 2 and facts(by_hand.kb) == {a}
    sources = {json.loads(one)["source"] for one in by_hand.letters()}
    assert sources == {str(small), str(large)}
    assert by_hand.files(small).bad == 1, "a batch of nothing else is a batch all the same"


def test_of_a_file_that_is_cut_short_nothing_counts(by_hand: ByHand, tmp_path: Path):
    """Whatever comes with it: beside a patch, files of lines are read by another way."""
    a, b = (name("a"), name("p"), name("o")), (name("b"), name("p"), name("o"))
    good, patch = put(tmp_path / "good.nt", [line(a)]), put(tmp_path / "b.rdfp", [f"A {line(b)}"])
    whole = "".join(f"{line((name(f'n{n}'), name('p'), name('o')))}\n" for n in range(20_000))
    cut = tmp_path / "cut.nt.gz"
    cut.write_bytes(gzip.compress(whole.encode())[:-1000])
    assert by_hand.files(good, cut).bad == 1 and facts(by_hand.kb) == {a}
    assert by_hand.files(patch, cut).bad == 1 and facts(by_hand.kb) == {a, b}
    for letter in map(json.loads, by_hand.letters()):
        assert (letter["source"], letter["line"]) == (str(cut), None)


def test_on_error_fail_changes_nothing(tmp_path: Path):
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="rdfs")
    strict = ByHand(kb, tmp_path, on_error="fail")
    with pytest.raises(InputError, match=r"two\.nt:2:"):
        strict.files(put(tmp_path / "two.nt", [line((name("a"), name("p"), name("o"))), "bad"]))
    assert not (tmp_path / "kb" / "facts").exists() and not strict.letters()
    mended = put(tmp_path / "two.nt", [line((name("a"), name("p"), name("o")))])
    assert strict.files(mended, number=0).added == 1
    strict.writer.close()


@pytest.mark.slow
def test_folds_bound_the_files_and_what_a_batch_reads(tmp_path: Path):
    """What comes is as much as what goes: what a batch reads must not grow with their number."""
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="rdfs")
    stream = ByHand(kb, tmp_path, fold_after=4)
    batches, size = 40, 20

    def some(number: int) -> list[Triple]:
        return [(name(f"i{number}-{n}"), TYPE, name("C0")) for n in range(size)]

    stream.lines([line(t) for t in _schema(3)])
    for number in range(batches):
        gone = [f"D {line(t)}" for t in some(number - 4)] if number >= 4 else []
        stream.lines([line(t) for t in some(number)] + gone)
        if stream.writer._folding is not None:
            stream.writer._folding.join()
    assert not stream.writer.fold_failures
    reports = list(stream.writer.reports)
    assert stream.writer.summary.folds > 0
    assert sum(one.files_folded for one in reports) > 0
    assert max(one.files_stored for one in reports) <= 32
    early, late = reports[8:16], reports[-8:]
    assert max(one.files_read for one in late) <= max(one.files_read for one in early) + 2
    assert max(one.rows_read for one in late) <= 2 * max(one.rows_read for one in early)
    left = {t for number in range(batches - 4, batches) for t in some(number)}
    assert_right(kb, left | set(_schema(3)))
    assert len(kb._store.terms.table.snapshot().files) <= 8
    stream.writer.close()
