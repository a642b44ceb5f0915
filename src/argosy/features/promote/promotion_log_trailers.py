"""Reads and writes the promotion log: promotions, approvals and holds as trailers of commit messages.

In: commit messages. Out: entries, newest first, and messages to commit. Never: stores anything outside Git.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from argosy.features.promote.classified_manifest_fields import Release

TRAILER_PATTERN: Final = re.compile(r"^[ \t]*Argosy-([A-Z][A-Za-z-]*): (.*?)[ \t\r]*$", re.MULTILINE)
FIRST_TRAILER: Final = "Action"
COMMIT_MARK: Final = f"Argosy-{FIRST_TRAILER}: "  # present in every commit of the promotion log
_ACTOR_PATTERN: Final = re.compile(r"(?P<name>.*?) \((?P<known_by>git|cluster|page)(?:; groups: (?P<groups>.*))?\)")


class PromotionAction(StrEnum):
    PROMOTE = "promote"
    ROLLBACK = "rollback"
    APPROVE = "approve"
    REJECT = "reject"
    HOLD = "hold"
    RESUME = "resume"


RELEASE_CHANGING_ACTIONS: Final = (PromotionAction.PROMOTE, PromotionAction.ROLLBACK)


@dataclass(frozen=True)
class PromotionActor:
    """The user of an entry, authenticated by the cluster or the page, or only configured in Git (no proof)."""

    name: str
    known_by: str = "git"
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        groups = f"; groups: {', '.join(self.groups)}" if self.groups else ""
        name = self.name.replace("(", "[").replace(")", "]")  # parentheses are reserved for the suffix below
        return f"{name} ({self.known_by}{groups})"

    @property
    def authentication_note(self) -> str:
        return {"cluster": "as the cluster told", "page": "signed in to the page"}.get(self.known_by, "as Git was told")

    def is_member_of(self, members: Iterable[str]) -> bool:
        return bool({self.name, *self.groups} & set(members))


@dataclass(frozen=True)
class PromotionLogEntry:
    action: PromotionAction
    environment: str
    actor: PromotionActor
    release: Release | None = None
    source: str = ""  # the environment that the release came from
    replaced: Release | None = None  # the release that this one replaced
    reason: str = ""
    skipped: tuple[str, ...] = ()
    role: str = ""
    gates: tuple[str, ...] = ()
    commit: str = ""  # the commit that holds this entry
    unix_seconds: int = 0  # commit time


def read_entries(commits: Iterable[tuple[str, int, str]]) -> list[PromotionLogEntry]:
    """Read entries from commits as (id, seconds, message), in their order; a squashed commit may hold several."""
    return [entry for commit, seconds, message in commits for entry in _iterate_entries(commit, seconds, message)]


def _iterate_entries(commit: str, seconds: int, message: str) -> Iterator[PromotionLogEntry]:
    trailer_groups: list[dict[str, list[str]]] = []
    for name, value in TRAILER_PATTERN.findall(message):
        if name == FIRST_TRAILER:
            trailer_groups.append({})
        if trailer_groups:
            trailer_groups[-1].setdefault(name, []).append(value)
    for trailers in reversed(trailer_groups):
        if (entry := _read_entry(trailers, commit, seconds)) is not None:
            yield entry


def _read_entry(trailers: dict[str, list[str]], commit: str, seconds: int) -> PromotionLogEntry | None:
    def get_first(name: str) -> str:
        return trailers.get(name, [""])[0]

    if get_first(FIRST_TRAILER) not in list(PromotionAction) or not get_first("Environment"):
        return None  # written by a later version or by hand: ignored
    return PromotionLogEntry(
        PromotionAction(get_first(FIRST_TRAILER)),
        get_first("Environment"),
        _read_actor(get_first("By")),
        _read_release(get_first("Release")),
        get_first("From"),
        _read_release(get_first("Over")),
        get_first("Reason"),
        tuple(trailers.get("Skipped", ())),
        get_first("Role"),
        tuple(trailers.get("Gate", ())),
        commit,
        seconds,
    )


def _read_release(text: str) -> Release | None:
    name, _, commit = text.partition(" ")
    return Release(name, commit) if re.fullmatch(r"[0-9a-f]{40,64}", commit) else None


def _read_actor(text: str) -> PromotionActor:
    match = _ACTOR_PATTERN.fullmatch(text)
    if not match:
        return PromotionActor(text)
    groups = tuple(filter(None, (match["groups"] or "").split(", ")))
    return PromotionActor(match["name"], match["known_by"], groups)


def build_message(entry: PromotionLogEntry, subject: str, body: Sequence[str] = ()) -> str:
    """Build a commit message: text for people, then the trailers."""
    trailers = [
        (FIRST_TRAILER, entry.action),
        ("Environment", entry.environment),
        ("From", entry.source),
        ("Release", _render_release(entry.release)),
        ("Over", _render_release(entry.replaced)),
        *(("Skipped", item) for item in entry.skipped),
        ("Role", entry.role),
        ("Reason", entry.reason),
        *(("Gate", item) for item in entry.gates),
        ("By", str(entry.actor)),
    ]
    lines = [f"Argosy-{name}: {_to_single_line(value)}" for name, value in trailers if value]
    body_lines = [_to_single_line(item) for item in body]
    return "\n".join([_to_single_line(subject), "", *body_lines, *([""] if body_lines else []), *lines]) + "\n"


def _render_release(release: Release | None) -> str:
    return f"{release.name} {release.commit}" if release else ""


def _to_single_line(text: str) -> str:
    """Join lines, so that user input cannot start another trailer."""
    return " ".join(text.split())


def find_latest(
    log: Sequence[PromotionLogEntry], environment: str, *actions: PromotionAction
) -> PromotionLogEntry | None:
    return next((entry for entry in log if entry.environment == environment and entry.action in actions), None)
