"""Operations as an Application carries them: what is written is read again as it was meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application import OperationRequest, OperationState, RetryStrategy, SyncRequest
from argosy.gitops.application.operations import read_request, read_state
from argosy.gitops.application.sync_policy import parse_duration
from argosy.gitops.status.operation_wire_format import format_duration, request_to_wire, state_to_wire
from argosy.kube.objects.field_reader import FieldReader
from support.examples import examples
from support.operation_values import DURATIONS, REQUESTS, states


def read(wire: dict[str, Any]) -> OperationRequest:
    return read_request(FieldReader(wire, ""))


def drop_wire(request: OperationRequest) -> OperationRequest:
    """Without the words that it was written in."""
    return replace(request, wire={})


@settings(max_examples=examples())
@given(REQUESTS)
def test_a_request_is_read_again_as_it_was_meant(request: OperationRequest) -> None:
    assert drop_wire(read(request_to_wire(request))) == request


@settings(max_examples=examples())
@given(states())
def test_a_state_is_read_again_as_it_was_meant(state: OperationState) -> None:
    reread = read_state(FieldReader(state_to_wire(state), ""))
    assert replace(reread, request=drop_wire(reread.request)) == state


@settings(max_examples=examples())
@given(states())
def test_what_was_written_once_is_written_alike_ever_after(state: OperationState) -> None:
    wire = state_to_wire(state)
    assert state_to_wire(read_state(FieldReader(wire, ""))) == wire


@given(DURATIONS)
def test_a_duration_is_read_again_to_the_nanosecond(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (5.0, "5s"), (90.0, "1m30s"), (3600.0, "1h"), (0.25, "0.25s"), (0.000001, "0.000001s")],
)
def test_durations_are_written_as_people_write_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


ASKED = {
    "sync": {"revision": "v2", "syncStrategy": {"hook": {}}, "prune": False},
    "retry": {"limit": 2, "backoff": {"duration": "90s"}},
    "initiatedBy": {"username": "ann"},
    "info": [{"name": "why", "value": "a fix"}],
}


def test_a_request_keeps_the_words_in_which_it_was_asked() -> None:
    assert request_to_wire(read(ASKED)) == ASKED


def test_only_the_part_that_changed_gets_other_words() -> None:
    request = read(ASKED)
    newest = replace(request, sync=replace(request.sync, revision=""))
    assert request_to_wire(newest) == {**ASKED, "sync": {}}


def test_a_request_that_cannot_be_read_again_is_written_anew() -> None:
    request = OperationRequest(sync=SyncRequest(revision="v1"), wire={"sync": "now", "info": []})
    assert request_to_wire(request)["sync"] == {"revision": "v1"}


def test_an_automated_sync_is_written_as_argo_cd_writes_it() -> None:
    request = OperationRequest(SyncRequest(revision="abc", prune=True), is_automated=True, retry=RetryStrategy(limit=5))
    assert request_to_wire(request) == {
        "sync": {"revision": "abc", "prune": True},
        "initiatedBy": {"automated": True},
        "retry": {"limit": 5},
    }


def test_a_sync_without_hooks_names_its_strategy() -> None:
    assert request_to_wire(OperationRequest(SyncRequest(runs_hooks=False)))["sync"] == {"syncStrategy": {"apply": {}}}


@given(st.integers(1, 3))
def test_sources_are_many_where_revisions_are(count: int) -> None:
    sources = tuple({"repoURL": f"https://git.example/{number}"} for number in range(count))
    revisions = tuple(map(str, range(count)))
    state = OperationState(OperationRequest(), has_result=True, revisions=revisions, sources=sources)
    assert state_to_wire(state)["syncResult"] == {
        "revision": "",
        "revisions": [*revisions],
        "source": {"repoURL": ""},
        "sources": [*sources],
    }
