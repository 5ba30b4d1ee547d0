"""The benchmarks as a user meets them: tiny ones on Sail, tables of recordings, clear errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from inferlake.bench import data
from inferlake.bench.data import Data
from inferlake.bench.record import Recording, read
from inferlake.bench.run import BENCHMARKS, Benchmark
from inferlake.cli.app import cli
from inferlake.cli.bench import Several
from inferlake.errors import InferlakeError, InputError
from inferlake.generate.lubm_triples import PREFIXES

UB = PREFIXES["ub"]
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


def failure(*args: str | Path) -> InferlakeError:
    result = run(*args)
    assert isinstance(result.exception, InferlakeError), result.output
    return result.exception


def university(number: int) -> str:
    """Return a university of a hundred triples: it has a department, people and courses."""
    here = f"http://www.University{number}.edu"
    lines = [f"<{here}> {TYPE} <{UB}University> .", f'<{here}> <{UB}name> "University{number}" .']
    for at in range(14):
        who, what = f"<{here}/Student{at}>", f"<{here}/Course{at}>"
        lines += [
            f"{who} {TYPE} <{UB}UndergraduateStudent> .",
            f'{who} <{UB}name> "Student{at}" .',
            f'{who} <{UB}emailAddress> "Student{at}@University{number}.edu" .',
            f"{who} <{UB}takesCourse> {what} .",
            f"{what} {TYPE} <{UB}Course> .",
            f"{who} <{UB}memberOf> <{here}> .",
            f"<{here}/Chair{at}> <{UB}headOf> <{here}> .",
        ]
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data, complete, in which universities are a thousand times smaller."""
    folder = tmp_path_factory.mktemp("data")
    for first, count in ((0, 1), (0, 2), (1, 1), (data._ELSEWHERE, 1), (data._ELSEWHERE, 2)):
        made = folder / f"lubm-{first}-{first + count - 1}"
        made.mkdir()
        for number in range(first, first + count):
            (made / f"university-{number}.nt").write_text(university(number))
    return folder


def recorded(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_text())
    assert found["inferlake-bench"] == 1
    assert not [row["error"] for row in found["rows"] if "error" in row]
    return found


# --- tiny runs ----------------------------------------------------------------------------------


def test_materialize_gives_both_rates_and_the_phases(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "materialize", "--engine", "sail", "--universities", "1", "--repeat", "2"),
        *("--data", tiny, "--json", file),
    )
    assert result.exit_code == 0, result.output
    found = recorded(file)
    assert found["complete"] and found["machine"]["cores"] >= 1 and found["command"]
    parts = [(row["turn"], row["part"]) for row in found["rows"]]
    assert parts == [(0, "stored"), (0, "stored"), (0, "file"), (1, "stored"), (1, "file")]
    stored, count, whole = found["rows"][:3]
    assert stored["triples"] == whole["triples"] == 100 + 215
    assert stored["closure"] == whole["closure"] == whole["triples"] + whole["derived"]
    # Counted after the row with the seconds, which a time limit then leaves.
    assert count["derivations"] > 0 and "seconds" not in count
    assert "derivations" not in stored and stored["peak_mb"] > 0
    assert set(whole["phases"]) == {"parse", "terms", "facts", "derive", "commit"}
    assert "LUBM(1), 315 triples, profile rdfs" in result.stdout
    assert "inferlake on sail" in result.stdout and "Published" in result.stdout
    assert "1 of 5, turn 1: stored sail 1: " in result.stderr
    assert "5 of 5, turn 2: file sail 1: " in result.stderr
    again = run("bench", "show", file)
    assert again.exit_code == 0
    assert again.stdout == result.stdout


@pytest.mark.slow
def test_updates_are_made_by_every_algorithm_and_verified(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "updates", "--universities", "1", "--algorithms", "bf,rebuild"),
        *("--parts", "six,cliques", "--data", tiny, "--json", file),
    )
    assert result.exit_code == 0, result.output
    six = [row for row in recorded(file)["rows"] if row["part"] == "six"]
    # One university: there are no two to remove.
    assert len(six) == (6 * 2 - 1) * 2 * 2
    assert all(row["right"] for row in six)
    # What was done is undone, and what the next one finds is the same: counts agree.
    for there, back in zip(six[::2], six[1::2], strict=True):
        assert there["changed"] == back["changed"] > 0
    assert {row["rows_stored"] for row in six[::2]} == {six[0]["rows_stored"]}
    cliques = [row for row in recorded(file)["rows"] if row["part"] == "cliques"]
    assert {row["algorithm"]: row.get("checked") for row in cliques} == {
        "bf": 5710,
        "rebuild": None,
    }
    assert all(row["reason"] == "asked for" for row in cliques)
    assert "46 of 46, turn 1: cliques" in result.stderr
    assert "DynamiTE: s" in result.stdout


def test_a_stream_is_repaired_to_what_a_rebuild_gives(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "stream", "--universities", "1", "--batches", "3", "--compact-every", "2"),
        *("--data", tiny, "--json", file),
    )
    assert result.exit_code == 0, result.output
    rows = recorded(file)["rows"]
    assert [row["batch"] for row in rows if "batch" in row] == [0, 0, 1, 1, 2, 2, 3, 3]
    repaired, rebuilt = (row for row in rows if row.get("part") == "end")
    assert repaired["right"] and rebuilt["right"]
    assert repaired["asserted"] == rebuilt["asserted"] == 315
    assert repaired["implied"] == rebuilt["implied"]
    assert "rebuild / repair" in result.stdout
    assert "10 of 10, turn 1: end" in result.stderr


def test_batches_that_also_remove_are_right_every_time(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "stream", "--universities", "1", "--batches", "3", "--removals", "--verify"),
        *("--data", tiny, "--json", file),
    )
    assert result.exit_code == 0, result.output
    rows = recorded(file)["rows"]
    assert [row["right"] for row in rows if row.get("batch")] == [True] * 6
    repaired, rebuilt = (row for row in rows if row.get("part") == "end")
    assert 290 < repaired["asserted"] == rebuilt["asserted"] < 315
    assert repaired["implied"] == rebuilt["implied"]


def test_a_steady_stream_is_followed_and_right(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "stream", "--universities", "1", "--rates", "5", "--seconds", "4"),
        *("--data", tiny, "--json", file),
    )
    assert result.exit_code == 0, result.output
    rows = recorded(file)["rows"]
    batches = [row for row in rows if "batch" in row]
    assert sum(row["lines"] for row in batches) == 20
    assert all(row["lag"] > 0 for row in batches)
    assert [row["asserted"] for row in rows if row.get("right")] == [315 + 5 * 5 + 20]
    assert "left over" in result.stdout


def test_scale_takes_several_sizes(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "scale", "--engine", "sail", "--universities", "1,2"),
        *("--data", tiny, "--json", file),
    )
    assert result.exit_code == 0, result.output
    assert [row["triples"] for row in recorded(file)["rows"]] == [315, 415]
    assert "bytes/fact" in result.stdout
    assert "2 of 2, turn 1: scale sail 2: " in result.stderr


# --- ended early --------------------------------------------------------------------------------


def test_what_was_measured_before_an_end_is_kept(tiny: Path, tmp_path: Path) -> None:
    """Killed outright: the recording is whole, and no process of the case is left."""
    file = tmp_path / "run.json"
    deadline = time.monotonic() + 60
    with _streaming(tiny, file, tmp_path) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        running.send_signal(signal.SIGKILL)
    found = json.loads(file.read_text())
    assert len(found["rows"]) >= 3 and not found["complete"]
    shown = run("bench", "show", file)
    assert shown.exit_code == 0
    assert "The run was ended early" in shown.stdout
    for child in children:
        while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_the_recording_and_nothing_else(
    number: signal.Signals, code: int, tiny: Path, tmp_path: Path
) -> None:
    file, scratch = tmp_path / "run.json", tmp_path / "scratch"
    scratch.mkdir()
    with _streaming(tiny, file, scratch) as running:
        running.send_signal(number)
        assert running.stderr is not None
        told = running.stderr.read()
    assert running.returncode == code
    assert f"what was measured: inferlake bench show {file}\n" in told
    assert list(scratch.iterdir()) == []


@contextmanager
def _streaming(data: Path, file: Path, scratch: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a benchmark that has recorded some rows, and has more to do."""
    command = [sys.executable, "-c", "from inferlake.cli import main; main()", "bench", "stream"]
    options = ["--universities=1", "--batches=40", f"--data={data}", f"--json={file}"]
    env = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, text=True, env=env
    ) as running:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (file.exists() and _rows(file) >= 3):
            time.sleep(0.02)
        yield running


def _rows(file: Path) -> int:
    return len(json.loads(file.read_text())["rows"])


def test_a_case_that_takes_too_long_is_ended_and_told(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    result = run(
        *("bench", "stream", "--universities", "1", "--batches", "99", "--limit", "1"),
        *("--data", tiny, "--json", file),
    )
    assert result.exit_code == 1
    assert "took more than 1 s; --limit allows more" in result.stdout
    assert json.loads(file.read_text())["complete"]


# --- clear errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("materialize", "--peers", "jena"), "no peer 'jena': choose among reasonable, maplib"),
        (("materialize", "--peers", "maplib"), "--peer-python peers/bin/python"),
        (("materialize", "--peers", "maplib", "--peer-python", "/no/python"), "/no/python"),
        (("materialize", "--json", "/proc/none/run.json"), "cannot write the recording"),
        (("updates", "--updates", "/no/where"), "no files in add_update1"),
        (("updates", "--parts", "cliques", "--algorithms", "counting"), "say --algorithms bf"),
        (("show", "/no/such.json"), "cannot read it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_told_with_the_remedy(
    args: tuple[str, ...], words: str, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "import sys; sys.exit(1)"
    monkeypatch.setattr("inferlake.bench.peers._FOUND", missing)
    options = () if args[0] == "show" else ("--engine", "sail", "--data", tiny)
    problem = failure("bench", *args, *options)
    assert isinstance(problem, InputError)
    assert words in str(problem)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"inferlake-bench": 99}', '{"inferlake-bench": 1}']
)
def test_a_file_that_is_no_recording_is_told(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    assert str(file) in str(failure("bench", "show", file))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"more": 1}, "no recording that this release can show"),
        ({"machine": {"cores": 2}}, "no recording that this release can show"),
        ({"rows": [1]}, "no recording that this release can show"),
        ({"benchmark": "race"}, "odd.json: of a benchmark 'race', and this release has mat"),
        ({"rows": [{"part": "race"}]}, "rows that this release cannot show (KeyError('race'))"),
    ],
    ids=str,
)
def test_an_odd_recording_is_told_as_such(
    changed: dict[str, Any], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "odd.json"
    Recording.begin("updates", {}, file)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    problem = failure("bench", "show", file)
    assert isinstance(problem, InputError) and words in str(problem)


@pytest.mark.parametrize(
    "args",
    [
        ("updates", "--updates", "/no/where", "--engine", "sail"),
        ("updates", "--data", "/proc", "--engine", "sail"),
        ("updates", "--data", "/proc/none", "--engine", "sail"),
    ],
    ids=" ".join,
)
def test_what_cannot_begin_leaves_an_older_recording(
    args: tuple[str, ...], tiny: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    Recording.begin("updates", {}, file).add({"old": 1})
    failure("bench", args[0], "--data", tiny, *args[1:], "--json", file)
    assert read(file).rows == [{"old": 1}]


def test_a_store_that_is_wrong_ends_a_benchmark_with_1(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = {"part": "end", "how": "repair", "engine": "sail", "universities": 1, "profile": "rdfs"}
    rows = iter([{**end, "right": True}, {**end, "how": "rebuild", "right": False}])
    wrong = Benchmark(lambda options, turn: (row for row in rows), BENCHMARKS["stream"].tables)
    monkeypatch.setitem(BENCHMARKS, "stream", wrong)
    result = run("--quiet", "bench", "stream", "--data", tiny)
    assert result.exit_code == 1
    assert result.stderr == (
        "failed: turn 1: end sail 1 rebuild: done; WRONG: the store does not equal a rebuild\n"
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--engine", "sail", "--removals"), "--rates has no use for --removals, --engine"),
        (("--compact-every", "1"), "--rates has no use for --compact-every"),
        (("--seconds", "300"), "--seconds 300 at each of --rates is 600 s in all, and --limit 600"),
        (("--seconds", "9", "--limit", "9"), "--seconds 9 at each of --rates is 18 s in all"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_rates_cannot_have_is_refused(args: tuple[str, ...], words: str) -> None:
    result = run("bench", "stream", "--rates", "10,20", *args)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_a_terminal_gets_tables_that_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    row = {"part": "scale", "engine": "sail", "universities": 1, "profile": "rdfs"}
    numbers = {"load_seconds": 1.0, "seconds": 1.0, "triples": 10, "closure": 20, "bytes": 30}
    Recording.begin("scale", {}, file).add({**row, **numbers})
    monkeypatch.setenv("COLUMNS", "60")
    for terminal in (True, False):
        with monkeypatch.context() as patched:
            patched.setattr(sys.stdout, "isatty", lambda now=terminal: now)
            cli(["bench", "show", str(file)], standalone_mode=False)
        told = capsys.readouterr().out.partition("### LUBM by size")[2].partition("\n\nA load")[0]
        assert (max(map(len, told.splitlines())) <= 60) == terminal


def test_several_are_taken_in_any_case() -> None:
    several = Several("sail", "spark")
    assert several.convert("Sail, SPARK,sail", None, None) == ("sail", "spark")
    assert "--engine sail|spark[,...]" in run("bench", "scale", "--help").stdout


@pytest.mark.parametrize(
    "args",
    [
        ("materialize", "--engine", "flink"),
        ("scale", "--universities", "1,many"),
        ("scale", "--universities", "0"),
        ("scale", "--universities", "²"),
        ("scale", "--universities", ","),
        ("scale", "--engine", ","),
        ("updates", "--parts", "six,,cliques"),
        ("materialize", "--peers", ""),
        ("updates", "--algorithms", "bf,magic"),
        ("stream", "--batches", "0"),
        ("stream", "--rates", "fast"),
        ("stream", "--seconds", "9"),
        ("stream", "--rates", "9", "--verify"),
        ("stream", "--rates", "9", "--batches", "60"),
    ],
    ids=" ".join,
)
def test_wrong_arguments_are_told_with_the_usage(args: tuple[str, ...]) -> None:
    result = run("bench", *args)
    assert result.exit_code == 2
    assert "Usage: " in result.output and "Error: " in result.output


def test_plots_without_matplotlib_are_refused_before_any_work(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferlake.bench.drawing.find_spec", lambda name: None)
    problem = failure("bench", "scale", "--plot", "somewhere", "--data", tiny)
    assert "pip install matplotlib" in str(problem)


# --- data ---------------------------------------------------------------------------------------


def test_updates_are_made_of_the_same_kinds_as_the_published(tiny: Path) -> None:
    folder = Data(tiny).updates()
    found = {path.name: sum(map(_lines, path.iterdir())) for path in folder.iterdir()}
    assert found == {
        "add_update1": 1,
        "remove_update1": 1,
        "add_update2": 15,
        "remove_update2": 15,
        "add_update3": 14,
        "remove_update3": 14,
        "add_update4": 2,
        "remove_update4": 1,
        "add_university": 100,
        "remove_university": 100,
        "add_2universities": 200,
        "remove_2universities": 200,
    }
    assert not list(tiny.glob("*.partial-*"))


def _lines(file: Path) -> int:
    return len(file.read_text().splitlines())


def test_our_updates_have_the_names_of_the_published(shared_data: Path, tiny: Path) -> None:
    published = {
        path.name for path in (shared_data / "dynamite-updates").iterdir() if path.is_dir()
    }
    assert {path.name for path in Data(tiny).updates().iterdir()} == published


def test_removals_are_under_the_rules_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("inferlake.bench.run.run", lambda name, options, **_: asked.append(options))
    run("bench", "updates")
    run("bench", "updates", "--profile", "owl2rl")
    assert [(one.profile, one.removal_profile) for one in asked] == [
        ("rdfs", "owl-horst"),
        ("owl2rl", "owl2rl"),
    ]
