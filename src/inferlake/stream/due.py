"""The wall clock, and whether a store has facts that are due by it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from inferlake.maintain.expiries import next_due
from inferlake.session import Sessions
from inferlake.store import Store
from inferlake.store.until import has_expiring


def wall_clock() -> int:
    """Return the present, in milliseconds since 1970."""
    return int(time.time() * 1000)


@dataclass
class Due:
    """Tells whether facts are due: a look at the log, and one small job for each new version."""

    store: Store
    sessions: Sessions
    # The last version that was asked for the time of its next expiry, and the answer.
    _known: tuple[int, int | None] | None = field(default=None, init=False)

    def at(self, now: int) -> bool:
        """Tell whether something is to go by a time, in the newest version."""
        if not self.store.exists():
            return False
        base = self.store.snapshot()
        if not has_expiring(base):
            return False
        if self._known is None or self._known[0] != base.version:
            engine = self.sessions.for_reading()
            self._known = base.version, next_due(self.store, engine, base)
        due = self._known[1]
        return due is not None and due <= now
