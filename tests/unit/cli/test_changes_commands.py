"""The commands that change a store and tell what changed, as a user meets them. Sail alone runs."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from inferlake.cli import app
from inferlake.cli.app import cli
from inferlake.kb import KnowledgeBase

EX = "http://example.org/"
PREFIXES = f"""@prefix : <{EX}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
ZOO = ":Cat rdfs:subClassOf :Animal . :tom a :Cat . :kit a :Cat . :a :p 1 , 2 , 3 , 4 , 5 , 6 ."
NEVER = "[never] false :- [?x, a, <http://example.org/Cat>] ."


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The last line, which says what was done, without seconds, memory and rounds."""
        last = self.err.splitlines()[-1]
        return re.sub(r"; peak memory [\d.]+ GB| \([^()]* on [^()]*\)$| in \d+ rounds?", "", last)


Run = Callable[..., Ended]
Put = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one version, under rdfs, to be copied."""
    folder = tmp_path_factory.mktemp("zoo")
    (folder / "zoo.ttl").write_text(PREFIXES + ZOO)
    KnowledgeBase(folder / "kb", engine="sail").load(folder / "zoo.ttl", rules="rdfs")
    return folder / "kb"


@pytest.fixture
def kb(zoo: Path, tmp_path: Path) -> Path:
    shutil.copytree(zoo, tmp_path / "kb")
    return tmp_path / "kb"


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """A function that writes a file, Turtle with its prefixes, and returns its path."""

    def write(name: str, text: str) -> Path:
        text = PREFIXES + text if name.endswith(".ttl") else text
        (tmp_path / name).write_text(f"{text}\n")
        return tmp_path / name

    return write


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs the program and returns its exit code and what it wrote."""

    def run(*args: str | Path) -> Ended:
        words = ["inferlake", "--engine", "sail", *map(str, args)]
        monkeypatch.setattr(sys, "argv", words)
        code = 0
        try:
            app.main()
        except SystemExit as end:
            assert isinstance(end.code, int)
            code = end.code
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run


def version(kb: Path) -> int:
    return KnowledgeBase(kb, engine="sail").version


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["load", "update", "rules", "stream", "changes", "forget", "expire"]
)
def test_help_names_every_option_and_fits_a_screen(command: str) -> None:
    result = CliRunner().invoke(cli, [command, "--help"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(f"Usage: cli {command} [OPTIONS] KB")
    for option in cli.commands[command].params:
        if option.param_type_name == "option":
            assert all(name in result.output for name in option.opts)


@pytest.mark.parametrize(
    "args",
    [
        ("update", "kb", "--algorithm", "guess"),
        ("update", "kb", "--remove"),
        ("update", "kb", "--max-rounds", "-1"),
        ("update", "kb", "more.nt"),
        ("update", "kb", "--window", "soon"),
        ("update", "kb", "--at", "noon"),
        ("expire", "kb", "--now", "2026-13-01"),
        ("rules", "kb", "--algorithm", "fast"),
        ("changes", "kb", "--layer", "every"),
        ("changes", "kb", "--from", "first"),
        ("changes", "kb", "--follow", "--to", "3"),
        ("stream", "kb"),
        ("stream", "kb", "-", "--on-error", "skip"),
        ("forget", "kb"),
        ("forget", "kb", "--subject"),
        ("forget",),
    ],
    ids=" ".join,
)
def test_wrong_options_are_told(args: tuple[str, ...], run: Run) -> None:
    ended = run(*args)
    assert (ended.code, ended.out) == (2, "")
    assert "Error: " in ended.err and "inferlake: " not in ended.err


# --- where nothing can be done -------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("update", "--add", "a.ttl"),
        ("update", "--rules", "rdfs"),
        ("rules",),
        ("rules", "--add", "rdfs"),
        ("changes",),
        ("changes", "-o", "out.rdfp"),
        ("forget", "--subject", EX),
        ("expire",),
    ],
    ids=" ".join,
)
def test_a_store_that_is_not_there_is_told_and_not_created(
    args: tuple[str, ...], run: Run, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put("a.ttl", ":a :p :b .")
    ended = run(args[0], "none", *args[1:])
    assert (ended.code, ended.out) == (3, "")
    assert "none: no store there; `inferlake load` creates one" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.ttl"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("update",), 2, "nothing to change: say what to add, to remove, a patch, or other rules"),
        (("update", "--add", "no.nt"), 2, "no such file or folder: "),
        (("update", "--remove", "bad.ttl"), 2, "Nothing was changed. Mend the input"),
        (("update", "--patch", "a.ttl"), 2, "with --add or --remove"),
        (("update", "--rules", "no.dl"), 5, "neither a profile"),
        (("rules", "--remove", "owl2rl"), 2, "no rules owl2rl in the store; it has: rdfs"),
        (
            ("rules", "--add", "none"),
            2,
            "none stands for no rules: remove those there are (rdfs)",
        ),
        (("rules", "--add", "bad.dl"), 5, "R101"),
        (("changes", "--from", "1", "--to", "0"), 2, "version 1 is later than 0: swap them"),
        (("changes", "--from", "7"), 3, "no version 7; `inferlake history` lists those"),
        (("changes", "-o", "out.nt"), 2, "changes are written to .rdfp or .rdfp.gz"),
        (("forget", "--subject", "tom"), 2, "'tom' is no IRI: write it in full, for example"),
        (("forget", "--subject", '"Tom"'), 2, "is no IRI"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_told_and_changes_nothing(
    args: tuple[str, ...], code: int, message: str, run: Run, kb: Path, put: Put, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    put("a.ttl", ":a :p :b .")
    put("bad.ttl", ":a :p .")
    put("bad.dl", "[?x, :p")
    ended = run("-q", args[0], kb, *args[1:])
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("inferlake: ") and message in ended.err
    assert version(kb) == 1


# --- update --------------------------------------------------------------------------------------


def test_an_update_tells_what_it_did_and_nothing_else(run: Run, kb: Path, put: Put) -> None:
    def update(*args: str | Path) -> str:
        ended = run("update", kb, *args)
        assert (ended.code, ended.out) == (0, "")
        return ended.line

    tom, more = put("tom.ttl", ":tom a :Cat ."), put("more.ttl", ":tom a :Cat . :zoe a :Cat .")
    assert update("--remove", tom) == (
        "removed 1 triple of 1 read from 1 file; withdrew 1 derived fact by bf (1 triple of 9"
        " goes); version 2"
    )
    assert update("--remove", tom) == (
        "changed no triple of 1 read from 1 file; 1 triple to remove was not asserted; version 3"
    )
    assert update("--add", more) == (
        "added 2 triples of 2 read from 1 file; derived 2 by rdfs; version 4"
    )
    assert update("--add", more) == "changed no triple of 2 read from 1 file; version 5"
    assert update("--remove", more, "--add", tom) == (
        "removed 1 triple of 3 read from 2 files; withdrew 1 derived fact by bf (1 triple of 10"
        " goes); version 6"
    )
    patch = put("a.rdfp", f"D <{EX}tom> <{EX}none> 1 .\nD <{EX}x> <{EX}y> 1 .\nA <a:a> <a:b> <a:c>")
    assert update("--patch", patch, "--remove", tom, "--algorithm", "dred") == (
        "added 1 and removed 1 triple of 4 read from 2 files; 2 triples to remove were not asserted"
        "; withdrew 1 derived fact by dred (asked for); version 7"
    )
    assert update("--rules", "none") == (
        "changed the rules to none; withdrew 1 derived fact by rebuild (no rule stays); version 8"
    )
    assert update("--add", tom, "--rules", "rdfs") == (
        "added 1 triple of 1 read from 1 file; derived 2 by rdfs; version 9"
    )


def test_what_was_derived_and_is_asserted_now_is_told(run: Run, kb: Path, put: Put) -> None:
    file = put("a.ttl", ":tom a :Animal .")
    assert run("update", kb, "--add", file).line == (
        "added 1 triple of 1 read from 1 file; 1 derived fact is asserted now; version 2"
    )
    assert run("update", kb, "--remove", file).line == (
        "removed 1 triple of 1 read from 1 file; withdrew 0 derived facts by bf (1 triple of 10"
        " goes); derived 1 by rdfs; version 3"
    )


def test_an_update_as_json(run: Run, kb: Path, put: Put) -> None:
    files = put("a.ttl", ":tom a :Cat . :x a :Cat ."), put("b.ttl", ":zoe a :Cat .")
    ended = run("--json", "update", kb, "--remove", files[0], "--add", files[1])
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    numbers = ("version", "read", "added", "removed", "not_asserted", "derived", "withdrawn")
    assert [told[name] for name in numbers] == [2, 3, 1, 1, 1, 1, 1]
    assert (told["operation"], told["algorithm"], told["rules"]) == ("update", "bf", ["rdfs"])
    assert (told["engine"], told["reason"]) == ("sail", "1 triple of 9 goes")
    assert run("-q", "update", kb, "--add", files[0]) == (0, "", "")


def test_repetitions_and_what_is_added_too_are_not_missing(run: Run, kb: Path, put: Put) -> None:
    """What is not asserted is counted by triple, and only if it was to go."""
    gone = put("gone.nt", f"<{EX}a> <{EX}no> <{EX}b> .\n" * 3 + f"<{EX}a> <{EX}q> <{EX}b> .")
    more = put("more.nt", f"<{EX}a> <{EX}q> <{EX}b> .")
    told = json.loads(run("--json", "update", kb, "--remove", gone, "--add", more).out)
    assert (told["removed"], told["not_asserted"], told["added"]) == (0, 1, 1)


def test_bad_statements_and_contradictions_are_listed(run: Run, kb: Path, put: Put) -> None:
    bad = put("bad.nt", f"<{EX}zoe> <{EX}p> <{EX}b> .\njunk")
    ended = run("update", kb, "--add", bad, "--on-error", "skip")
    assert ended.code == 0
    assert f"skipped {bad}:2" in ended.err
    assert "added 1 triple of 1 read from 1 file; skipped 1 bad statement; version 2" in ended.line

    rules = put("never.dl", NEVER)
    ended = run("rules", kb, "--add", rules)
    assert ended.code == 0
    assert ended.err.count("contradiction: ") == 2 and "2 contradictions" in ended.line
    zoe = put("zoe.ttl", ":zoe a :Cat .")
    ended = run("update", kb, "--add", zoe, "--fail-on-inconsistency")
    assert ended.code == 1, "and the version is there all the same"
    assert version(kb) == 4
    ended = run("--json", "update", kb, "--remove", zoe, "--fail-on-inconsistency")
    assert ended.code == 1
    assert len(json.loads(ended.out)["contradictions"]) == 2


# --- rules ---------------------------------------------------------------------------------------


def test_rules_are_listed_added_and_removed(run: Run, kb: Path, put: Put) -> None:
    mine = put("mine.dl", f"[?y, <{EX}q>, ?x] :- [?x, a, ?y] .")
    assert run("rules", kb) == (0, "rdfs\n", "")
    assert json.loads(run("--json", "rules", kb).out) == ["rdfs"]
    assert version(kb) == 1, "to list them changes nothing"

    ended = run("rules", kb, "--add", mine)
    assert (ended.code, ended.out) == (0, "")
    assert ended.line == (
        f"changed the rules to rdfs, {mine}; derived 4 by rdfs, {mine}; version 2"
    )
    assert run("rules", kb).out == f"rdfs\n{mine}\n"
    told = run("rules", kb, "--remove", mine, "--algorithm", "rebuild").line
    assert told == (
        "changed the rules to rdfs; rebuilt (asked for): 2 derived facts, 6 before, by rdfs;"
        " version 3"
    )
    ended = run("--json", "rules", kb, "--remove", "rdfs")
    assert json.loads(ended.out)["operation"] == "rules"
    assert run("rules", kb) == (0, "", f"{kb}: no rules; what is loaded is all there is\n")
    assert run("-q", "rules", kb) == (0, "", "")
    assert json.loads(run("--json", "rules", kb).out) == []


def test_rules_that_are_there_already_change_nothing(run: Run, kb: Path) -> None:
    told = run("rules", kb, "--add", "rdfs").line
    assert told == "changed the rules to rdfs; version 2"


# --- changes -------------------------------------------------------------------------------------


def test_changes_go_to_standard_output_or_a_file(
    run: Run, kb: Path, put: Put, tmp_path: Path
) -> None:
    run("update", kb, "--remove", put("a.ttl", ":tom a :Cat ."))
    type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    deleted = {f"D <{EX}tom> {type_} <{EX}{kind}> ." for kind in ("Cat", "Animal")}
    for args in ((), ("-o", "-"), ("--from", "1", "--to", "2")):
        ended = run("changes", kb, *args)
        lines = ended.out.splitlines()
        assert (lines[0], set(lines[1:-1]), lines[-1]) == ("TX .", deleted, "TC .")
        assert ended.line == "wrote 2 changes from version 1 to 2"
    assert set(run("changes", kb, "--layer", "asserted").out.splitlines()[1:-1]) == {
        f"D <{EX}tom> {type_} <{EX}Cat> ."
    }
    assert run("--json", "changes", kb).out.startswith("TX ."), "it is the data itself"

    out = tmp_path / "out.rdfp"
    ended = run("changes", kb, "--from", "0", "-o", out)
    assert (ended.code, ended.out) == (0, "")
    assert ended.line == "wrote 9 changes from version 0 to 2"
    assert out.read_text().count("\nA ") == 9
    ended = run("--json", "changes", kb, "-o", f"{out}.gz")
    told = json.loads(ended.out)
    assert (told["operation"], told["triples"], told["version"]) == ("changes", 2, 2)
    assert told["from_version"] == 1
    assert gzip.decompress(Path(f"{out}.gz").read_bytes()).count(b"\nD ") == 2
    assert run("changes", kb, "--from", "2").out == "TX .\nTC .\n"


# --- forget --------------------------------------------------------------------------------------


def test_forget_tells_what_goes_what_went_and_what_is_left_to_do(run: Run, kb: Path) -> None:
    tom = f"{EX}tom"
    told = run("forget", kb, "--subject", tom, "--dry-run").line
    assert told == f"would forget 1 asserted triple and 1 derived fact that name <{tom}>"
    assert run("-q", "forget", kb, "--subject", tom, "--dry-run").out.startswith(told)
    assert version(kb) == 1
    assert run("forget", kb, "--subject", f"<{tom}>").line == (
        f"forgot 1 asserted triple and 1 derived fact that named <{tom}>; version 3;"
        " `inferlake vacuum` deletes what older versions know"
    )
    assert run("forget", kb, "--subject", f"{EX}nobody").line == (
        f"nothing names <{EX}nobody> (IRIs are written in full); still version 3"
    )
    ended = run("vacuum", kb, "--older-than", "0")
    assert "deleted 1 term" in ended.err
    again = run("forget", kb, "--subject", tom).line
    assert again == f"nothing names <{tom}> (IRIs are written in full); still version 6"


def test_forget_as_json(run: Run, kb: Path) -> None:
    ended = run("--json", "forget", kb, "--subject", f"{EX}kit", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    told = json.loads(ended.out)
    assert (told["operation"], told["dry_run"], told["subject"]) == ("forget", True, f"<{EX}kit>")
    assert (told["asserted"], told["derived"], told["left"], told["version"]) == (1, 1, 0, 1)


# --- windows -------------------------------------------------------------------------------------


def test_triples_expire_and_the_clock_is_told(run: Run, kb: Path, put: Put) -> None:
    new = put("new.ttl", ":leo a :Cat .")
    ended = run("update", kb, "--add", new, "--window", "10m", "--at", "2026-01-01T12:00:00Z")
    assert ended.line.startswith("added 1 triple of 1 read from 1 file; derived 1 by rdfs")
    ended = run("expire", kb, "--now", "2026-01-01T12:09:59Z")
    assert ended.line == "0 facts expired by 2026-01-01 12:09:59.000 UTC; version 3"
    ended = run("update", kb, "--add", new, "--window", "10m", "--at", "1767268800000")
    assert ended.line == "changed no triple of 1 read from 1 file; version 4"
    ended = run("expire", kb, "--now", "2026-01-01 12:10")
    assert ended.line == "2 facts expired by 2026-01-01 12:10:00.000 UTC; version 5"
    ended = run("update", kb, "--add", new, "--window", "10m", "--at", "2026-01-01T12:00Z")
    assert "1 event came too late" in ended.line
    assert "clock" in run("stats", kb).out
    assert "clock at 2026-01-01 12:10:00.000 UTC" in run("history", kb).out
    assert json.loads(run("--json", "expire", kb, "--now", "0").out)["clock"] == 1767269400000
