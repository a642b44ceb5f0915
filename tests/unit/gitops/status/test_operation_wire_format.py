"""The wire format of operations: written requests and states are read back unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application import OperationRequest, OperationState, RetryStrategy, SyncRequest
from argosy.gitops.application.operations import read_request, read_state
from argosy.gitops.application.sources import read_source
from argosy.gitops.application.sync_policy import parse_duration
from argosy.gitops.status.operation_state_json_writer import format_duration, request_to_wire, state_to_wire
from argosy.kube.objects.strict_typed_field_reader import FieldReader
from support.examples import examples
from support.operation_values import DURATIONS, REQUESTS, states


def read(wire: dict[str, Any]) -> OperationRequest:
    return read_request(FieldReader(wire, ""))


def drop_wire(request: OperationRequest) -> OperationRequest:
    """Return the request without its original wire format."""
    return replace(request, wire={})


@settings(max_examples=examples())
@given(REQUESTS)
def test_request_round_trips(request: OperationRequest) -> None:
    assert drop_wire(read(request_to_wire(request))) == request


@settings(max_examples=examples())
@given(states())
def test_state_round_trips(state: OperationState) -> None:
    reread = read_state(FieldReader(state_to_wire(state), ""))
    assert replace(reread, request=drop_wire(reread.request)) == state


@settings(max_examples=examples())
@given(states())
def test_state_that_was_read_is_written_identically(state: OperationState) -> None:
    wire = state_to_wire(state)
    assert state_to_wire(read_state(FieldReader(wire, ""))) == wire


@given(DURATIONS)
def test_duration_round_trips_to_the_nanosecond(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (5.0, "5s"), (90.0, "1m30s"), (3600.0, "1h"), (0.25, "0.25s"), (0.000001, "0.000001s")],
)
def test_durations_are_written_in_short_form(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


ASKED = {
    "sync": {"revision": "v2", "syncStrategy": {"hook": {}}, "prune": False},
    "retry": {"limit": 2, "backoff": {"duration": "90s"}},
    "initiatedBy": {"username": "ann"},
    "info": [{"name": "why", "value": "a fix"}],
}


def test_request_keeps_its_original_wire_format() -> None:
    assert request_to_wire(read(ASKED)) == ASKED


def test_only_the_changed_part_of_a_request_is_rewritten() -> None:
    request = read(ASKED)
    newest = replace(request, sync=replace(request.sync, revision=""))
    assert request_to_wire(newest) == {**ASKED, "sync": {}}


def test_request_with_an_unreadable_wire_format_is_rewritten() -> None:
    request = OperationRequest(sync=SyncRequest(revision="v1"), wire={"sync": "now", "info": []})
    assert request_to_wire(request)["sync"] == {"revision": "v1"}


def test_automated_sync_is_written_like_argocd() -> None:
    request = OperationRequest(SyncRequest(revision="abc", prune=True), is_automated=True, retry=RetryStrategy(limit=5))
    assert request_to_wire(request) == {
        "sync": {"revision": "abc", "prune": True},
        "initiatedBy": {"automated": True},
        "retry": {"limit": 5},
    }


def test_a_sync_without_hooks_names_its_strategy() -> None:
    assert request_to_wire(OperationRequest(SyncRequest(runs_hooks=False)))["sync"] == {"syncStrategy": {"apply": {}}}


@given(st.integers(1, 3))
def test_sources_are_written_as_a_list_if_revisions_are(count: int) -> None:
    sources = tuple({"repoURL": f"https://git.example/{number}"} for number in range(count))
    revisions = tuple(map(str, range(count)))
    state = OperationState(OperationRequest(), has_result=True, revisions=revisions, sources=sources)
    assert state_to_wire(state)["syncResult"] == {
        "revision": "",
        "revisions": [*revisions],
        "source": sources[0] if sources else {"repoURL": ""},
        "sources": [*sources],
    }


def test_backoff_is_written_as_the_policy_has_it() -> None:
    written = {"limit": 3, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}}
    request = drop_wire(read({"sync": {}, "retry": written}))
    assert request_to_wire(request)["retry"] == written


def test_result_of_an_operation_with_its_own_sources_has_an_empty_first_source() -> None:
    sources = ({"repoURL": "https://git.example/0"}, {"repoURL": "https://git.example/1"})
    request = OperationRequest(SyncRequest(sources=tuple(map(read_source, sources))))
    state = OperationState(request, has_result=True, revisions=("a", "b"), sources=sources)
    assert state_to_wire(state)["syncResult"]["source"] == {"repoURL": ""}
