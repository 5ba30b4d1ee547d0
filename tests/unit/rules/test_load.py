"""Programs from what a user names."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pyarrow.fs as pafs
import pytest

from inferlake.errors import RuleError
from inferlake.rules.load import DEFAULT, NONE, PROFILES, RuleText, compiled, read_rules


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_is_read_by_its_name(profile: str) -> None:
    (text,) = read_rules([profile])
    assert text.name == profile
    assert len(compiled([text]).rules) >= 6


def test_the_default_is_a_profile() -> None:
    assert set(DEFAULT) <= set(PROFILES)


def test_none_means_no_rules() -> None:
    assert read_rules([NONE]) == () and read_rules([NONE, NONE]) == ()
    assert compiled(()).rules == ()


@pytest.mark.parametrize("names", [["none", "rdfs"], ["rdfs", "none"], ["none", "missing.dl"]])
def test_none_and_others_contradict_each_other(names: list[str]) -> None:
    with pytest.raises(RuleError, match="none means no rules, and others are named too"):
        read_rules(names)


def test_files_and_profiles_make_one_program(tmp_path: Path) -> None:
    file = tmp_path / "mine.dl"
    file.write_text("[mine] p(?x) :- [?x, a, ?y] .", encoding="utf-8")
    texts = read_rules(["rdfs", str(file)])
    assert [text.name for text in texts] == ["rdfs", str(file)]
    assert {"rdfs9", "mine"} <= {rule.name for rule in compiled(texts).rules}


def test_a_name_given_twice_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.dl"
    file.write_text("p(1) .", encoding="utf-8")
    texts = read_rules([str(file), "rdfs", str(file), "rdfs"])
    assert [text.name for text in texts] == [str(file), "rdfs"]


def test_rules_that_two_texts_share_count_once() -> None:
    one, other = (RuleText(name, "[n] p(?x) :- q(?x, _) .") for name in ("one", "other"))
    assert len(compiled([one, other]).rules) == 1


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "mine.dl"
    file.write_bytes(b'\xef\xbb\xbfp("\xc3\xa9") .')
    (text,) = read_rules([str(file)])
    assert text.text == 'p("é") .'
    assert compiled([text]).constants == {'"é"'}


def test_a_missing_file_is_neither_profile_nor_file(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"rdfz: neither a profile \(rdfs, .*, none\) nor a file"):
        read_rules(["rdfz"])
    with pytest.raises(RuleError, match="neither a profile"):
        read_rules([str(tmp_path)])


def test_a_file_that_is_not_utf8_is_refused_with_the_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.dl"
    file.write_bytes('p("é") .'.encode("latin-1"))
    with pytest.raises(RuleError, match=r"mine\.dl: not UTF-8 at byte 3; save it as UTF-8"):
        read_rules([str(file)])


def test_errors_name_the_file_as_it_was_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.dl"
    file.write_text("\np(?x) .", encoding="utf-8")
    with pytest.raises(RuleError) as found:
        compiled(read_rules([str(file)]))
    assert str(found.value).startswith(f"R102 {file}:2:1: ")


def test_programs_are_checked_together() -> None:
    with pytest.raises(
        RuleError, match="R104 two:1:1: in rule line1, p has 2 arguments here and 1"
    ):
        compiled([RuleText("one", "p(1) ."), RuleText("two", "p(1, 2) .")])


def test_the_name_of_a_text_chooses_its_language() -> None:
    program = compiled([RuleText("x.dlog", "p(A) :- TE(A, B, C)\nq(A) :- p(A)")])
    assert program.arities == {"p": 1, "triple": 3, "q": 1}


class Unreadable(pafs.LocalFileSystem):
    """A disk with files that this user may not open."""

    def open_input_file(self, path: object) -> NoReturn:
        raise PermissionError(13, f"Failed to open {path}. Detail: [errno 13] Permission denied")


def test_a_file_that_may_not_be_read_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.dl"
    file.write_text("p(1) .", encoding="utf-8")
    monkeypatch.setattr("inferlake.paths.pafs.LocalFileSystem", Unreadable)
    with pytest.raises(
        RuleError, match=r"mine.dl: cannot be read .*Permission denied\); give this"
    ):
        read_rules([str(file)])
