"""The command line: help, arguments, and how failures end. No engine is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from inferlake import errors
from inferlake.cli import app
from inferlake.cli.app import Duration, cli

_MAIN = "from inferlake.cli.app import main; main()"


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("path", list(commands(cli)), ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help(path: tuple[str, ...], option: str) -> None:
    result = run(*path, option)
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")
    # A sentence on what the command does, and every option explained.
    assert len(result.output.splitlines()[2].strip()) > 10
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert all(one.help for one in options)


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").output.startswith("inferlake, version ")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0", timedelta()),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        ("0d", timedelta()),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, length: timedelta) -> None:
    assert Duration().convert(text, None, None) == length


@pytest.mark.parametrize("text", ["7", "d", "-1d", "1.5d", "7 d", "7y", "", "7dd"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    result = run("vacuum", "kb", f"--older-than={text}")
    assert result.exit_code == 2
    assert "no length of time; write 30s, 10m, 12h, 7d or 0" in result.output


@pytest.mark.parametrize("conf", ["spark.x", "", "a b"])
def test_a_setting_without_a_value_is_refused(conf: str) -> None:
    result = run("--conf", conf, "stats", "kb")
    assert result.exit_code == 2
    assert "is no setting; write --conf key=value" in result.output


def test_settings_may_have_equals_signs_in_them() -> None:
    assert app._settings(("a=b=c", "d=")) == {"a": "b=c", "d": ""}


@pytest.mark.parametrize(
    "args",
    [
        ("--engine", "flink", "stats", "kb"),
        ("load", "kb"),
        ("load", "kb", "a.nt", "--on-error", "ignore"),
        ("export", "kb", "--layer", "other"),
        ("stats", "kb", "--version", "first"),
        ("generate", "lubm", "--universities", "0", "-o", "x"),
        ("explode",),
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_told_with_the_usage(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert "Usage: " in result.output and "Error: " in result.output


# --- how a command ends -------------------------------------------------------------------------


def ended(monkeypatch: pytest.MonkeyPatch, *args: str | Path) -> int:
    """Run the program with `args` and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["inferlake", *map(str, args)])
    with pytest.raises(SystemExit) as end:
        app.main()
        sys.exit(0)
    assert isinstance(end.value.code, int)
    return end.value.code


def failing(monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    """Let opening a knowledge base fail."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise failure

    monkeypatch.setattr("inferlake.kb.KnowledgeBase", fail)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (errors.InputError("a.nt:1: wrong"), 2),
        (errors.NotAStore("kb: no store there"), 3),
        (errors.JavaMissing("no Java"), 4),
        (errors.InferlakeError("other"), 1),
    ],
)
def test_a_foreseen_failure_is_one_message_and_its_exit_code(
    failure: errors.InferlakeError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(monkeypatch, failure)
    assert ended(monkeypatch, "history", "kb") == code
    assert capsys.readouterr().err == f"inferlake: {failure}\n"


def test_the_traceback_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, errors.InputError("wrong"))
    assert ended(monkeypatch, "--verbose", "history", "kb") == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_ends_with_130_and_comforts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    monkeypatch.setattr("os._exit", sys.exit)
    assert ended(monkeypatch, "history", "kb") == 130
    assert "what was not committed is not in the store" in capsys.readouterr().err


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ZeroDivisionError())
    monkeypatch.setattr(sys, "argv", ["inferlake", "history", "kb"])
    with pytest.raises(ZeroDivisionError):
        app.main()


def test_wrong_arguments_end_the_program_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "--engine", "flink", "history", "kb") == 2
    assert "flink" in capsys.readouterr().err


def test_an_option_behind_the_command_is_told_to_go_before_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "load", "kb", "a.nt", "--engine", "sail") == 2
    assert "--engine goes before the command: inferlake --engine … load" in capsys.readouterr().err
    assert ended(monkeypatch, "load", "kb", "a.nt", "--rule", "rdfs") == 2
    assert "before the command" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["history", "stats", "export", "compact", "vacuum"])
def test_a_store_that_is_not_there_is_told_and_not_created(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ended(monkeypatch, "--engine", "sail", command, tmp_path / "kb") == 3
    assert "no store there; `inferlake load` creates one" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_input_is_told_before_anything_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "load", tmp_path / "kb", tmp_path / "a.nt") == 2
    assert "no such file or folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_result_goes_to_standard_output_only_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    app.Settings().say("done", {"a": timedelta(days=1)})
    assert capsys.readouterr() == ("", "done\n")
    app.Settings(json=True).say("done", {"a": timedelta(days=1)})
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == ({"a": "1 day, 0:00:00"}, "")
    app.Settings(quiet=True).say("done", {})
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "args", [["--help"], ["export", "--help"], ["check", "rdfs"], ["--json", "check", "rdfs"]]
)
@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_who_has_enough_ends_the_command_as_sigpipe_would(
    args: list[str], buffered: bool
) -> None:
    command = [sys.executable, *([] if buffered else ["-u"]), "-c", _MAIN, *args]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
