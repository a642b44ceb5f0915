"""Detects whether an Application was rolled back, and what Git has meanwhile.

In: a status. Out: Rollback, or None without a rollback. Never: reads a clock; reports a health that was not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.status.wire_format import mapping, mappings

LEFT: Final = "Health of what was left"  # argo: operation.info is free-form
SHORT: Final = 7  # characters of a commit
_CONTENT: Final = ("revision", "revisions", "source", "sources")


@dataclass(frozen=True, slots=True)
class Rollback:
    """`revision` is the current one of `ref`; `health` is its health before the rollback, if known."""

    to: int
    by: str = ""
    at: str = ""  # RFC 3339
    ref: str = ""
    revision: str = ""
    was_deployed: bool = False
    health: str = ""

    @property
    def deed(self) -> str:
        return f"rolled back to deployment {self.to}{f' by {self.by}' if self.by else ''}"

    @property
    def title(self) -> str:
        return f"{self.deed[0].upper()}{self.deed[1:]}:"

    @property
    def git(self) -> str:
        """Describe what a sync would deploy."""
        still, fared = " still" if self.was_deployed else "", f", which was {self.health}" if self.health else ""
        return f"{self.ref}{still} has {self.revision}{fared}"

    def __str__(self) -> str:
        return f"{self.deed}; {self.git}"


def rollback_of(status: Mapping[str, Any], ref: str) -> Rollback | None:
    """Return the rollback in force: the deployed revision was deployed before, and Git has another one."""
    history, sync = mappings(status.get("history")), mapping(status.get("sync"))
    if len(history) < 3 or sync.get("status") != "OutOfSync":
        return None
    place = _beginning(history)
    to = gone_back(history)[place]
    now, deployed = _revisions(sync), _revisions(history[-1])
    if to is None or not now or now == deployed:
        return None
    state, before = mapping(status.get("operationState")), _revisions(history[place - 1])
    by, began = mapping(history[place].get("initiatedBy")), str(history[place].get("deployedAt") or "")
    was_deployed = any(_revisions(each) == now for each in history)
    fared = _fared(state) if now == before and _revisions(mapping(state.get("syncResult"))) == deployed else ""
    revision = ", ".join(_short(each) for each in now)
    return Rollback(to, str(by.get("username") or ""), began, ref, revision, was_deployed, fared)


def gone_back(history: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return for each entry the ID of the earlier entry that it restored, or None."""
    found: list[int | None] = [None] * len(history)
    revisions = [tuple(_revisions(each)) for each in history]
    if len(set(revisions)) == len(revisions):
        return found  # fast path: most histories have no rollback
    known: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for place, (entry, at) in enumerate(zip(history, revisions, strict=True)):
        earlier = known.get(at)
        if earlier is not None and _is_same(entry, earlier) and not _is_same(entry, history[place - 1]):
            found[place] = _number(earlier)
        known[at] = entry
    return found


def _beginning(history: Sequence[Mapping[str, Any]]) -> int:
    """Return the first of the last equal entries: syncing the same again is no new rollback."""
    place = len(history) - 1
    while place and _is_same(history[place - 1], history[-1]):
        place -= 1
    return place


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in _CONTENT)


def _number(entry: Mapping[str, Any]) -> int:
    number = entry.get("id")
    return number if isinstance(number, int) else 0


def _revisions(part: Mapping[str, Any]) -> list[str]:
    many = part.get("revisions")
    found = many if isinstance(many, list) and many else [part.get("revision")]
    return [str(each) for each in found if each]


def _fared(state: Mapping[str, Any]) -> str:
    health = _left(mapping(state.get("operation")))
    return "" if health == "Healthy" else health


def is_rollback(request: Mapping[str, Any]) -> bool:
    """True if the operation was requested as a rollback; its revisions alone do not tell."""
    return bool(_left(request))


def _left(request: Mapping[str, Any]) -> str:
    told = mappings(request.get("info"))
    return next((str(each.get("value") or "") for each in told if each.get("name") == LEFT), "")


def _short(revision: str) -> str:
    is_commit = len(revision) >= 40 and all(sign in "0123456789abcdef" for sign in revision)
    return revision[:SHORT] if is_commit else revision
