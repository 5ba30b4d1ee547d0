"""From the text of a bad line to its place, and from its place to the text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from inferlake.input import Bad, discover
from inferlake.input.files import InputFile
from inferlake.input.locate import locate
from inferlake.input.rows import SHOWN_TEXT


def file(folder: Path, text: str, name: str = "a.nt") -> InputFile:
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return discover([folder / name])[0]


def known_by_text(text: str) -> Bad:
    return Bad("/a.nt", None, 7, text, "wrong")


@pytest.mark.parametrize("name", ["a.nt", "a.nt.gz"])
def test_a_line_known_by_its_text_gets_its_number(name: str, tmp_path: Path) -> None:
    at = file(tmp_path, "good\nbad line\nbad line\n", name)
    assert locate(known_by_text("bad line"), at) == Bad("/a.nt", 2, 7, "bad line", "wrong")


def test_a_line_that_another_begins_with_is_not_taken_for_it(tmp_path: Path) -> None:
    at = file(tmp_path, "<a:a> <a:b> <a:c> .\n<a:a> <a:b> <a:c>\n")
    assert locate(known_by_text("<a:a> <a:b> <a:c>"), at).line == 2


def test_a_long_line_is_known_by_its_beginning(tmp_path: Path) -> None:
    at = file(tmp_path, "short\n" + "x" * 2000 + "\n")
    found = locate(known_by_text("x" * SHOWN_TEXT), at)
    assert (found.line, found.text) == (2, "x" * SHOWN_TEXT)


def test_a_line_known_by_its_number_gets_its_text(tmp_path: Path) -> None:
    at = file(tmp_path, "one\ntwo\nthree")
    assert locate(Bad("/a.ttl", 2, 1, None, "wrong"), at).text == "two"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_are_no_part_of_a_line(end: str, tmp_path: Path) -> None:
    at = file(tmp_path, end.join(["one", "two", "three"]))
    assert locate(known_by_text("two"), at).line == 2


def test_a_lone_carriage_return_ends_a_line(tmp_path: Path) -> None:
    at = file(tmp_path, "one\rtwo\rthree")
    assert locate(known_by_text("two"), at).text == "two"


@pytest.mark.parametrize("bad", [Bad("/a", 3, 1, "text", "m"), Bad("/a", None, None, None, "m")])
def test_what_is_known_in_full_or_not_at_all_stays(bad: Bad, tmp_path: Path) -> None:
    assert locate(bad, file(tmp_path, "text\n")) == bad


def test_a_line_that_is_not_found_stays(tmp_path: Path) -> None:
    bad = known_by_text("elsewhere")
    assert locate(bad, file(tmp_path, "text\n")) == bad


def test_a_place_is_shown_as_far_as_it_is_known() -> None:
    assert str(Bad("/a.nt", 3, 7, "text", "wrong")) == "/a.nt:3:7: wrong\n    text"
    assert str(Bad("/a.nt", 3, None, None, "wrong")) == "/a.nt:3: wrong"
    assert str(Bad("/a.nt", None, None, None, "wrong")) == "/a.nt: wrong"


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    bad = Bad("a.nt", 1, 2, "\x1b[31m red \x07", "no \x00 here")
    assert str(bad) == "a.nt:1:2: no \\x00 here\n    \\x1b[31m red \\x07"
