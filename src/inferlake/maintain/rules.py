"""The rules of a change: those the caller names, else those the store has, else the default."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from inferlake.errors import InputError
from inferlake.rules.load import DEFAULT, RuleText, compiled, read_rules
from inferlake.rules.model import Program
from inferlake.session import Engine
from inferlake.store.store import RULES, Store
from inferlake.store.table import Snapshot


@dataclass(frozen=True)
class RuleChange:
    """Rules to add to those that a version has, and the names of those to take away."""

    add: tuple[RuleText, ...] = ()
    remove: tuple[str, ...] = ()

    def of(self, there: Iterable[RuleText]) -> tuple[RuleText, ...]:
        """Return the rules that come of those there are."""
        texts = {text.name: text for text in there}
        known = ", ".join(texts) or "none"
        for name in dict.fromkeys(self.remove):
            if name not in texts:
                raise InputError(f"no rules {name} in the store; it has: {known}")
            del texts[name]
        return tuple((texts | {text.name: text for text in self.add}).values())


# Rules by name or text; or how to change those that the store has; or None, for those.
Wanted = tuple[str | RuleText, ...] | RuleChange | None


@dataclass(frozen=True)
class ChosenRules:
    """Rules as a store keeps them."""

    store: Store
    texts: tuple[RuleText, ...]
    digest: str
    program: Program
    # What the version said of its rules that these were chosen for.
    over: dict[str, Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(text.name for text in self.texts)

    @property
    def said(self) -> dict[str, Any]:
        """What a commit says of its rules."""
        return {"names": list(self.names), "digest": self.digest}

    def stand_in(self, snapshot: Snapshot) -> bool:
        """Tell whether a version is closed under just these rules."""
        said = self.store.facts.table.last_said(snapshot, RULES)
        return said is not None and said["digest"] == self.digest

    def fit(self, snapshot: Snapshot) -> bool:
        """Tell whether a version has the rules that these were chosen for."""
        return self.store.facts.table.last_said(snapshot, RULES) == self.over


def chosen_rules(store: Store, wanted: Wanted) -> ChosenRules:
    """Return the rules for the next version of a store that exists."""
    newest = store.snapshot()
    if isinstance(wanted, tuple):
        texts = read_rules(wanted)
    else:
        there = store.rules_at(newest)
        texts = read_rules(DEFAULT) if there is None else there
        texts = texts if wanted is None else wanted.of(there or ())
    program = compiled(texts)  # what is wrong with them must show before anything is written
    over = store.facts.table.last_said(newest, RULES)
    return ChosenRules(store, texts, store.rules.save(texts), program, over)


def add_constants(store: Store, engine: Engine, rules: ChosenRules, *, anew: bool = False) -> None:
    """Put the terms that rules mention into the dictionary: derived facts may bring them in.

    Not if the version has these rules already, unless it is to be done `anew`, after a purge: it
    may have taken terms, and the rules themselves if no version had them.
    """
    if anew:
        store.rules.save(rules.texts)
    if rules.stand_in(store.snapshot()) and not anew:
        return
    terms = sorted(rules.program.constants)
    if not terms:
        return
    ids = [store.hash.of(term) for term in terms]
    table = pa.table({"id": pa.array(ids, pa.int64()), "term": pa.array(terms, pa.string())})
    frame = engine.session.createDataFrame(table)
    few = frozenset(zip(ids, terms, strict=True))
    store.terms.add(engine, frame, len(terms), few=few)
