"""Times and lengths of time, as they are written on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Duration(click.ParamType):
    """A length of time such as 7d, 12h or 0."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = re.fullmatch(r"(\d+)([smhdw]?)", value)
        if not found or (not found[2] and int(found[1])):
            self.fail(f"{value!r} is no length of time; write 30s, 10m, 12h, 7d or 0", param, ctx)
        return timedelta(seconds=int(found[1]) * _UNITS.get(found[2], 1))


class Moment(click.ParamType):
    """A time such as 2026-01-31T12:00:00Z, or milliseconds since 1970; UTC unless it says so."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime | int:
        if not isinstance(value, str):
            return value
        if re.fullmatch(r"-?\d+", value):
            return int(value)
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-01-31T12:00:00Z", param, ctx)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
