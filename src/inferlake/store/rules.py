"""The rules of a store: one file for each set of rules it ever had, named by what is in it.

A version names its rules in its commit, so the rules of the past stay known, and two writers who
bring the same rules write the same file.
"""

from __future__ import annotations

import hashlib
import json
import uuid
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
        texts = tuple(rules)
        digest = _digest(texts)
        if self._found(digest) is None:
            raw = json.dumps([asdict(text) for text in texts], ensure_ascii=False).encode()
            self.place.filesystem.create_dir(self.place.path, recursive=True)
            # Beside, then renamed: a crash leaves no half of what a commit could name.
            unfinished = self.place.child(f"{uuid.uuid4().hex}.tmp")
            with unfinished.filesystem.open_output_stream(
                unfinished.path, compression=None
            ) as sink:
                sink.write(raw)
            self.place.filesystem.move(unfinished.path, self.place.child(f"{digest}.json").path)
        return digest

    def read(self, digest: str) -> tuple[RuleText, ...]:
        """Return the rules that a commit names."""
        texts = self._found(digest)
        if texts is None:
            raise StoreError(
                f"{self.place.address}/{digest}.json: missing or damaged, though a version names"
                " these rules; load with the same --rules to write it again"
            )
        return texts

    def _found(self, digest: str) -> tuple[RuleText, ...] | None:
        """Return the rules of that name, or None if they are not there in full."""
        file = self.place.child(f"{digest}.json")
        if not file.exists():
            return None
        raw = file.read()
        try:
            texts = tuple(RuleText(**text) for text in json.loads(raw))
        except (ValueError, TypeError):
            return None
        return texts if _digest(texts) == digest else None


def _digest(texts: Iterable[RuleText]) -> str:
    """Return a name that depends on what the rules say, and not on where they came from."""
    raw = json.dumps([text.text for text in texts], ensure_ascii=False).encode()
    return hashlib.sha256(raw).hexdigest()[:32]
