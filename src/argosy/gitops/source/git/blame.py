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

from argosy.gitops.source.git.command import GitFailed, TooMuchOutput, build_environment, run_git

BLAME_TIMEOUT_SECONDS: Final = 10.0
MAX_BLAMED_LINES: Final = 40  # that may belong to one field
MAX_TEXT_LENGTH: Final = 80  # characters of an author or subject
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
    arguments = ("blame", "--porcelain", "-L", f"{line},+{MAX_BLAMED_LINES}", revision, "--", file)
    env = build_environment({}, {"GIT_ALLOW_PROTOCOL": "none"})
    try:
        output = await run_git(folder, arguments, env=env, seconds=BLAME_TIMEOUT_SECONDS)
    except (GitFailed, TooMuchOutput, TimeoutError):
        return None
    return read_blame(output.decode("utf-8", "replace"))


async def find_last_change(folder: Path, since: str, until: str, file: str) -> Blame | None:
    """Return the latest commit in `since..until` that changed or deleted the file."""
    if not _COMMIT.fullmatch(since) or not _COMMIT.fullmatch(until) or not file:
        return None
    arguments = ("log", "-1", "--format=%H%n%at%n%an%n%s", f"{since}..{until}", "--", f":(top,literal){file}")
    env = build_environment({}, {"GIT_ALLOW_PROTOCOL": "none"})
    try:
        output = await run_git(folder, arguments, env=env, seconds=BLAME_TIMEOUT_SECONDS)
    except (GitFailed, TooMuchOutput, TimeoutError):
        return None
    revision, author_time, author, subject = [*output.decode("utf-8", "replace").split("\n"), "", "", "", ""][:4]
    fields = {"author": author, "author-time": author_time, "summary": subject}
    return _build_blame(revision, fields) if _COMMIT.fullmatch(revision) else None


def read_blame(output: str) -> Blame | None:
    """Parse `git blame --porcelain`: the latest commit of the first line and the lines nested below it."""
    fields_by_commit: dict[str, dict[str, str]] = {}  # git prints it once per commit
    lines: list[tuple[str, str]] = []
    revision = ""
    for line in output.split("\n"):
        name, _, value = line.partition(" ")
        if line.startswith("\t"):
            lines.append((revision, line[1:]))
        elif _COMMIT.fullmatch(name):
            revision = name
            fields_by_commit.setdefault(revision, {})
        elif revision:
            fields_by_commit[revision].setdefault(name, value)
    blames = [_build_blame(revision, fields_by_commit[revision]) for revision in _commits_of_first_block(lines)]
    return max(reversed(blames), key=lambda line: line.at, default=None)  # on a tie, the last line


def _commits_of_first_block(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    """k8s: in YAML, nested lines are indented deeper; list elements need not be."""
    first_indent, has_nested_value = -1, False
    for revision, text in lines:
        indent = len(text) - len(text.lstrip())
        if first_indent < 0:
            first_indent, has_nested_value = indent, text.rstrip().endswith(":")
        elif not text.strip() or (
            indent <= first_indent
            and not (has_nested_value and indent == first_indent and text.lstrip().startswith("- "))
        ):
            return
        yield revision


def _build_blame(revision: str, fields: Mapping[str, str]) -> Blame:
    seconds = fields.get("author-time", "")
    authored_at = datetime.fromtimestamp(int(seconds) if seconds.isdecimal() and len(seconds) < 12 else 0, UTC)
    return Blame(revision, _shorten(fields.get("author", "")), authored_at, _shorten(fields.get("summary", "")))


def _shorten(text: str) -> str:
    printable = "".join(character if character.isprintable() else "?" for character in text)
    return printable if len(printable) <= MAX_TEXT_LENGTH else f"{printable[: MAX_TEXT_LENGTH - 1]}…"
