"""Detects whether an Application was rolled back, and what Git has meanwhile.

In: a status. Out: Rollback, or None without a rollback. Never: reads a clock; reports a health that was not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings

PREVIOUS_HEALTH_INFO: Final = "Health of what was left"  # argo: operation.info is free-form
SHORT_COMMIT_LENGTH: Final = 7  # characters of a commit
_CONTENT_FIELDS: Final = ("revision", "revisions", "source", "sources")


@dataclass(frozen=True, slots=True)
class ActiveRollback:
    """`revision` is the current one of `ref`; `health` is its health before the rollback, if known."""

    to: int
    by: str = ""
    at: str = ""  # RFC 3339
    ref: str = ""
    revision: str = ""
    was_deployed: bool = False
    health: str = ""

    @property
    def action(self) -> str:
        return f"rolled back to deployment {self.to}{f' by {self.by}' if self.by else ''}"

    @property
    def title(self) -> str:
        return f"{self.action[0].upper()}{self.action[1:]}:"

    @property
    def git(self) -> str:
        """Describe what a sync would deploy."""
        still, fared = " still" if self.was_deployed else "", f", which was {self.health}" if self.health else ""
        return f"{self.ref}{still} has {self.revision}{fared}"

    def __str__(self) -> str:
        return f"{self.action}; {self.git}"


def find_active_rollback(status: Mapping[str, Any], ref: str) -> ActiveRollback | None:
    """Return the rollback in force: the deployed revision was deployed before, and Git has another one."""
    history, sync = as_mappings(status.get("history")), as_mapping(status.get("sync"))
    if len(history) < 3 or sync.get("status") != "OutOfSync":
        return None
    index = _find_equal_tail_start(history)
    to = find_restored_id_per_entry(history)[index]
    git_revisions, deployed = _list_revisions(sync), _list_revisions(history[-1])
    if to is None or not git_revisions or git_revisions == deployed:
        return None
    state, before = as_mapping(status.get("operationState")), _list_revisions(history[index - 1])
    by, started_at = as_mapping(history[index].get("initiatedBy")), str(history[index].get("deployedAt") or "")
    was_deployed = any(_list_revisions(entry) == git_revisions for entry in history)
    previous_health = (
        _find_bad_previous_health(state)
        if git_revisions == before and _list_revisions(as_mapping(state.get("syncResult"))) == deployed
        else ""
    )
    revision = ", ".join(_shorten_revision(entry) for entry in git_revisions)
    return ActiveRollback(to, str(by.get("username") or ""), started_at, ref, revision, was_deployed, previous_health)


def find_restored_id_per_entry(history: Sequence[Mapping[str, Any]]) -> list[int | None]:
    """Return for each entry the ID of the earlier entry that it restored, or None."""
    restored: list[int | None] = [None] * len(history)
    revisions = [tuple(_list_revisions(deployment)) for deployment in history]
    if len(set(revisions)) == len(revisions):
        return restored  # fast path: most histories have no rollback
    entry_by_revisions: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for index, (entry, entry_revisions) in enumerate(zip(history, revisions, strict=True)):
        earlier = entry_by_revisions.get(entry_revisions)
        if (
            earlier is not None
            and _has_same_content(entry, earlier)
            and not _has_same_content(entry, history[index - 1])
        ):
            restored[index] = _history_id(earlier)
        entry_by_revisions[entry_revisions] = entry
    return restored


def _find_equal_tail_start(history: Sequence[Mapping[str, Any]]) -> int:
    """Return the first of the last equal entries: syncing the same again is no new rollback."""
    index = len(history) - 1
    while index and _has_same_content(history[index - 1], history[-1]):
        index -= 1
    return index


def _has_same_content(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return all(left.get(name) == right.get(name) for name in _CONTENT_FIELDS)


def _history_id(entry: Mapping[str, Any]) -> int:
    number = entry.get("id")
    return number if isinstance(number, int) else 0


def _list_revisions(part: Mapping[str, Any]) -> list[str]:
    many = part.get("revisions")
    revisions = many if isinstance(many, list) and many else [part.get("revision")]
    return [str(revision) for revision in revisions if revision]


def _find_bad_previous_health(state: Mapping[str, Any]) -> str:
    health = _find_previous_health(as_mapping(state.get("operation")))
    return "" if health == "Healthy" else health


def is_rollback(request: Mapping[str, Any]) -> bool:
    """True if the operation was requested as a rollback; its revisions alone do not tell."""
    return bool(_find_previous_health(request))


def _find_previous_health(request: Mapping[str, Any]) -> str:
    info = as_mappings(request.get("info"))
    return next((str(entry.get("value") or "") for entry in info if entry.get("name") == PREVIOUS_HEALTH_INFO), "")


def _shorten_revision(revision: str) -> str:
    is_commit = len(revision) >= 40 and all(character in "0123456789abcdef" for character in revision)
    return revision[:SHORT_COMMIT_LENGTH] if is_commit else revision
