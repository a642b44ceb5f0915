"""Parameters and entries of log streams in Argo CD's format.

In: query parameters, lines. Out: a LogRequest, log entries. Never: a line longer than MAX_LINE_LENGTH.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application_client.resource_actions import Excerpt
from argosy.web.request import Query, quoted

LONGEST: Final = 64 << 10  # characters of a line
MOST: Final = 1_000_000  # lines of a tail


@dataclass(frozen=True)
class Wanted:
    excerpt: Excerpt
    filter: str = ""
    matches_case: bool = False
    is_inverse: bool = False

    def takes(self, line: str) -> bool:
        """argo: A leading exclamation mark inverts the filter."""
        if not self.filter:
            return True
        found = self.filter in line if self.matches_case else self.filter.lower() in line.lower()
        return found is not self.is_inverse


def read_wanted(query: Query, now: datetime) -> Wanted:
    since = query.number("sinceSeconds", 0, most=1 << 40) or _ago(_time(query, "sinceTime"), now)
    tail = query.number("tailLines", 0, most=MOST)
    text = query.text("filter")
    if _time(query, "untilTime") is not None:
        raise UserError("an end time of logs is not supported; remove it and use sinceTime", where="untilTime")
    excerpt = Excerpt(query.flag("follow"), tail or None, since or None, query.flag("previous"))
    return Wanted(excerpt, text.removeprefix("!"), query.flag("matchCase"), text.startswith("!"))


def _time(query: Query, name: str) -> datetime | None:
    """argo: RFC 3339, or `sinceTime.seconds` as sent by generated clients."""
    seconds = query.number(f"{name}.seconds", 0, most=1 << 36)
    text = query.text(name) or query.text(f"{name}Str")
    try:
        found = datetime.fromtimestamp(seconds, UTC) if seconds else datetime.fromisoformat(text) if text else None
    except (ValueError, OverflowError, OSError):
        raise UserError(f"invalid time {quoted(text)}: use the format 2026-01-02T15:04:05Z", where=name) from None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


def _ago(time: datetime | None, now: datetime) -> int:
    return max(int((now - time).total_seconds()), 1) if time is not None else 0


def entry(content: str, pod: str, now: str, *, is_last: bool = False) -> dict[str, Any]:
    """argo: The last entry is empty and marked. The time is that of the server, as lines have no timestamp."""
    cut = content if len(content) <= LONGEST else content[:LONGEST] + " …"
    return {"content": cut, "timeStampStr": now, "podName": pod, "last": is_last}
