"""Parts of the benchmarks: tables, ratios, how a stream is cut, plots, processes of cases."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from inferlake.bench import materialize, peers, process
from inferlake.bench.cliques import Cliques
from inferlake.bench.data import Data
from inferlake.bench.drawing import drawn, require_folder
from inferlake.bench.options import MaterializeOptions
from inferlake.bench.plots import draw, plots
from inferlake.bench.process import Case
from inferlake.bench.record import Recording, machine, read
from inferlake.bench.run import BENCHMARKS, line_of, shown
from inferlake.bench.steady import is_held
from inferlake.bench.stream import cut
from inferlake.bench.tables import Table, ratio, spread
from inferlake.errors import InputError
from inferlake.generate.lubm_schema import axioms

CHANGE: dict[str, Any] = {
    "seconds": 2.0,
    "phases": {"parse": 0.5, "derive": 1.0},
    "changed": 3,
    "derived": 4,
    "withdrawn": 1,
    "rounds": 2,
    "files_read": 1,
    "files_stored": 2,
    "rows_read": 10,
    "rows_stored": 20,
    "checked": 5,
    "examined": 6,
    "derivations": 7,
    "backward": 1,
    "forward": 2,
    "deletion": 4,
    "right": True,
}
# A rebuild counts none of these.
COUNTS = ("checked", "examined", "derivations", "backward", "forward", "deletion")
REBUILD = {name: value for name, value in CHANGE.items() if name not in COUNTS}
REBUILD["done_by"] = "rebuild"
LUBM: dict[str, Any] = {"engine": "sail", "universities": 1, "profile": "rdfs"}
STORED: dict[str, Any] = {"triples": 100, "closure": 104, "peak_mb": 300, "bytes": 1040}
ROWS: dict[str, list[dict[str, Any]]] = {
    "materialize": [
        {"part": "stored", **LUBM, **CHANGE, **STORED, "said": ["round 1 (schema)"]},
        {"part": "file", **LUBM, **CHANGE, "seconds": 4.0, **STORED},
        {
            **{"part": "peer", "peer": "other", "universities": 1, "profile": "rdfs"},
            **{"derives": "RDFS", "closure": 104, "closure_seconds": 1.0, "file_seconds": 8.0},
        },
        {
            "part": "peer",
            "peer": "slow",
            "universities": 1,
            "profile": "rdfs",
            "error": "took long",
        },
        {"part": "startup", "command": "python -c pass", "times": [0.1, 0.1]},
        {"part": "startup", "command": "inferlake --help", "times": [0.2, 0.4]},
    ],
    "updates": [
        *(
            {"part": "six", **LUBM, "update": "add_update1", "way": "add", **CHANGE, **how}
            for how in ({"algorithm": "bf"}, {"algorithm": "rebuild", "seconds": 6.0})
        ),
        {"part": "removals", **LUBM, "size": 100, "algorithm": "bf", **CHANGE},
        *(
            {"part": "removals", **LUBM, "size": 100, **REBUILD, "algorithm": algorithm}
            for algorithm in ("auto", "rebuild")
        ),
        {"part": "cliques", "engine": "sail", "size": 100, "algorithm": "bf", **CHANGE},
    ],
    "stream": [
        *(
            {**LUBM, "how": how, "batch": batch, **CHANGE, "seconds": seconds}
            for how, seconds in (("repair", 1.0), ("rebuild", 3.0))
            for batch in range(13)
        ),
        {**LUBM, "how": "repair", "part": "end", "asserted": 5, "implied": 6, "right": True},
    ],
    "scale": [
        {"part": "scale", **LUBM, "load_seconds": 5.0, "load_mb": 1, **CHANGE, **STORED, **engine}
        for engine in ({"engine": "sail"}, {"engine": "spark", "load_seconds": 15.0})
    ],
}


def recording(benchmark: str, *, complete: bool = True) -> Recording:
    rows = [{"turn": 0, **row} for row in ROWS[benchmark]]
    return Recording(benchmark, {}, None, rows, machine(), ("inferlake",), "now", complete)


def lines(text: str, *words: str) -> list[list[str]]:
    """Return the cells of the lines of tables that have all these words."""
    found = (line for line in text.splitlines() if line.startswith("|"))
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in found
        if all(word in line for word in words)
    ]


def test_a_table_is_markdown() -> None:
    table = str(Table("T", ("name", "count"), [["a", 1], ["b", 2_000]], ("Note.",)))
    assert table.splitlines() == [
        "### T",
        "",
        "| name | count |",
        "| ---- | ----: |",
        "| a    |     1 |",
        "| b    | 2,000 |",
        "",
        "Note.",
    ]


def test_a_spread_is_the_median_between_the_least_and_the_most() -> None:
    rows = [{"seconds": 3.0}, {"seconds": 1.0}, {"seconds": 2.0}, {"error": "x", "seconds": 99}]
    found = spread(rows, "seconds")
    assert str(found) == "2 (1-3)"
    assert str(spread(rows[:1], "seconds")) == "3"
    assert spread([{"error": "x"}], "seconds") is None
    assert ratio(found, spread(rows[1:2], "seconds")) == 2.0
    assert ratio(found, None) is None


def test_materialize_is_told_beside_the_fastest() -> None:
    text = shown(recording("materialize"))
    ours, other = lines(text, "inferlake on sail")[0], lines(text, "| other")[0]
    # Seconds, times the least, triples a second: from the store, and from files.
    assert ours[6:12] == ["2", "2", "50", "4", "1", "25"]
    assert other[6:12] == ["1", "1", "100", "8", "2", "12"]
    assert lines(text, "slow")[0][-1] == "took long"
    # Nothing is said of phases that nobody had.
    assert lines(text, "engine", "way")[0][2:] == ["parse", "derive", "other", "whole: s"]
    assert lines(text, "sail", "stored to closure")[0][2:] == [
        *("0.50 s, 25%", "1.00 s, 50%", "0.50 s, 25%", "2"),
    ]
    assert lines(text, "inferlake --help")[0][1:] == ["0.3 (0.2-0.4)", "3"]


def test_what_is_outside_the_phases_is_that_of_each_turn() -> None:
    """The medians of phases may be of different turns, and more than the median of the whole."""
    made = recording("materialize")
    parses = [(1.6, 0.2, 2.0), (0.2, 1.6, 2.0), (0.9, 0.9, 2.0), (0.9, 0.9, 1.7)]
    made.rows = [
        {**made.rows[0], "seconds": seconds, "phases": {"parse": parse, "derive": derive}}
        for parse, derive, seconds in parses
    ]
    (cells,) = lines(shown(made), "stored to closure", "%")
    assert cells[4] == "0.20 s, 10%"


def test_other_rules_have_no_ratio() -> None:
    made = recording("materialize")
    peer = {**made.rows[2], "peer": "owl", "derives": "OWL 2 RL", "file_seconds": 1.0}
    made.rows.append(peer)
    text = shown(made)
    assert lines(text, "| owl ")[0][1] == "OWL 2 RL: other rules"
    assert lines(text, "| owl ")[0][6:12] == ["1", "", "100", "1", "", "100"]
    # And are nobody's measure: from files, 4 s on Sail are the least of the same rules.
    assert lines(text, "inferlake on sail")[0][10] == "1"
    assert lines(text, "| other ")[0][1] == "RDFS"


def test_a_count_of_derivations_is_no_turn() -> None:
    made = recording("materialize")
    made.rows[0].pop("derivations")
    made.rows.insert(1, {"turn": 0, "part": "stored", **LUBM, "derivations": 77})
    ours = lines(shown(made), "inferlake on sail")[0]
    assert ours[4] == "77" and ours[6] == "2"
    phases, systems = plots("materialize", made.rows)
    assert [line.ys[0] for line in phases.lines if line.name == "derive"] == [1.0]
    assert systems.lines


def test_a_count_that_is_ended_leaves_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lubm-0-0").mkdir()
    monkeypatch.setattr(
        materialize, "measured", lambda case, limit: iter([{"seconds": 1.0}, {"error": "late"}])
    )
    options = MaterializeOptions(engines=("sail",), universities=1, folder=tmp_path)
    measured, ended, *_ = materialize.rows(options, 0)
    assert measured["seconds"] == 1.0
    assert ended["error"] == "late (while derivations were counted)"


def test_what_all_cases_failed_at_is_told_and_no_more() -> None:
    made = recording("materialize")
    made.rows = [
        {"turn": 0, "part": part, **LUBM, "error": "too late"} for part in ("stored", "file")
    ]
    text = shown(made)
    assert "### LUBM(1), profile rdfs\n" in text
    assert lines(text, "inferlake on sail")[0] == ["inferlake on sail", "rdfs", "yes", "too late"]
    assert "Where the time goes" not in text


def test_updates_are_told_beside_a_rebuild_and_the_published() -> None:
    text = shown(recording("updates"))
    repaired, rebuilt = lines(text, "add_update1")
    assert repaired[3:5] == ["2", "3"] and rebuilt[3:5] == ["6", "1"]
    assert repaired[12:17] == ["1 of 2", "10 of 20", "yes", "0.117", "< 0.001"]
    assert lines(text, "LUBM-1k-L", "10.0M") and "cliques" in text


def test_a_stream_is_told_in_lines_of_batches() -> None:
    text = shown(recording("stream"))
    assert [row[0] for row in lines(text, "|") if row[0] in ("load", "1-10", "11-12")] == [
        *("load", "1-10", "11-12"),
    ]
    assert lines(text, "11-12")[0][3:8] == ["3", "1 (1-1)", "1 (1-1)", "12", "36"]
    assert lines(text, "sail", "repair", "yes")[0][3:5] == ["12", "3"]


STEADY: dict[str, Any] = {"part": "steady", "universities": 1, "profile": "rdfs"}


def test_steady_streams_are_told_by_rate() -> None:
    batch = {"lines": 10, "seconds": 0.5, "engine": "sail"}
    made = recording("stream")
    made.rows = [
        *({**STEADY, "rate": 10, "batch": n, "lag": 1.0 + n, **batch} for n in range(2)),
        {**STEADY, "rate": 10, "held": True, "late": 1.5},
        {**STEADY, "rate": 20, "batch": 2, "lag": 9.0, **batch},
        {**STEADY, "rate": 20, "held": False, "late": 9.5},
        {**STEADY, "right": True},
    ]
    text = shown(made)
    held, lost = lines(text, "sail")
    assert held == ["10", "2", "20", "0.5", "0.5", "1", "2", "2", "1.5", "yes", "sail"]
    assert lost[-3:-1] == ["9.5", "NO"]
    assert "equals a rebuild" in text
    made.rows += [{**row, "turn": 1} for row in made.rows if row.get("rate") == 10]
    for row in made.rows[6:8]:
        row["seconds"] = 1.5
    held, lost = lines(shown(made), "sail")
    # Batches of two turns are not one longer turn.
    assert held[1:5] == ["2 (2-2)", "20 (20-20)", "1 (0.5-1.5)", "1 (0.5-1.5)"]
    assert held[-2:] == ["yes", "sail"] and lost[1] == "1"
    made.rows[-1]["held"] = False
    assert lines(shown(made), "sail")[0][-2] == "NO"


def test_the_lags_of_a_steady_stream_are_a_line_a_turn() -> None:
    batch = {"lines": 10, "seconds": 0.5, "engine": "sail"}
    rows = [
        *({**STEADY, "rate": 10, "batch": n, "lag": 1.0 + n, **batch} for n in range(2)),
        {**STEADY, "rate": 20, "batch": 2, "lag": 9.0, **batch},
    ]
    (plot,) = plots("stream", rows)
    assert [list(line.ys) for line in plot.lines] == [[1.0, 2.0], [9.0]]
    (plot,) = plots("stream", [{"turn": turn, **row} for turn in range(2) for row in rows])
    assert {line.name: list(line.ys) for line in plot.lines} == {
        "10 triples/s, turn 1": [1.0, 2.0],
        "10 triples/s, turn 2": [1.0, 2.0],
        "20 triples/s, turn 1": [9.0],
        "20 triples/s, turn 2": [9.0],
    }


@pytest.mark.parametrize(
    ("lags", "late", "held"),
    [
        ([2.0, 2.0, 2.0, 2.0], 2.0, True),
        ([2.0, 2.0, 3.9, 4.0], 2.0, True),
        ([2.0, 2.0, 4.0, 4.1], 2.0, False),
        ([2.0, 2.0, 2.0, 2.0], 4.1, False),
        ([2.0], 1.0, False),
        ([], 0.0, False),
    ],
)
def test_a_rate_is_held_while_the_lag_does_not_grow(
    lags: list[float], late: float, held: bool
) -> None:
    assert is_held(lags, late) == held


def test_scale_is_told_beside_the_other_engine() -> None:
    text = shown(recording("scale"))
    (head,) = lines(text, "universities")
    sail, spark = (
        dict(zip(head, lines(text, f"| {engine} ")[0], strict=True)) for engine in ("sail", "spark")
    )
    assert (sail["load: times"], sail["closure: times"]) == ("1", "1")
    assert (spark["load: times"], spark["closure: times"]) == ("3", "1")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_recording_is_saved_and_read_again(benchmark: str, tmp_path: Path) -> None:
    made = recording(benchmark, complete=False)
    made.file = tmp_path / "run.json"
    made.save()
    again = read(made.file)
    assert again.rows == made.rows and not again.complete
    assert shown(again) == shown(made)
    assert [path.name for path in made.file.parent.iterdir()] == ["run.json"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_what_can_be_drawn_has_numbers(benchmark: str) -> None:
    made = plots(benchmark, ROWS[benchmark])
    assert made and all(len(line.xs) == len(line.ys) for plot in made for line in plot.lines)


@pytest.mark.parametrize(
    ("done", "by"),
    [
        ({"done_by": "rebuild"}, "auto: rebuild"),
        ({"done_by": "rebuild", "reason": "99% go"}, "auto: rebuild (99% go)"),
        (
            {"done_by": "rebuild", "reason": "bf was not done after 4 rounds"},
            "auto: rebuild (bf was not done after 4 rounds)",
        ),
        ({"done_by": "bf", "reason": "1 triple of 9 goes"}, "auto: bf"),
        ({"done_by": "", "reason": ""}, "auto"),
    ],
)
def test_auto_says_what_it_turned_out_to_be(done: dict[str, Any], by: str) -> None:
    made = recording("updates")
    (auto,) = (row for row in made.rows if row.get("algorithm") == "auto")
    auto.pop("done_by")
    auto |= done
    ((_, told, *_),) = lines(shown(made), "auto")
    assert told == by


def test_one_university_has_no_line_of_two() -> None:
    made = recording("updates")
    assert "no line of remove_2universities" in shown(made)
    for row in made.rows:
        row["universities"] = 2
    assert "no line of remove_2universities" not in shown(made)


def test_plots_keep_engines_apart_and_take_medians_of_turns() -> None:
    rows = [
        {"turn": turn, **row, "engine": engine, "seconds": seconds}
        for engine, times in (("sail", (1.0, 2.0, 9.0)), ("spark", (20.0, 30.0, 40.0)))
        for turn, seconds in enumerate(times)
        for row in ROWS["updates"]
    ]
    found = {plot.name: plot for plot in plots("updates", rows)}
    assert found.keys() == {
        f"{name}-{engine}-{what}"
        for engine in ("sail", "spark")
        for name, what in (("six", "add"), ("removals", "seconds"), ("removals", "examined"))
    }
    for engine, median in (("sail", 2.0), ("spark", 30.0)):
        for name in (f"six-{engine}-add", f"removals-{engine}-seconds"):
            assert all(list(line.ys) == [median] for line in found[name].lines), name
        assert found[f"removals-{engine}-seconds"].about == f"LUBM(1), rdfs, on {engine}"
        title = found[f"six-{engine}-add"].title
        assert title == "Six updates, each applied and then taken back: additions"


def test_systems_are_drawn_with_the_rules_of_each() -> None:
    _, plot = plots("materialize", ROWS["materialize"])
    assert {line.name: dict(zip(line.xs, line.ys, strict=True)) for line in plot.lines} == {
        "file to closure": {"sail (rdfs)": 4.0, "other (RDFS, in memory)": 8.0},
        "stored to closure": {"sail (rdfs)": 2.0, "other (RDFS, in memory)": 1.0},
    }
    assert plot.about == "LUBM(1), one turn"


def test_plots_say_what_they_are_about() -> None:
    for benchmark, rows in ROWS.items():
        made = plots(benchmark, rows)
        assert len({plot.title for plot in made}) == len(made)
        assert len({plot.name for plot in made}) == len(made)
        assert all(plot.about.endswith(", one turn") for plot in made)
        again = plots(benchmark, [{"turn": turn, **row} for turn in range(2) for row in rows])
        assert not any("one turn" in plot.about for plot in again)
    load, closure = plots("scale", ROWS["scale"])
    assert (load.about, closure.about) == ("LUBM(1), one turn", "LUBM(1), rdfs, one turn")


def test_lines_begin_at_zero_and_batches_are_whole() -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib, of inferlake[bench]")
    for plot in plots("stream", ROWS["stream"]) + plots("scale", ROWS["scale"]):
        (axes,) = drawn(plot).axes
        assert axes.get_ylim()[0] == 0
        assert all(tick == int(tick) for tick in axes.get_xticks()), plot.name


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_plots_are_drawn_as_png_and_svg(benchmark: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib, of inferlake[bench]")
    files = draw(recording(benchmark), tmp_path / "plots")
    assert {file.suffix for file in files} == {".png", ".svg"}
    assert all(0 < file.stat().st_size < 200_000 for file in files)


def test_a_failure_of_ours_is_a_failure_and_one_of_a_peer_is_none() -> None:
    made = recording("materialize")
    assert made.failures == []
    made.rows.append({"part": "file", "engine": "spark", "error": "no"})
    assert len(made.failures) == 1


@pytest.mark.parametrize(
    ("benchmark", "row"),
    [
        ("updates", {**ROWS["updates"][0], "right": False}),
        ("stream", {**ROWS["stream"][1], "right": False}),
        ("stream", {**ROWS["stream"][-1], "right": False}),
        ("stream", {"part": "steady", "universities": 1, "profile": "rdfs", "right": False}),
    ],
)
def test_a_store_that_is_wrong_is_a_failure(benchmark: str, row: dict[str, Any]) -> None:
    made = recording(benchmark)
    made.rows.append(row)
    assert made.failures == [row]
    assert line_of(row).endswith("; WRONG: the store does not equal a rebuild")


@pytest.mark.parametrize("batches", [1, 7, 60])
def test_a_stream_loses_nothing_and_keeps_axioms_whole(batches: int) -> None:
    data = [f"line {n}" for n in range(1_000)]
    initial, later = cut(data, axioms(), batches)
    schema = [line for axiom in axioms() for line in axiom]
    assert len(later) == batches
    assert sorted([*initial, *(line for some in later for line in some)]) == sorted(data + schema)
    assert sum(line in data for line in initial) == 250
    for axiom in axioms():
        assert sum(set(axiom) <= set(some) for some in (initial, *later)) == 1
    if batches <= 60:
        assert all(any(line in schema for line in some) for some in later)


def test_cliques_are_the_same_every_time(tmp_path: Path) -> None:
    first = [file.read_text() for file in Cliques().written(tmp_path)]
    assert first == [file.read_text() for file in Cliques().written(tmp_path)]
    assert first[0].count("\n") == 30_000 and first[1].count("\n") == 100


def test_a_case_that_fails_is_told_in_its_own_words() -> None:
    rows = list(process.measured(Case("data.generate", {"no": "such"}), limit=60))
    assert len(rows) == 1
    assert "unexpected keyword argument" in rows[0]["error"]


def test_a_case_that_is_ended_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    busy = "import tempfile, time; tempfile.mkdtemp(); print('{}', flush=True); time.sleep(60)"
    rows = list(process.told([sys.executable, "-c", busy], limit=1.5))
    assert rows == [{}, {"error": "took more than 1.5 s; --limit allows more", "limit": 1.5}]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("pass", [{"error": "ended without a row"}]),
        ("import sys; print('odd', file=sys.stderr)", [{"error": "odd\nended without a row"}]),
        ("print('{}'); print('hi'); print('{}')", [{}, {"error": "printed what is no row: 'hi'"}]),
        ("print(7)", [{"error": "printed what is no row: '7'"}]),
        ("print('{', end='')", [{"error": "ended without a row"}]),
        ("import sys; print('{}'); sys.exit(3)", [{}, {"error": "ended with 3"}]),
    ],
)
def test_a_process_that_tells_nothing_or_nonsense_is_an_error(
    code: str, rows: list[dict[str, Any]]
) -> None:
    assert list(process.told([sys.executable, "-c", code], limit=60)) == rows


def test_a_peer_may_chatter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chatty = """
import os
print("hello from Python")
os.system("echo hello from below")
class PyReasoner:
    def load_file(self, file): print("reading")
    def reason(self): return [1, 2, 3]
"""
    (tmp_path / "reasonable.py").write_text(chatty)
    (tmp_path / "reasonable-7.dist-info").mkdir()
    about = tmp_path / "reasonable-7.dist-info" / "METADATA"
    about.write_text("Metadata-Version: 2.1\nName: reasonable\nVersion: 7\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (row,) = peers.measured_peer("reasonable", "owl2rl", ["a.nt"], python=None, limit=60)
    assert (row["derives"], row["version"], row["closure"]) == ("OWL 2 RL", "7", 3)


def test_data_that_cannot_be_written_are_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"univ-bench[.]nt: cannot be made: File exists"):
        Data(tmp_path / "file").ontology()
    with pytest.raises(InputError, match="file/lubm-0-0: cannot be made: "):
        Data(tmp_path / "file").lubm(1)


def test_a_place_without_plots_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inferlake.bench.drawing.require_matplotlib", lambda: None)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: no folder for plots: File exists; name another"):
        require_folder(tmp_path / "file")
    with pytest.raises(InputError, match="/proc: no folder for plots"):
        require_folder(Path("/proc"))  # there, and nobody may write in it
    require_folder(tmp_path / "new" / "one")
    assert (tmp_path / "new" / "one").is_dir()


def test_narrow_columns_are_markdown_too() -> None:
    assert str(Table("T", ("C", "D"), [["", 1]])).splitlines()[2:] == [
        "| C   |   D |",
        "| --- | --: |",
        "|     |   1 |",
    ]


def test_a_column_without_a_cell_is_left_out() -> None:
    rows = [["a", None, 0, ""], ["b", None, 1, ""]]
    table = Table("T", ("name", "none", "some", "problem"), rows)
    assert [row[0] for row in lines(str(table), "|")] == ["name", "----", "a", "b"]
    assert all(len(row) == 2 for row in lines(str(table), "|"))
    assert len(lines(str(Table("T", ("C", "D"), [])), "|")[0]) == 2


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize("width", [60, 80, 100, 400])
def test_tables_fit_a_terminal_and_lose_nothing(benchmark: str, width: int) -> None:
    made = recording(benchmark)
    for table in BENCHMARKS[benchmark].tables(made.rows):
        wide, body = (
            text.splitlines()[2 : -2 * len(table.notes) or None]
            for text in (str(table), table.fitted(width))
        )
        assert max(map(len, body)) <= width, table.title
        words, told = (Counter(" ".join(some).replace("|", " ").split()) for some in (wide, body))
        numbers = {word for word in words if word[0].isdigit()}
        assert all(told[word] >= words[word] for word in numbers), table.title


def test_a_table_that_fits_is_markdown() -> None:
    table = Table("T", ("name", "count"), [["a", 1]], ("Note.",))
    assert table.fitted(80) == str(table)
    assert "|" not in table.fitted(13)


def test_a_recording_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write the recording: Is a directory"):
        Recording("scale", {}, tmp_path).save()
    with pytest.raises(InputError, match=r"there is no folder .*/new; make it, or name another"):
        Recording.begin("scale", {}, tmp_path / "new" / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_recording_is_left_alone(tmp_path: Path) -> None:
    for text in ("my notes", '{"a": 1}'):
        file = tmp_path / "notes.json"
        file.write_text(text)
        with pytest.raises(InputError, match="no recording"):
            Recording.begin("scale", {}, file)
        assert file.read_text() == text


def test_an_older_recording_of_the_same_benchmark_is_replaced_by_the_first_row(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.json"
    Recording.begin("scale", {}, file).add({"old": 1})
    begun = Recording.begin("scale", {}, file)
    assert read(file).rows == [{"old": 1}]
    begun.add({"new": 1})
    assert read(file).rows == [{"new": 1}]
    assert list(tmp_path.iterdir()) == [file]


def test_an_older_recording_outlasts_a_run_that_measured_nothing(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    Recording.begin("scale", {}, file).add({"old": 1})
    begun = Recording.begin("scale", {}, file)
    begun.add({"error": "took more than 1 s"})
    begun.finish()
    assert not begun.is_saved and read(file).rows == [{"old": 1}]
    begun.add({"new": 1})
    assert begun.is_saved and read(file).rows == [{"error": "took more than 1 s"}, {"new": 1}]


def test_a_process_that_ends_before_it_has_heard_what_to_do_is_a_row() -> None:
    more_than_a_pipe_holds = {"files": ["x" * 100] * 2_000}
    code = "import sys; sys.exit('not today')"
    (row,) = process._lines([sys.executable, "-c", code], more_than_a_pipe_holds, limit=60)
    assert row == {"error": "not today"}


def test_a_recording_of_another_benchmark_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    Recording.begin("stream", {}, file)
    with pytest.raises(InputError, match="of bench stream, which bench scale does not replace"):
        Recording.begin("scale", {}, file)
    assert read(file).benchmark == "stream"


def test_one_turn_is_said_to_be_one() -> None:
    recording = Recording.begin("scale", {}, None)
    assert "One turn" in shown(recording)
    recording.rows.append({"turn": 1, "part": "scale", "error": "late"})
    assert "One turn" not in shown(recording)


def test_a_run_that_was_ended_early_is_not_told_to_repeat() -> None:
    ended = Recording.begin("scale", {"repeat": 3}, None)
    ended.rows.append({"turn": 0, "part": "scale", "error": "late"})
    assert "ended early in turn 1 of 3: here is what came of it, 1 row." in shown(ended)
    assert "--repeat" not in shown(ended)
