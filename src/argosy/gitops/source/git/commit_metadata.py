"""Author, date and message of a commit.

In: the bytes of a commit object. Out: a Commit. Never: more than `MAX_MESSAGE_LENGTH` characters of its message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

MAX_MESSAGE_LENGTH: Final = 10_000
_AUTHOR_LINE: Final = re.compile(r"author (.*?) <(.*?)> (-?\d{1,12}) ([+-]\d{2})(\d{2})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class GitCommit:
    author: str  # Ann <ann@example.org>
    authored_at: datetime
    message: str


def read_commit(content: bytes) -> GitCommit:
    header, _, message = content[: 10 * MAX_MESSAGE_LENGTH].partition(b"\n\n")
    author = next(filter(None, map(_AUTHOR_LINE.fullmatch, header.decode("utf-8", "replace").splitlines())), None)
    message_text = message.decode("utf-8", "replace")[:MAX_MESSAGE_LENGTH].strip()
    if author is None:
        return GitCommit("", _EPOCH, message_text)
    try:
        zone = timezone(timedelta(hours=int(author[4]), minutes=int(author[4][0] + author[5])))
        authored_at = datetime.fromtimestamp(int(author[3]), UTC).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        authored_at = _EPOCH
    return GitCommit(f"{author[1]} <{author[2]}>", authored_at, message_text)
