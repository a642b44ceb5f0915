"""Parses timestamps as Kubernetes writes them (whole seconds, UTC), and parses and formats durations.

In: a clock's time. Out: text, and back. Never: reads a clock.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from argosy.errors import UserError
from argosy.kube.objects.timestamps_and_delays import format_timestamp

_DURATION_PATTERN: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS_PER_UNIT: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
MAX_DURATION_SECONDS: Final = 10 * 365 * 86400.0


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text)


def parse_duration(text: str, where: str) -> float:
    """Parse a duration such as `1m30s`, `250ms`, or plain seconds such as `2`. Raises UserError."""
    stripped = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        return min(float(stripped), MAX_DURATION_SECONDS)
    parts = _DURATION_PATTERN.findall(stripped)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != stripped:
        raise UserError(f"invalid duration {text!r}; write for example 2s, 1m30s or 250ms", where=where)
    return min(sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts), MAX_DURATION_SECONDS)


class ExactTimestamps:
    """Remembers the exact time behind each timestamp that was written.

    This makes waits exact to less than a second; after a restart, the written timestamps are enough.
    """

    def __init__(self, max_entries: int = 20_000) -> None:
        self._exact: dict[tuple[str, str], datetime] = {}
        self._max_entries = max_entries

    def format_and_remember(self, uid: str, moment: datetime) -> str:
        text = format_timestamp(moment)
        if (uid, text) not in self._exact:
            if len(self._exact) >= self._max_entries:
                del self._exact[next(iter(self._exact))]
            self._exact[uid, text] = moment
        return text

    def parse_exact(self, uid: str, text: str) -> datetime:
        return self._exact.get((uid, text)) or parse_timestamp(text)


def seconds_until_deadline(since: datetime, seconds: float, now: datetime) -> float:
    """Return the seconds until `seconds` after `since`; 0 or less if that time has passed.

    Use it for deadlines. For delays use `remaining_delay`, which does not grow if the clock is set back.
    """
    return (since + timedelta(seconds=seconds) - now).total_seconds()


def format_duration(seconds: float) -> str:
    """Format a duration as Kubernetes does: 10s, 1m20s."""
    minutes, remaining_seconds = divmod(int(seconds), 60)
    return f"{minutes}m{remaining_seconds}s" if minutes else f"{remaining_seconds}s"
