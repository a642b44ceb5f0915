"""Parameters and entries of log streams in Argo CD's format.

In: query parameters, lines. Out: a LogRequest, log entries. Never: a line longer than MAX_LINE_LENGTH.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application_client.resource_actions_and_logs import LogOptions
from argosy.web.request import QueryParameters, quote_input

MAX_LINE_LENGTH: Final = 64 << 10  # characters of a line
MAX_TAIL_LINES: Final = 1_000_000  # lines of a tail


@dataclass(frozen=True)
class LogRequest:
    excerpt: LogOptions
    filter: str = ""
    matches_case: bool = False
    is_inverse: bool = False

    def matches(self, line: str) -> bool:
        """argo: A leading exclamation mark inverts the filter."""
        if not self.filter:
            return True
        is_match = self.filter in line if self.matches_case else self.filter.lower() in line.lower()
        return is_match is not self.is_inverse


def read_log_request(query: QueryParameters, now: datetime) -> LogRequest:
    since = query.get_int("sinceSeconds", 0, maximum=1 << 40) or _seconds_ago(_read_time(query, "sinceTime"), now)
    tail = query.get_int("tailLines", 0, maximum=MAX_TAIL_LINES)
    text = query.get_text("filter")
    if _read_time(query, "untilTime") is not None:
        raise UserError("an end time of logs is not supported; remove it and use sinceTime", where="untilTime")
    excerpt = LogOptions(query.get_bool("follow"), tail or None, since or None, query.get_bool("previous"))
    return LogRequest(excerpt, text.removeprefix("!"), query.get_bool("matchCase"), text.startswith("!"))


def _read_time(query: QueryParameters, name: str) -> datetime | None:
    """argo: RFC 3339, or `sinceTime.seconds` as sent by generated clients."""
    seconds = query.get_int(f"{name}.seconds", 0, maximum=1 << 36)
    text = query.get_text(name) or query.get_text(f"{name}Str")
    try:
        time = datetime.fromtimestamp(seconds, UTC) if seconds else datetime.fromisoformat(text) if text else None
    except (ValueError, OverflowError, OSError):
        raise UserError(f"invalid time {quote_input(text)}: use the format 2026-01-02T15:04:05Z", where=name) from None
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


def _seconds_ago(time: datetime | None, now: datetime) -> int:
    return max(int((now - time).total_seconds()), 1) if time is not None else 0


def build_log_entry(content: str, pod: str, now: str, *, is_last: bool = False) -> dict[str, Any]:
    """argo: The last entry is empty and marked. The time is that of the server, as lines have no timestamp."""
    truncated = content if len(content) <= MAX_LINE_LENGTH else content[:MAX_LINE_LENGTH] + " …"
    return {"content": truncated, "timeStampStr": now, "podName": pod, "last": is_last}
