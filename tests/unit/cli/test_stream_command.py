"""`inferlake stream` from a pipe, and what it prints."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from inferlake.cli.app import main
from inferlake.kb import KnowledgeBase

_LINE = "<http://example.org/{}> <http://example.org/p> <http://example.org/o> .\n"


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run the command on lines, and return where the knowledge base is."""

    def run(text: str, *before: str, after: tuple[str, ...] = ()) -> Path:
        kb = tmp_path / "kb"
        args = ["inferlake", "--engine", "sail", *before, "stream", str(kb), "-", *after]
        monkeypatch.setattr("sys.argv", args)
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        main()
        return kb

    return run


def test_a_line_a_batch_and_the_totals(stream, capsys: pytest.CaptureFixture[str]):
    lines = "".join(_LINE.format(n) for n in range(3)) + "oops\n"
    kb = stream(lines, after=("--max-lines", "2", "--trigger", "available-now", "--rules", "none"))
    out, err = capsys.readouterr()
    begun, first, second, total = err.splitlines()
    assert out == "" and begun == "following -"
    assert first.startswith("batch 0: 2 lines; asserted +2 -0, derived +0 -0; version 1 (")
    assert second.startswith("batch 1: 2 lines, 1 bad; asserted +1 -0")
    assert "2 batches of 4 lines; 1 bad line in " in total and "(p95)" in total
    assert KnowledgeBase(kb, engine="sail").stats().asserted == 3


def test_json_lines(stream, capsys: pytest.CaptureFixture[str]):
    stream(_LINE.format(1), "--json", after=("--trigger", "once"))
    out, err = capsys.readouterr()
    batch, total = map(json.loads, out.splitlines())
    assert err == ""
    assert (batch["batch"], batch["added"], batch["engine"]) == (0, 1, "sail")
    assert (total["batches"], total["lines"], total["bad"]) == (1, 1, 0)
    assert total["median"] == total["p95"] == batch["seconds"]


def test_a_window(stream, capsys: pytest.CaptureFixture[str]):
    kb = stream(_LINE.format(1), "--json", after=("--trigger", "once", "--window", "10m"))
    batch, total = map(json.loads, capsys.readouterr().out.splitlines())
    (row,) = KnowledgeBase(kb, engine="sail").expiring().collect()
    assert 0 < row.until - batch["clock"] <= 600_000
    assert (batch["expired"], batch["late"], total["expired"], total["late"]) == (0, 0, 0, 0)
    with pytest.raises(SystemExit):
        stream(_LINE.format(1), after=("--window", "soon"))
    assert "no length of time" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        stream(_LINE.format(1), after=("--window", "0"))
    assert "a millisecond or more" in capsys.readouterr().err


def test_nothing_came(stream, capsys: pytest.CaptureFixture[str]):
    kb = stream("")
    assert capsys.readouterr().err.endswith(": nothing came\n")
    assert not (kb / "facts").exists() and not list(kb.rglob("stream.json"))


def test_a_bad_line_may_end_it(stream, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        stream("oops\n", after=("--on-error", "fail"))
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "standard input, offset 1: no statement" in err and "--on-error dead-letter" in err
