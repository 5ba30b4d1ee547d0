"""Programs from what a user names: profiles of this package, and rule files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from pyarrow.fs import FileType

from inferlake.errors import RuleError
from inferlake.paths import place
from inferlake.rules.check import checked
from inferlake.rules.model import Program
from inferlake.rules.parse import parse

PROFILES = ("rdfs", "rdfs-full", "owl-horst", "owl2rl")
NONE = "none"
DEFAULT = ("rdfs",)


@dataclass(frozen=True)
class RuleText:
    """The text of one profile or file. A store keeps these: its rules do not change under it."""

    name: str
    text: str


# Names of profiles and paths of rule files, one or several. Texts may be among them.
RuleNames = str | os.PathLike[str] | Sequence[str | os.PathLike[str] | RuleText]


def names_of(rules: RuleNames) -> tuple[str | RuleText, ...]:
    """Return the names of rules, of which one may come alone."""
    several = [rules] if isinstance(rules, str | os.PathLike) else list(rules)
    for one in several:
        if not isinstance(one, str | os.PathLike | RuleText):
            raise RuleError(f"a {type(one).__name__} is no name of rules: give a profile or a path")
    return tuple(one if isinstance(one, RuleText) else os.fspath(one) for one in several)


def read_rules(names: Iterable[str | RuleText]) -> tuple[RuleText, ...]:
    """Return the texts of profiles and rule files; `none` stands for no rules at all.

    Texts may be among the names, and stay as they are.
    """
    wanted = list(dict.fromkeys(names))
    if NONE in wanted:
        if len(wanted) > 1:
            raise RuleError("none means no rules, and others are named too: leave one of them out")
        return ()
    return tuple(one if isinstance(one, RuleText) else _read(one) for one in wanted)


def compiled(texts: Iterable[RuleText]) -> Program:
    """Return the one program that `texts` make, or raise `RuleError` with all that is wrong."""
    return _compiled(tuple(texts))


@lru_cache(maxsize=16)  # every change of a store asks for its rules, which hardly ever change
def _compiled(texts: tuple[RuleText, ...]) -> Program:
    program = Program()
    wrong: list[str] = []
    for text in texts:
        try:
            program += parse(text.text, text.name)
        except RuleError as exc:  # go on, to tell of the other files too
            wrong.append(str(exc))
    try:
        checked(program)
    except RuleError as exc:
        wrong.append(str(exc))
    if wrong:
        raise RuleError("\n".join(wrong))
    return program


def _read(name: str) -> RuleText:
    if name in PROFILES:
        file = resources.files("inferlake.rules.profiles").joinpath(f"{name}.dl")
        return RuleText(name, file.read_text(encoding="utf-8"))
    at = place(name, blame=RuleError)
    if at.info().type != FileType.File:
        raise RuleError(
            f"{name}: neither a profile ({', '.join(PROFILES)}, {NONE}) nor a file; check the name"
        )
    try:
        return RuleText(name, at.read().decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise RuleError(f"{name}: not UTF-8 at byte {exc.start}; save it as UTF-8") from exc
