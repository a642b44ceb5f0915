"""Finds the commit that wrote a line, and the one that last changed a file.

In: a repository folder, a revision, a file and a line. Out: Blame, or None if git cannot tell. Never: fetches; raises
for a line that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from argosy.gitops.source.git.command import GitFailed, TooMuchOutput, environment, run_git

SECONDS: Final = 10.0
MOST_LINES: Final = 40  # that may belong to one field
LONGEST: Final = 80  # characters of an author or subject
_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Blame:
    revision: str
    author: str  # name without email address
    at: datetime
    subject: str


async def blame(folder: Path, revision: str, file: str, line: int) -> Blame | None:
    """Return the latest commit that wrote the line or the lines nested below it, which may hold the value."""
    if not _COMMIT.fullmatch(revision) or not file or line < 1:
        return None
    words = ("blame", "--porcelain", "-L", f"{line},+{MOST_LINES}", revision, "--", file)
    env = environment({}, {"GIT_ALLOW_PROTOCOL": "none"})
    try:
        printed = await run_git(folder, words, env=env, seconds=SECONDS)
    except (GitFailed, TooMuchOutput, TimeoutError):
        return None
    return read_blame(printed.decode("utf-8", "replace"))


async def last_change(folder: Path, since: str, until: str, file: str) -> Blame | None:
    """Return the latest commit in `since..until` that changed or deleted the file."""
    if not _COMMIT.fullmatch(since) or not _COMMIT.fullmatch(until) or not file:
        return None
    words = ("log", "-1", "--format=%H%n%at%n%an%n%s", f"{since}..{until}", "--", f":(top,literal){file}")
    env = environment({}, {"GIT_ALLOW_PROTOCOL": "none"})
    try:
        printed = await run_git(folder, words, env=env, seconds=SECONDS)
    except (GitFailed, TooMuchOutput, TimeoutError):
        return None
    revision, at, author, subject = [*printed.decode("utf-8", "replace").split("\n"), "", "", "", ""][:4]
    said = {"author": author, "author-time": at, "summary": subject}
    return _made(revision, said) if _COMMIT.fullmatch(revision) else None


def read_blame(printed: str) -> Blame | None:
    """Parse `git blame --porcelain`: the latest commit of the first line and the lines nested below it."""
    said: dict[str, dict[str, str]] = {}  # git prints it once per commit
    lines: list[tuple[str, str]] = []
    revision = ""
    for each in printed.split("\n"):
        name, _, value = each.partition(" ")
        if each.startswith("\t"):
            lines.append((revision, each[1:]))
        elif _COMMIT.fullmatch(name):
            revision = name
            said.setdefault(revision, {})
        elif revision:
            said[revision].setdefault(name, value)
    found = [_made(revision, said[revision]) for revision in _of_the_first(lines)]
    return max(reversed(found), key=lambda each: each.at, default=None)  # on a tie, the last line


def _of_the_first(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    """k8s: in YAML, nested lines are indented deeper; list elements need not be."""
    lead, holds = -1, False
    for revision, text in lines:
        indent = len(text) - len(text.lstrip())
        if lead < 0:
            lead, holds = indent, text.rstrip().endswith(":")
        elif not text.strip() or (indent <= lead and not (holds and indent == lead and text.lstrip().startswith("- "))):
            return
        yield revision


def _made(revision: str, said: Mapping[str, str]) -> Blame:
    seconds = said.get("author-time", "")
    at = datetime.fromtimestamp(int(seconds) if seconds.isdecimal() and len(seconds) < 12 else 0, UTC)
    return Blame(revision, _short(said.get("author", "")), at, _short(said.get("summary", "")))


def _short(text: str) -> str:
    clean = "".join(sign if sign.isprintable() else "?" for sign in text)
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"
