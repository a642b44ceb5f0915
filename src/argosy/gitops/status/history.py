"""The deployment history of an Application.

In: the history so far, a finished operation. Out: the new history; or its entries as values. Never: the same operation
twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.gitops.application import OperationPhase, OperationState
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings, omit_empty, sources_to_wire


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """One entry of the history."""

    id: int
    revisions: tuple[str, ...]  # in the order of the sources
    sources: tuple[Mapping[str, Any], ...]
    deployed: str  # RFC 3339
    started: str = ""
    by: str = ""
    is_automated: bool = False
    has_many_sources: bool = False


def should_record(state: OperationState) -> bool:
    """argo: complete syncs that succeeded; neither dry runs nor partial syncs such as self-heals."""
    sync = state.request.sync
    return state.phase is OperationPhase.SUCCEEDED and state.has_result and not sync.dry_run and not sync.resources


def append_deployment(history: Sequence[Mapping[str, Any]], state: OperationState, limit: int) -> list[dict[str, Any]]:
    """Append the operation; the newest entry is last, and the oldest are dropped."""
    entries = [dict(entry) for entry in history]
    if should_record(state) and not (entries and _is_recorded_already(entries[-1], state)):
        entries.append(_build_entry(_next_id(entries), state))
    return entries[max(len(entries) - limit, 0) :] if limit > 0 else []


def read_deployments(status: Mapping[str, Any]) -> tuple[DeploymentRecord, ...]:
    """Return the history of a status, oldest first."""
    return tuple(_read_deployment(entry) for entry in as_mappings(status.get("history")))


def _next_id(entries: Sequence[Mapping[str, Any]]) -> int:
    last = entries[-1].get("id") if entries else None
    return last + 1 if isinstance(last, int) else len(entries)


def _build_entry(number: int, state: OperationState) -> dict[str, Any]:
    has_many = bool(state.revisions) or len(state.sources) > 1
    return {
        "id": number,
        **(omit_empty(revisions=list(state.revisions)) if has_many else omit_empty(revision=state.revision)),
        **({"source": {"repoURL": ""}} if has_many else {}),  # argo: next to `sources` there is an empty source
        **sources_to_wire(state.sources, are_many=has_many),
        "deployedAt": state.finished or state.started,
        **omit_empty(deployStartedAt=state.started),
        "initiatedBy": omit_empty(username=state.request.username, automated=state.request.is_automated),
    }


def _is_recorded_already(entry: Mapping[str, Any], state: OperationState) -> bool:
    """True if the operation is already recorded, after a restart."""
    revisions = tuple(entry.get("revisions") or ()) or (entry.get("revision") or "",)
    return entry.get("deployStartedAt") == state.started != "" and revisions == (state.revisions or (state.revision,))


def _read_deployment(entry: Mapping[str, Any]) -> DeploymentRecord:
    many, single = as_mappings(entry.get("sources")), as_mapping(entry.get("source"))
    by = as_mapping(entry.get("initiatedBy"))
    number = entry.get("id")
    revisions = entry.get("revisions") if many else [entry.get("revision")]
    return DeploymentRecord(
        id=number if isinstance(number, int) else 0,
        revisions=tuple(str(revision or "") for revision in (revisions if isinstance(revisions, list) else ())),
        sources=tuple(many or ([single] if single else [])),
        deployed=str(entry.get("deployedAt") or ""),
        started=str(entry.get("deployStartedAt") or ""),
        by=str(by.get("username") or ""),
        is_automated=by.get("automated") is True,
        has_many_sources=bool(many),
    )
