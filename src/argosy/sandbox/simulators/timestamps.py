"""Formats and parses timestamps as Kubernetes writes them (whole seconds, UTC), and durations.

In: a clock's time. Out: text, and back. Never: reads a clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from argosy.errors import UserError

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
MOST_SECONDS: Final = 10 * 365 * 86400.0


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def seconds_of(text: str, where: str) -> float:
    """Parse a duration such as `1m30s`, `250ms`, or plain seconds such as `2`. Raises UserError."""
    shown = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", shown):
        return min(float(shown), MOST_SECONDS)
    parts = _DURATION.findall(shown)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != shown:
        raise UserError(f"invalid duration {text!r}; write for example 2s, 1m30s or 250ms", where=where)
    return min(sum(float(number) * _SECONDS[unit] for number, unit in parts), MOST_SECONDS)


class Moments:
    """Remembers the exact time behind each timestamp that was written.

    This makes waits exact to less than a second; after a restart, the written timestamps are enough.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._exact: dict[tuple[str, str], datetime] = {}
        self._most = most

    def write(self, uid: str, moment: datetime) -> str:
        text = stamp(moment)
        if (uid, text) not in self._exact:
            if len(self._exact) >= self._most:
                del self._exact[next(iter(self._exact))]
            self._exact[uid, text] = moment
        return text

    def read(self, uid: str, text: str) -> datetime:
        return self._exact.get((uid, text)) or moment_of(text)


def left(since: datetime, seconds: float, now: datetime) -> float:
    """Return the seconds until `seconds` after `since`; 0 or less if that time has passed.

    Use it for deadlines. For delays use `remaining_delay`, which does not grow if the clock is set back.
    """
    return (since + timedelta(seconds=seconds) - now).total_seconds()


def span(seconds: float) -> str:
    """Format a duration as Kubernetes does: 10s, 1m20s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
