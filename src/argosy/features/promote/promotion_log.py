"""What was promoted, approved and held, as the log of the branch tells it.

In: commit messages. Out: entries, the newest first; and messages to write. Never: another memory than Git's.
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
MARK: Final = f"Argosy-{FIRST}: "  # what tells our commits from all others
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
    """Who did it: as a cluster or the page knew them when they did, or as Git was told. The log itself proves none."""

    name: str
    known_by: str = "git"
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        groups = f"; groups: {', '.join(self.groups)}" if self.groups else ""
        name = self.name.replace("(", "[").replace(")", "]")  # what is in brackets is ours to say
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
    source: str = ""  # the environment that it came from
    over: Release | None = None  # what a rollback took back
    reason: str = ""
    skipped: tuple[str, ...] = ()
    role: str = ""
    gates: tuple[str, ...] = ()
    commit: str = ""  # of the entry itself
    seconds: int = 0  # when, since 1970


def entries(commits: Iterable[tuple[str, int, str]]) -> list[Entry]:
    """From commits as (id, seconds, message), in their order; a squashed one may hold several."""
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
        return None  # of a later version, or written by hand: nothing is made of it
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
    """For people above, for the next reading below."""
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
    """A trailer ends with its line: what comes from people must not begin another."""
    return " ".join(text.split())


def last(log: Sequence[Entry], environment: str, *actions: Action) -> Entry | None:
    return next((each for each in log if each.environment == environment and each.action in actions), None)
