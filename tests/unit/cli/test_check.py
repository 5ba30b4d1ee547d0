"""`inferlake check`: what is wrong with rules, and what becomes of them. No engine is started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from inferlake.cli.app import cli
from inferlake.errors import RuleError

PROGRAM = """
@prefix ex: <http://example.org/> .
@schema [?c, rdfs:subClassOf, ?d] .
[base]   path(?x, ?y) :- edge(?x, ?y) .
[step]   path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
[both]   pair(?x, ?y) :- path(?x, ?y), path(?y, ?x) .
[large]  big(?x) :- edge(?x, ?y), ?x > 5 .
[sub]    [?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] .
[trans]  [?c, rdfs:subClassOf, ?e] :- [?c, rdfs:subClassOf, ?d], [?d, rdfs:subClassOf, ?e] .
[loop]   false :- path(?x, ?x) .
[given]  edge(1, 2) .
"""


def check(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, args)])


def explained(tmp_path: Path, text: str) -> dict[str, Any]:
    (tmp_path / "mine.dl").write_text(text)
    result = check("--json", tmp_path / "mine.dl")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_rule_is_told_what_becomes_of_it(tmp_path: Path) -> None:
    found = explained(tmp_path, PROGRAM)
    rules = {rule["name"]: rule for rule in found["rules"]}
    assert {name: rule["becomes"] for name, rule in rules.items()} == {
        "base": "linear",
        "step": "joining",
        "both": "joining",
        "large": "joining",
        "sub": "linear",
        "trans": "schema",
        "loop": "constraint",
        "given": "fact",
    }
    assert rules["step"]["recursive"] and not rules["both"]["recursive"]
    assert rules["step"]["strata"] < rules["both"]["strata"]
    assert rules["base"]["place"].endswith("mine.dl:4:10")
    assert len(rules["sub"]["schema"]) == 1 and rules["sub"]["atoms"] == 1
    assert found["relations"]["edge"] == 2
    assert found["outputs"] == ["big", "edge", "pair", "path", "triple"]
    assert found["hints"] == []


def test_people_get_a_line_for_each_rule(tmp_path: Path) -> None:
    (tmp_path / "mine.dl").write_text(PROGRAM)
    result = check(tmp_path / "mine.dl")
    lines = result.stdout.splitlines()
    assert lines[0].endswith("base: takes one fact to another: part of the expander")
    assert "step: joins 2 atoms; stratum " in lines[1] and lines[1].endswith(", recursive")
    assert any(line.startswith("    schema: [?c, <http://www.w3.org/2000") for line in lines)
    assert "derived: big/1, edge/2, pair/2, path/2, triple/3" in lines
    assert "8 rules are well formed" in result.stderr


def test_rules_that_differ_in_constants_share_a_plan(tmp_path: Path) -> None:
    text = "".join(f'[r{n}] a(?x, {n}) :- b(?x, ?y), c(?y, "{n}") .\n' for n in range(3))
    rules = explained(tmp_path, text)["rules"]
    assert [rule["shares_plan_with"] for rule in rules] == [
        ["r1", "r2"],
        ["r0", "r2"],
        ["r0", "r1"],
    ]


@pytest.mark.parametrize(
    ("rules", "hint"),
    [
        ("a(?x) :- b(?x) .", "b: no rule derives it, so its facts must be given"),
        ("path(?x) :- b(?x) .\nc(?x) :- paht(?x) .", "is path meant?"),
        ("_a(?x) :- b(?x) .", "_a: no rule uses it"),
        ("a(?x) :- a(?x), b(?x) .", "derives nothing"),
        ("a(?x) :- b(?x), 1 > 2 .", "derives nothing"),
        ("a(?x, ?y) :- b(?x), b(?y) .", "without a variable in common"),
    ],
)
def test_hints(rules: str, hint: str, tmp_path: Path) -> None:
    assert any(hint in one for one in explained(tmp_path, rules)["hints"])


@pytest.mark.parametrize("profile", ["rdfs", "rdfs-full", "owl-horst", "owl2rl"])
def test_profiles_can_be_asked_too(profile: str) -> None:
    result = check(profile)
    assert result.exit_code == 0 and f"{profile}:" in result.stdout
    assert "hint:" not in result.stdout


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "one.dl").write_text("a(?x) :- b(?y) .\na(?x, ?y) :- b(?x), ?z < 3 .")
    (tmp_path / "two.dl").write_text("c(?x) :- d(?x)")
    result = check(tmp_path / "one.dl", tmp_path / "two.dl")
    assert isinstance(result.exception, RuleError) and result.exception.exit_code == 5
    told = str(result.exception)
    assert [code for code in ("R101", "R102", "R103", "R104") if code in told] == [
        "R101",
        "R102",
        "R103",
        "R104",
    ]
    assert "one.dl:1:1" in told and "two.dl:1:15" in told


def test_no_engine_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.dl").write_text(PROGRAM)
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom inferlake.cli.app import cli\n"
        "result = CliRunner().invoke(cli, ['check', sys.argv[1]])\n"
        "print(result.exit_code, sorted({'pyspark', 'pysail', 'deltalake'} & set(sys.modules)))"
    )
    args = [sys.executable, "-c", code, str(tmp_path / "mine.dl")]
    done = subprocess.run(args, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
