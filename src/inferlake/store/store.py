"""A store: one folder with two Delta tables, no server.

kb/terms/      id, term
kb/facts/      signed rows; its versions are the store's versions
kb/rules/      the rules that versions name
kb/_staging/   work in progress; nothing there is ever read by anyone else
kb/streams/    how far streams have come, and the lines they could not read
"""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow.fs as pafs

from inferlake.errors import NewerFormat, NotAStore, StoreError, VersionNotFound
from inferlake.paths import Place, place
from inferlake.rules.load import RuleText
from inferlake.session import Engine
from inferlake.store.dictionary import Dictionary
from inferlake.store.facts import FactTable
from inferlake.store.rules import RuleBook
from inferlake.store.table import INFO, TOKEN, Snapshot, no_table
from inferlake.terms import FULL, TermHash

# Raised when a release writes what an older one would misread.
FORMAT = 1

STREAMS = "streams"
_FOLDERS = ("terms", "facts", "rules", "_staging", STREAMS)
# What every change writes into, besides the store's own folder.
_CHANGED = ("_staging", "terms", "terms/_delta_log", "facts", "facts/_delta_log")

# Operations that make a version of the same facts.
ARRANGING = ("create", "compact", "vacuum", "purge")

# The key under which a commit names its rules.
RULES = "rules"

# The key under which a commit says whether its version breaks no constraint.
SOUND = "sound"

# The key under which a commit says how many rounds it took to derive all that is derived.
DEPTH = "depth"

# The key under which a commit says how many removals to come are hurried.
HURRIED = "hurried"

# How the names of our own applications begin.
RESERVED = "inferlake-"

# The applications under which the facts' log says that terms are about to be purged, and that they
# were, each with the number of that commit; and up to which version.
PURGING = "inferlake-purging"
PURGED = "inferlake-purged"
PURGED_TO = "inferlake-purged-to"

# The application under which the dictionary's log numbers the commits that take terms away.
DROPPED = "inferlake-dropped"

# N-Triples text is about this many times the bytes of the tables; it only decides between engines.
_INFLATION = 12

# Engines take some of these in the path of a table for a pattern, and deltalake undoes others as
# parts of a URI: either would look for a store, or write it, elsewhere.
_UNUSABLE = re.compile(r"[*?\[\]{}\\#^|]|%[0-9A-Fa-f]{2}")


@dataclass(frozen=True)
class VersionInfo:
    """One version, as its commit describes it."""

    version: int
    time: datetime
    operation: str
    info: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """The tables of a store and their place. Cheap: nothing is read until it is asked for."""

    place: Place
    hash: TermHash = FULL
    # Which stored files of facts were read, with their rows.
    reads: dict[str, int] = field(default_factory=dict, compare=False)
    # Which folders of facts were written; None where nobody asks.
    writes: list[str] | None = field(default=None, compare=False)

    @classmethod
    def at(cls, path: str, hash: TermHash = FULL) -> Store:
        """Return the store at `path`, whether or not there is one yet."""
        return cls(place(path, blame=StoreError), hash)

    @property
    def facts(self) -> FactTable:
        """The facts table."""
        return FactTable.at(self.place, self.reads, self.writes)

    def attempt(self) -> Store:
        """Return the same store, with nothing read or written yet."""
        return replace(self, reads={}, writes=[])

    @property
    def terms(self) -> Dictionary:
        """The dictionary."""
        return Dictionary.at(self.place)

    @property
    def rules(self) -> RuleBook:
        """The rules."""
        return RuleBook(self.place.child("rules"))

    def rules_at(self, snapshot: Snapshot) -> tuple[RuleText, ...] | None:
        """Return the rules that a version was closed under; None before there were any."""
        said = self.facts.table.last_said(snapshot, RULES)
        if said is None:
            return None
        # Equal texts are one file, whatever they are called.
        texts = zip(said["names"], self.rules.read(said["digest"]), strict=True)
        return tuple(replace(text, name=name) for name, text in texts)

    def exists(self) -> bool:
        """Tell whether a store is there; raise where none can be, or something else is."""
        if found := _UNUSABLE.search(self.place.address):
            raise StoreError(
                f"{self.place.address}: no store can be in a folder with {found[0]} in its path;"
                " name another"
            )
        info = self.place.info()
        if info.type == pafs.FileType.NotFound:
            return False
        if info.type == pafs.FileType.File:
            raise NotAStore(f"{self.place.address}: a file, not a store; name a folder")
        if self.facts.table.exists():
            return True
        self._require_unused_terms()
        strangers = [f for f in self.place.names() if f not in _FOLDERS]
        if strangers:
            raise NotAStore(
                f"{self.place.address}: not an Inferlake store (it holds {strangers[0]});"
                " check the path; a new store wants an empty or a new folder"
            )
        return False

    def _require_unused_terms(self) -> None:
        """Raise if the dictionary has terms: the facts, which are created before those, were lost.

        An empty dictionary alone is what a first load leaves behind that died.
        """
        terms, facts = self.terms.table, self.facts.table
        # Looked for again: another writer may have created both since.
        if terms.exists() and terms.snapshot().version > 0 and not facts.exists():
            raise no_table(facts.place)

    def require_changeable(self) -> None:
        """Raise unless this store can be changed, or created: before any work, and for little.

        A store that has lost its dictionary would get a new one, and facts without terms; and one
        that this user may not write would fail halfway, in an engine's words.
        """
        if self.exists():
            self.snapshot()  # refuses what this release cannot read
            if not self.terms.table.exists():
                raise no_table(self.terms.table.place)
        for folder in (self.place, *(self.place.child(name) for name in _CHANGED)):
            folder.require_writable()

    def require(self) -> Store:
        """Return this store, or raise `NotAStore` where there is none."""
        if not self.exists():
            raise NotAStore(f"{self.place.address}: no store there; `inferlake load` creates one")
        return self

    def create(self) -> None:
        """Create the tables where they are missing, as version 0 without facts."""
        description = json.dumps({"inferlake": {"format": FORMAT}})
        try:
            self.place.filesystem.create_dir(self.place.path, recursive=True)
        except OSError as exc:
            raise StoreError(f"{self.place.address}: cannot be created: {exc}") from exc
        # Facts last: a store exists when its facts do.
        for table in (self.terms.table, self.facts.table):
            if not table.exists():
                table.create(description)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return a version's facts; raise `VersionNotFound` where its files are gone."""
        snapshot = self.facts.table.snapshot(version)
        self._check_format(snapshot.description)
        if version is not None:
            oldest = self.oldest_kept()
            if version < oldest:
                raise VersionNotFound(
                    f"{self.place.address}: version {version} was vacuumed;"
                    f" the oldest that is kept is {oldest}"
                )
        return snapshot

    def require_files(self, snapshot: Snapshot, terms: Snapshot | None = None) -> None:
        """Raise if files went missing while they were read: Sail takes them for empty ones.

        Those of a version's facts, and of the dictionary if it was read, as it was then.
        """
        read = [(self.facts.table, snapshot), (self.terms.table, terms)]
        try:
            for table, some in read:
                table.require(some.files if some is not None else ())
        except StoreError as exc:
            for table, _ in read:
                table.require(table.snapshot().files)  # what is worse comes first
            raise StoreError(
                f"{self.place.address}: a vacuum deleted files while they were read: do it again"
            ) from exc

    def text_size(self, snapshot: Snapshot) -> int:
        """Return about how many bytes of text a version's facts and the dictionary stand for."""
        files = snapshot.files + self.terms.table.snapshot().files
        return sum(file.size for file in files) * _INFLATION

    def oldest_kept(self) -> int:
        """Return the oldest version that no vacuum has touched."""
        kept = (v.info.get("oldest_kept", 0) for v in self.history())
        return max(kept, default=0)

    def history(self, most: int | None = None) -> list[VersionInfo]:
        """Return the versions, newest first; at most so many."""
        return [_version_info(entry) for entry in self.facts.table.history(most)]

    @contextmanager
    def staging(self) -> Iterator[Place]:
        """Yield a fresh folder for work in progress, and remove it at the end, come what may."""
        all_work = self.place.child("_staging")
        folder = all_work.child(uuid.uuid4().hex)
        was_there = self.place.exists()
        try:
            yield folder
        finally:
            # What is left behind harms nobody and is swept by vacuum; the work is done or undone.
            with suppress(OSError):
                folder.remove()
                all_work.remove_if_empty()
                if not was_there:
                    self.place.remove_if_empty()  # a load that failed leaves no trace

    @contextmanager
    def scratch(self, engine: Engine) -> Iterator[Place]:
        """Yield a fresh folder for what `engine` writes while it only reads the store.

        That is in the store, where all workers see it; if this user may not write there, it is a
        temporary folder of this machine. Raises `StoreError` if neither will do.
        """
        staging = self.place.child("_staging")
        if staging.is_writable():
            with self.staging() as folder:
                yield folder
            return
        if not engine.is_here:
            staging.require_writable()
        with tempfile.TemporaryDirectory(prefix="inferlake-", ignore_cleanup_errors=True) as made:
            yield place(made).child("scratch")

    def _check_format(self, description: str) -> None:
        try:
            found = json.loads(description)["inferlake"]["format"]
        except (ValueError, KeyError, TypeError) as exc:
            raise NotAStore(
                f"{self.place.address}: a Delta table, but not one of Inferlake's;"
                " name a new folder"
            ) from exc
        if found > FORMAT:
            raise NewerFormat(
                f"{self.place.address}: written in format {found}, and this release reads up to"
                f" {FORMAT}; upgrade with: pip install -U inferlake"
            )


def _version_info(entry: dict[str, Any]) -> VersionInfo:
    info = dict(entry.get(INFO) or {})
    info.pop(TOKEN, None)
    operation = info.pop("operation", None) or entry["operation"].lower()
    time = datetime.fromtimestamp(entry["timestamp"] / 1000, UTC)
    return VersionInfo(entry["version"], time, operation, info)
