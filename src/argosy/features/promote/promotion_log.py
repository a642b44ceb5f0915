"""Reads and writes the promotion log: promotions, approvals and holds as trailers of commit messages.

In: commit messages. Out: entries, newest first, and messages to commit. Never: stores anything outside Git.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from argosy.features.promote.releases import Release

TRAILER: Final = re.compile(r"^[ \t]*Argosy-([A-Z][A-Za-z-]*): (.*?)[ \t\r]*$", re.MULTILINE)
FIRST: Final = "Action"
MARK: Final = f"Argosy-{FIRST}: "  # present in every commit of the promotion log
_BY: Final = re.compile(r"(?P<name>.*?) \((?P<known_by>git|cluster|page)(?:; groups: (?P<groups>.*))?\)")


class Action(StrEnum):
    PROMOTE = "promote"
    ROLLBACK = "rollback"
    APPROVE = "approve"
    REJECT = "reject"
    HOLD = "hold"
    RESUME = "resume"


BRINGS: Final = (Action.PROMOTE, Action.ROLLBACK)


@dataclass(frozen=True)
class By:
    """The user of an entry, authenticated by the cluster or the page, or only configured in Git (no proof)."""

    name: str
    known_by: str = "git"
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        groups = f"; groups: {', '.join(self.groups)}" if self.groups else ""
        name = self.name.replace("(", "[").replace(")", "]")  # parentheses are reserved for the suffix below
        return f"{name} ({self.known_by}{groups})"

    @property
    def said_by(self) -> str:
        return {"cluster": "as the cluster told", "page": "signed in to the page"}.get(self.known_by, "as Git was told")

    def has(self, members: Iterable[str]) -> bool:
        return bool({self.name, *self.groups} & set(members))


@dataclass(frozen=True)
class Entry:
    action: Action
    environment: str
    by: By
    release: Release | None = None
    source: str = ""  # the environment that the release came from
    over: Release | None = None  # the release that this one replaced
    reason: str = ""
    skipped: tuple[str, ...] = ()
    role: str = ""
    gates: tuple[str, ...] = ()
    commit: str = ""  # the commit that holds this entry
    seconds: int = 0  # commit time


def entries(commits: Iterable[tuple[str, int, str]]) -> list[Entry]:
    """Read entries from commits as (id, seconds, message), in their order; a squashed commit may hold several."""
    return [entry for commit, seconds, message in commits for entry in _read(commit, seconds, message)]


def _read(commit: str, seconds: int, message: str) -> Iterator[Entry]:
    said: list[dict[str, list[str]]] = []
    for name, value in TRAILER.findall(message):
        if name == FIRST:
            said.append({})
        if said:
            said[-1].setdefault(name, []).append(value)
    for each in reversed(said):
        if (entry := _entry(each, commit, seconds)) is not None:
            yield entry


def _entry(said: dict[str, list[str]], commit: str, seconds: int) -> Entry | None:
    def one(name: str) -> str:
        return said.get(name, [""])[0]

    if one(FIRST) not in list(Action) or not one("Environment"):
        return None  # written by a later version or by hand: ignored
    return Entry(
        Action(one(FIRST)),
        one("Environment"),
        _by(one("By")),
        _release(one("Release")),
        one("From"),
        _release(one("Over")),
        one("Reason"),
        tuple(said.get("Skipped", ())),
        one("Role"),
        tuple(said.get("Gate", ())),
        commit,
        seconds,
    )


def _release(text: str) -> Release | None:
    name, _, commit = text.partition(" ")
    return Release(name, commit) if re.fullmatch(r"[0-9a-f]{40,64}", commit) else None


def _by(text: str) -> By:
    found = _BY.fullmatch(text)
    if not found:
        return By(text)
    groups = tuple(filter(None, (found["groups"] or "").split(", ")))
    return By(found["name"], found["known_by"], groups)


def message(entry: Entry, subject: str, body: Sequence[str] = ()) -> str:
    """Build a commit message: text for people, then the trailers."""
    trailers = [
        (FIRST, entry.action),
        ("Environment", entry.environment),
        ("From", entry.source),
        ("Release", _written(entry.release)),
        ("Over", _written(entry.over)),
        *(("Skipped", each) for each in entry.skipped),
        ("Role", entry.role),
        ("Reason", entry.reason),
        *(("Gate", each) for each in entry.gates),
        ("By", str(entry.by)),
    ]
    lines = [f"Argosy-{name}: {_line(value)}" for name, value in trailers if value]
    told = [_line(each) for each in body]
    return "\n".join([_line(subject), "", *told, *([""] if told else []), *lines]) + "\n"


def _written(release: Release | None) -> str:
    return f"{release.name} {release.commit}" if release else ""


def _line(text: str) -> str:
    """Join lines, so that user input cannot start another trailer."""
    return " ".join(text.split())


def last(log: Sequence[Entry], environment: str, *actions: Action) -> Entry | None:
    return next((each for each in log if each.environment == environment and each.action in actions), None)
