"""Logs as Argo CD streams them.

In: what the query asks for, lines. Out: which lines are wanted, and entries. Never: a line that is longer than a page.
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
        """argo: what begins with an exclamation mark is what is not wanted."""
        if not self.filter:
            return True
        found = self.filter in line if self.matches_case else self.filter.lower() in line.lower()
        return found is not self.is_inverse


def read_wanted(query: Query, now: datetime) -> Wanted:
    since = query.number("sinceSeconds", 0, most=1 << 40) or _ago(_time(query, "sinceTime"), now)
    tail = query.number("tailLines", 0, most=MOST)
    text = query.text("filter")
    if _time(query, "untilTime") is not None:
        raise UserError("where logs end cannot be asked for; leave it out, and use sinceTime", where="untilTime")
    excerpt = Excerpt(query.flag("follow"), tail or None, since or None, query.flag("previous"))
    return Wanted(excerpt, text.removeprefix("!"), query.flag("matchCase"), text.startswith("!"))


def _time(query: Query, name: str) -> datetime | None:
    """argo: RFC 3339; also `sinceTime.seconds`, as its generated clients send it."""
    seconds = query.number(f"{name}.seconds", 0, most=1 << 36)
    text = query.text(name) or query.text(f"{name}Str")
    try:
        found = datetime.fromtimestamp(seconds, UTC) if seconds else datetime.fromisoformat(text) if text else None
    except (ValueError, OverflowError, OSError):
        raise UserError(f"{quoted(text)} is no time; write it as 2026-01-02T15:04:05Z", where=name) from None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


def _ago(time: datetime | None, now: datetime) -> int:
    return max(int((now - time).total_seconds()), 1) if time is not None else 0


def entry(content: str, pod: str, now: str, *, is_last: bool = False) -> dict[str, Any]:
    """argo: the last one says so, and has no line. Its time is when the server saw it: lines here carry none."""
    cut = content if len(content) <= LONGEST else content[:LONGEST] + " …"
    return {"content": cut, "timeStampStr": now, "podName": pod, "last": is_last}
