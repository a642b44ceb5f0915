"""The deployment history of an Application.

In: the history so far, a finished operation. Out: the new history; or its entries as values. Never: the same operation
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.gitops.application import OperationState, Progress
from argosy.gitops.status.wire_format import given, mapping, mappings, synced_wire


@dataclass(frozen=True, slots=True)
class Deployment:
    """One entry of the history."""

    id: int
    revisions: tuple[str, ...]  # in the order of the sources
    sources: tuple[Mapping[str, Any], ...]
    deployed: str  # RFC 3339
    started: str = ""
    by: str = ""
    is_automated: bool = False
    has_many_sources: bool = False


def is_recorded(state: OperationState) -> bool:
    """argo: complete syncs that succeeded; neither dry runs nor partial syncs such as self-heals."""
    sync = state.request.sync
    return state.progress is Progress.SUCCEEDED and state.has_result and not sync.dry_run and not sync.resources


def with_deployment(history: Sequence[Mapping[str, Any]], state: OperationState, limit: int) -> list[dict[str, Any]]:
    """Append the operation; the newest entry is last, and the oldest are dropped."""
    entries = [dict(each) for each in history]
    if is_recorded(state) and not (entries and _is_same(entries[-1], state)):
        entries.append(_entry(_next_id(entries), state))
    return entries[max(len(entries) - limit, 0) :] if limit > 0 else []


def deployments(status: Mapping[str, Any]) -> tuple[Deployment, ...]:
    """Return the history of a status, oldest first."""
    return tuple(_deployment(each) for each in mappings(status.get("history")))


def _next_id(entries: Sequence[Mapping[str, Any]]) -> int:
    last = entries[-1].get("id") if entries else None
    return last + 1 if isinstance(last, int) else len(entries)


def _entry(number: int, state: OperationState) -> dict[str, Any]:
    many = bool(state.revisions) or len(state.sources) > 1
    return {
        "id": number,
        **(given(revisions=list(state.revisions)) if many else given(revision=state.revision)),
        **synced_wire(state.sources, are_many=many),
        "deployedAt": state.finished or state.started,
        **given(deployStartedAt=state.started),
        "initiatedBy": given(username=state.request.by, automated=state.request.is_automated),
    }


def _is_same(entry: Mapping[str, Any], state: OperationState) -> bool:
    """True if the operation is already recorded, after a restart."""
    written = tuple(entry.get("revisions") or ()) or (entry.get("revision") or "",)
    return entry.get("deployStartedAt") == state.started != "" and written == (state.revisions or (state.revision,))


def _deployment(entry: Mapping[str, Any]) -> Deployment:
    many, single = mappings(entry.get("sources")), mapping(entry.get("source"))
    by = mapping(entry.get("initiatedBy"))
    number = entry.get("id")
    revisions = entry.get("revisions") if many else [entry.get("revision")]
    return Deployment(
        id=number if isinstance(number, int) else 0,
        revisions=tuple(str(each or "") for each in (revisions if isinstance(revisions, list) else ())),
        sources=tuple(many or ([single] if single else [])),
        deployed=str(entry.get("deployedAt") or ""),
        started=str(entry.get("deployStartedAt") or ""),
        by=str(by.get("username") or ""),
        is_automated=by.get("automated") is True,
        has_many_sources=bool(many),
    )
