"""The rules of a store: one file for each set of rules it ever had, named by what is in it.

A version names its rules in its commit, so the rules of the past stay known, and two writers who
bring the same rules write the same file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from inferlake.errors import StoreError
from inferlake.paths import Place
from inferlake.rules.load import RuleText


@dataclass(frozen=True)
class RuleBook:
    """The folder of a store's rules."""

    place: Place

    def save(self, rules: Iterable[RuleText]) -> str:
        """Keep `rules` and return the name that commits know them by."""
        raw = json.dumps([asdict(rule) for rule in rules], ensure_ascii=False).encode()
        digest = hashlib.sha256(raw).hexdigest()[:32]
        file = self.place.child(f"{digest}.json")
        if not file.exists():
            self.place.filesystem.create_dir(self.place.path, recursive=True)
            with file.filesystem.open_output_stream(file.path, compression=None) as sink:
                sink.write(raw)
        return digest

    def read(self, digest: str) -> tuple[RuleText, ...]:
        """Return the rules that a commit names."""
        file = self.place.child(f"{digest}.json")
        if not file.exists():
            raise StoreError(f"{file.address}: missing, though a version names these rules")
        with file.filesystem.open_input_file(file.path) as source:
            return tuple(RuleText(**rule) for rule in json.loads(source.read()))
