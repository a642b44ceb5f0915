"""Author, date and message of a commit.

In: the bytes of a commit object. Out: a Commit. Never: more than `MAX_MESSAGE_LENGTH` characters of its message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

LONGEST: Final = 10_000
_AUTHOR: Final = re.compile(r"author (.*?) <(.*?)> (-?\d{1,12}) ([+-]\d{2})(\d{2})")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Commit:
    author: str  # Ann <ann@example.org>
    at: datetime
    message: str


def read_commit(content: bytes) -> Commit:
    head, _, message = content[: 10 * LONGEST].partition(b"\n\n")
    found = next(filter(None, map(_AUTHOR.fullmatch, head.decode("utf-8", "replace").splitlines())), None)
    said = message.decode("utf-8", "replace")[:LONGEST].strip()
    if found is None:
        return Commit("", _EPOCH, said)
    try:
        zone = timezone(timedelta(hours=int(found[4]), minutes=int(found[4][0] + found[5])))
        at = datetime.fromtimestamp(int(found[3]), UTC).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        at = _EPOCH
    return Commit(f"{found[1]} <{found[2]}>", at, said)
