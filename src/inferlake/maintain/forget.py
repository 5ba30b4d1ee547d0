"""Forget: take out every asserted triple that names an IRI, and in the end the IRI itself.

The removal is a change like any other, followed by a compaction, so that the current version has no
row of it left. Older versions still know it, until a vacuum deletes their files; it then purges the
dictionary of terms that no kept version uses (`maintain.purge`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from inferlake.errors import Conflict, InputError
from inferlake.input import FRAME
from inferlake.maintain.asked import Change, Source
from inferlake.maintain.change import apply
from inferlake.progress import Progress, Stopwatch, counted, one_line
from inferlake.rules.load import compiled
from inferlake.session import Engine, union
from inferlake.store import Layer, Store
from inferlake.store.compact import compact_facts
from inferlake.store.facts import TRIPLE, TRIPLE_ARITY, Candidates, argument_columns
from inferlake.store.table import Snapshot
from inferlake.terms.shape import SCOPE_PATTERN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPTS = 20

_IRI = re.compile(r'<?([^\s<>"{}|^`]+)>?')
_STORED_BLANK = re.compile(rf"_:{SCOPE_PATTERN}\S+")


@dataclass(frozen=True)
class ForgetReport:
    """What was, or would be, forgotten."""

    subject: str
    version: int
    # Facts that named it.
    asserted: int
    derived: int
    # Derived facts that name it all the same, because rules do.
    left: int
    # The rules that mention it.
    rules: tuple[str, ...]
    # Whether the store knew the term at all: if only older versions did, there is still its text.
    known: bool
    dry_run: bool
    engine: str
    seconds: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON would have it."""
        return {"operation": "forget", **asdict(self)}

    def __str__(self) -> str:
        return one_line("; ".join(self._told()), self.seconds, self.engine)

    def _told(self) -> list[str]:
        if not self.known:
            return [
                f"nothing names {self.subject} (IRIs are written in full)",
                f"still version {self.version}",
            ]
        told = [self._done]
        if not self.dry_run:
            told.append(f"version {self.version}")
        if self.rules:
            facts = f", and {counted(self.left, 'derived fact')}" if self.left else ""
            rules = f"rules still mention it ({', '.join(self.rules)}){facts}"
            told.append(f"{rules}: remove them, then forget it again")
        elif not self.dry_run:
            told.append("`inferlake vacuum` deletes what older versions know")
        return told

    @property
    def _done(self) -> str:
        gone = max(0, self.derived - self.left)
        counts = [counted(self.asserted, "asserted triple")] if self.asserted else []
        if gone:
            counts.append(counted(gone, "derived fact"))
        if not counts:
            return f"no fact names {self.subject}"
        if not self.dry_run:
            return f"forgot {' and '.join(counts)} that named {self.subject}"
        name = "names" if self.asserted + gone == 1 else "name"
        return f"would forget {' and '.join(counts)} that {name} {self.subject}"


def named(subject: str) -> str:
    """Return the term that a user names: an IRI, with or without its angles, or a stored node."""
    if _STORED_BLANK.fullmatch(subject):
        return _parsed(subject, subject)
    found = _IRI.fullmatch(subject)
    if found is None or subject.startswith("<") != subject.endswith(">"):
        raise _refusal(subject)
    return _parsed(f"<{found[1]}>", subject)


def _parsed(term: str, subject: str) -> str:
    """Return a term in canonical form, as the dictionary has it."""
    try:
        (triple,) = ox.parse(f"{term} <p:p> <o:o> .", format=ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as exc:
        raise _refusal(subject) from exc
    return f"_:{triple.subject.value}" if term.startswith("_:") else str(triple.subject)


def _refusal(subject: str) -> InputError:
    return InputError(
        f"{subject!r} is no IRI: write it in full, for example http://example.org/alice"
    )


def forget(
    store: Store, engine: Engine, subject: str, *, dry_run: bool, progress: Progress
) -> ForgetReport:
    """Remove all asserted triples that name a term, and what followed from them."""
    term, watch = named(subject), Stopwatch(progress)
    with watch.phase("find"):
        base = store.snapshot()
        id = _id(store, engine, term)
        asserted = _count(store, engine, base, "asserted", id)
        derived = _count(store, engine, base, "derived", id)
    version, left = base.version, 0
    if id is not None and not dry_run:
        with watch.phase("remove"):
            asserted = _removed(store, engine, id, asserted, progress)
        with watch.phase("compact"):
            version = _compacted(store, engine)
        with watch.phase("check"):
            left = _count(store, engine, store.snapshot(), "derived", id)
    texts = store.rules_at(base) or ()
    return ForgetReport(
        subject=term,
        version=version,
        asserted=asserted,
        derived=derived,
        left=left,
        rules=tuple(text.name for text in texts if term in compiled((text,)).constants),
        known=id is not None,
        dry_run=dry_run,
        engine=engine.name,
        seconds=watch.seconds,
    )


def _id(store: Store, engine: Engine, term: str) -> int | None:
    """Return the id of a term that the dictionary has; another may have the same hash."""
    displaced = store.terms.displaced(engine)
    if term in displaced:
        return displaced[term]
    id = store.hash.of(term)
    return id if store.terms.look_up(engine, [id]).get(id) == term else None


def _removed(store: Store, engine: Engine, id: int, count: int, progress: Progress) -> int:
    """Remove the asserted triples that name an id, also those that other writers bring meanwhile.

    Returns how many there were.
    """
    total = 0
    for _ in range(_ATTEMPTS):
        if not count:
            return total
        found = _naming(store, engine, store.snapshot(), "asserted", id)
        assert found is not None
        rows = found.selectExpr("s", "p", "o", "'asserted' AS layer")
        triples = store.terms.decode(engine, rows)
        change = Change(remove=Source((FRAME,), triples), operation="forget")
        total += apply(store, engine, change, progress).removed
        count = _count(store, engine, store.snapshot(), "asserted", id)
    raise Conflict(f"{store.place.address}: other writers assert it again and again; try later")


def _compacted(store: Store, engine: Engine) -> int:
    """Rewrite the facts without what is gone, say so in the log, and return the version."""
    for _ in range(_ATTEMPTS):
        try:
            known = partial(_arities, store)
            return compact_facts(engine, store.facts, known, forgets=True).version
        except Conflict:
            continue  # another compaction came first, and may have kept what this one drops
    raise Conflict(f"{store.place.address}: other compactions came first; forget it again later")


def _arities(store: Store, snapshot: Snapshot) -> dict[str, int]:
    known = compiled(store.rules_at(snapshot) or ()).arities
    return {**known, TRIPLE: TRIPLE_ARITY}


def _count(store: Store, engine: Engine, snapshot: Snapshot, layer: Layer, id: int | None) -> int:
    """Count the facts of a layer, of whatever relation, that have an id in some place."""
    if id is None:
        return 0
    frames = (
        _naming(store, engine, snapshot, layer, id, relation, arity)
        for relation, arity in _arities(store, snapshot).items()
    )
    return sum(frame.count() for frame in frames if frame is not None)


def _naming(
    store: Store,
    engine: Engine,
    snapshot: Snapshot,
    layer: Layer,
    id: int,
    relation: str = TRIPLE,
    arity: int = TRIPLE_ARITY,
) -> DataFrame | None:
    """Return the facts of a relation and layer that have an id in some place, or None."""
    found = []
    columns = argument_columns(arity)
    for place, column in enumerate(columns):
        near = Candidates({column: frozenset({id})})
        if store.facts.files(snapshot, layer, 1, near, relation):
            others = "".join(f" AND {earlier} <> {id}" for earlier in columns[:place])
            live = store.facts.live(engine, snapshot, layer, near, relation, arity)
            found.append(live.where(f"{column} = {id}{others}").select(*columns))
    return union(found) if found else None
