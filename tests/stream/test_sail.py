"""A stream that goes on with a fresh Sail, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferlake.kb import KnowledgeBase

from .conftest import SUB_CLASS, TYPE, ByHand, assert_right, line, name


@pytest.mark.slow
def test_batches_go_on_with_a_fresh_sail(tmp_path: Path):
    kb = KnowledgeBase(tmp_path / "kb", engine="sail", rules="rdfs")
    stream = ByHand(kb, tmp_path)
    sail = stream.stream.target.sail
    asserted = {(name("C"), SUB_CLASS, name("D"))}
    stream.lines([line(one) for one in asserted])
    sail.growth = -(2**40)  # whatever it has is too much
    for n in range(2):
        new = {
            (name(f"i{n}-{k}"), TYPE, name("C")) for k in range(3_000)
        }  # for the engine to split
        report = stream.lines([*(line(one) for one in new), "bad line"])
        asserted |= new
        assert (report.engine, report.bad) == ("sail", 1)
        assert sail.renewals == n + 1
        sail._at_first = 0
    child = sail._child
    assert child is not None and child.poll() is None
    assert_right(kb, asserted)
    stream.writer.close()
    assert child.poll() is not None, "it ends with the stream"
