"""Which commit wrote a line.

In: a folder with a repository, a revision, a file and a line. Out: Blame, or None where git does not know. Never:
fetches; fails for a line that is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from argosy.source.git.command import GitFailed, TooMuchOutput, environment, run_git

SECONDS: Final = 10.0
LONGEST: Final = 80  # of what is quoted of a commit
_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Blame:
    revision: str
    author: str  # the name, without an address
    at: datetime
    subject: str


async def blame(folder: Path, revision: str, file: str, line: int) -> Blame | None:
    if not _COMMIT.fullmatch(revision) or not file or line < 1:
        return None
    words = ("blame", "--porcelain", "-L", f"{line},{line}", revision, "--", file)
    try:
        printed = await run_git(folder, words, env=environment({}, {"GIT_ALLOW_PROTOCOL": "none"}), seconds=SECONDS)
    except (GitFailed, TooMuchOutput, TimeoutError):
        return None
    return read_blame(printed.decode("utf-8", "replace"))


def read_blame(printed: str) -> Blame | None:
    """The first commit of what `git blame --porcelain` prints."""
    head, *lines = printed.splitlines() or [""]
    revision = head.partition(" ")[0]
    if not _COMMIT.fullmatch(revision):
        return None
    said: dict[str, str] = {}
    for each in lines:
        if each.startswith("\t"):
            break
        name, _, value = each.partition(" ")
        said.setdefault(name, value)
    seconds = said.get("author-time", "")
    at = datetime.fromtimestamp(int(seconds) if seconds.isdecimal() and len(seconds) < 12 else 0, UTC)
    return Blame(revision, _short(said.get("author", "")), at, _short(said.get("summary", "")))


def _short(text: str) -> str:
    clean = "".join(sign if sign.isprintable() else "?" for sign in text)
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"
