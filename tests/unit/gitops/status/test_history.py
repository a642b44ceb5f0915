"""History: each successful full sync is recorded once, and the oldest entries are removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.gitops.application import OperationPhase, OperationRequest, OperationState, SyncRequest
from argosy.gitops.status.history import DeploymentRecord, append_deployment, read_deployments
from argosy.kube.resource_key import ResourceKey

SOURCE = {"repoURL": "https://git.example/models", "path": "dev"}


def synced(revision: str = "abc", minute: int = 0, *, by: str = "ann", **sync: Any) -> OperationState:
    return OperationState(
        OperationRequest(SyncRequest(**sync), username=by, is_automated=not by),
        OperationPhase.SUCCEEDED,
        started=f"2026-01-01T00:{minute:02}:00Z",
        finished=f"2026-01-01T00:{minute:02}:05Z",
        has_result=True,
        revision=revision,
        sources=(SOURCE,),
    )


def test_history_entry_contains_revision_times_and_initiator() -> None:
    assert append_deployment([], synced(), 10) == [
        {
            "id": 0,
            "revision": "abc",
            "source": SOURCE,
            "deployedAt": "2026-01-01T00:00:05Z",
            "deployStartedAt": "2026-01-01T00:00:00Z",
            "initiatedBy": {"username": "ann"},
        }
    ]
    assert append_deployment([], synced(by=""), 10)[0]["initiatedBy"] == {"automated": True}


@pytest.mark.parametrize(
    "state",
    [
        synced(dry_run=True),
        synced(resources=(ResourceKey("apps", "Deployment", "", "web"),)),
        replace(synced(), phase=OperationPhase.FAILED),
        replace(synced(), phase=OperationPhase.RUNNING),
        replace(synced(), has_result=False),
    ],
    ids=["dry run", "selective", "failed", "running", "no result"],
)
def test_only_successful_full_syncs_are_recorded(state: OperationState) -> None:
    assert append_deployment([], state, 10) == []


def test_many_sources_are_recorded_with_their_revisions() -> None:
    state = replace(synced(""), revisions=("a", "b"), sources=(SOURCE, SOURCE))
    entry = append_deployment([], state, 10)[0]
    assert (entry["revisions"], entry["sources"]) == (["a", "b"], [SOURCE, SOURCE])
    assert "revision" not in entry and entry["source"] == {"repoURL": ""}


@given(st.integers(0, 12), st.integers(0, 12))
def test_history_ids_continue_and_the_oldest_entries_are_removed(count: int, limit: int) -> None:
    history: list[dict[str, Any]] = []
    for number in range(count):
        history = append_deployment(history, synced(str(number), number), limit)
        history = append_deployment(history, synced(str(number), number), limit)  # recorded again, after a crash
    if limit:
        assert [entry["id"] for entry in history] == list(range(count))[-limit:]
    else:
        assert history == []


def test_written_history_can_be_read() -> None:
    history = append_deployment([], synced(), 10)
    assert read_deployments({"history": history}) == (
        DeploymentRecord(0, ("abc",), (SOURCE,), "2026-01-01T00:00:05Z", "2026-01-01T00:00:00Z", by="ann"),
    )


def test_malformed_history_is_read() -> None:
    assert read_deployments({"history": "none"}) == ()
    odd = read_deployments({"history": [{"id": "x", "sources": [SOURCE], "revisions": "y", "initiatedBy": 3}]})
    assert odd == (DeploymentRecord(0, (), (SOURCE,), "", has_many_sources=True),)
    assert append_deployment([{"id": "x"}], synced(), 10)[1]["id"] == 1
