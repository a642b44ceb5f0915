"""Audit trail: the latest audit lines of this server, for the activity page.

In: audit lines. Out: the latest, oldest first. Never: lets requests without a session displace lines of accounts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

MAX_RECENT_LINES: Final = 500
MAX_ANONYMOUS_LINES: Final = 100
ANONYMOUS_NAME: Final = "nobody"


class AuditTrail:
    """The latest audit lines of this server; the log has all. Strangers have a separate limit."""

    def __init__(self) -> None:
        self._user_lines: deque[dict[str, Any]] = deque(maxlen=MAX_RECENT_LINES)
        self._anonymous_lines: deque[dict[str, Any]] = deque(maxlen=MAX_ANONYMOUS_LINES)

    def add(self, line: Mapping[str, Any], time: str) -> None:
        """Add a line; a repeated line only increases its count."""
        recent = self._anonymous_lines if line["who"] == ANONYMOUS_NAME else self._user_lines
        last_line = recent[-1] if recent else {}
        if {**last_line, "time": "", "count": 0} == {**line, "time": "", "count": 0}:
            last_line |= {"time": time, "count": last_line["count"] + 1}
        else:
            recent.append({**line, "time": time, "count": 1})

    @property
    def lines(self) -> list[dict[str, Any]]:
        return sorted((*self._user_lines, *self._anonymous_lines), key=lambda line: str(line["time"]))
