"""Events of an Application, and the sync hold annotation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    SyncRequest,
    read_application,
)
from argosy.gitops.status import application_event_manifests
from argosy.gitops.status.application_event_manifests import EventReason, build_event
from argosy.gitops.status.sync_hold_annotation import SyncHold, hold_to_annotation, read_hold
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

AT, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"
APP = read_application(
    {
        "metadata": {"name": "models", "namespace": "argocd", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"}},
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
    }
)
STATE = OperationState(
    OperationRequest(SyncRequest(revision="main"), username="ann"),
    started=AT,
    finished="2026-01-01T00:00:09Z",
    has_result=True,
    revision="abc",
    message="one or more objects failed",
)


def test_event_refers_to_the_application_and_names_the_user() -> None:
    event = build_event(APP, EventReason.OPERATION_STARTED, "ann initiated sync to abc", timestamp=AT, username="ann")
    name = event["metadata"].pop("name")
    assert re.fullmatch(r"models\.[0-9a-f]{16}", name)
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "namespace": "argocd",
            "annotations": {"dest-server": "https://kubernetes.default.svc", "dest-namespace": "ml", "user": "ann"},
        },
        "involvedObject": {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "name": "models",
            "namespace": "argocd",
            "uid": "u-1",
            "resourceVersion": "7",
        },
        "reason": "OperationStarted",
        "message": "ann initiated sync to abc",
        "type": "Normal",
        "source": {"component": "argocd-application-controller"},
        "firstTimestamp": AT,
        "lastTimestamp": AT,
        "count": 1,
    }


def test_equal_events_have_equal_names_and_others_differ() -> None:
    def name(message: str, at: str = AT) -> str:
        return str(build_event(APP, EventReason.RESOURCE_UPDATED, message, timestamp=at)["metadata"]["name"])

    assert name("a") == name("a")
    assert len({name("a"), name("b"), name("a", "2026-01-01T00:00:01Z")}) == 3


def test_long_event_names_and_messages_are_truncated() -> None:
    event = build_event(replace(APP, name="a" * 253), EventReason.RESOURCE_UPDATED, "x" * 5000, timestamp=AT)
    assert len(event["metadata"]["name"]) == 253 and len(event["message"]) == 1024


SELECTED = replace(STATE.request, sync=SyncRequest(resources=(ResourceKey("", "Pod", "", "a"),)))
AUTOMATED = replace(STATE.request, is_automated=True, username="")


@pytest.mark.parametrize(
    ("event", "reason", "kind", "message"),
    [
        (
            application_event_manifests.operation_started_event(APP, STATE),
            "OperationStarted",
            "Normal",
            "ann initiated sync to abc",
        ),
        (
            application_event_manifests.operation_started_event(APP, replace(STATE, revision="")),
            "OperationStarted",
            "Normal",
            "ann initiated sync to main",
        ),
        (
            application_event_manifests.operation_started_event(
                APP, replace(STATE, revision="", request=OperationRequest())
            ),
            "OperationStarted",
            "Normal",
            "Unknown user initiated sync to the newest revision",
        ),
        (
            application_event_manifests.operation_started_event(APP, replace(STATE, request=SELECTED)),
            "OperationStarted",
            "Normal",
            "ann initiated partial sync to abc",
        ),
        (
            application_event_manifests.operation_started_event(APP, replace(STATE, request=AUTOMATED)),
            "OperationStarted",
            "Normal",
            "Initiated automated sync to 'abc'",
        ),
        (
            application_event_manifests.operation_completed_event(APP, replace(STATE, phase=OperationPhase.SUCCEEDED)),
            "OperationCompleted",
            "Normal",
            "Sync operation to abc succeeded",
        ),
        (
            application_event_manifests.operation_completed_event(
                APP, replace(STATE, phase=OperationPhase.FAILED, request=SELECTED)
            ),
            "OperationCompleted",
            "Warning",
            "Partial sync operation to abc failed: one or more objects failed",
        ),
        (
            application_event_manifests.operation_completed_event(
                APP, replace(STATE, phase=OperationPhase.ERROR, has_result=False)
            ),
            "OperationCompleted",
            "Warning",
            "Sync operation failed: one or more objects failed",
        ),
        (  # argo: the words are the same if the revision is not known
            application_event_manifests.operation_completed_event(
                APP, replace(STATE, phase=OperationPhase.ERROR, revision="", request=OperationRequest())
            ),
            "OperationCompleted",
            "Warning",
            "Sync operation to  failed: one or more objects failed",
        ),
        (
            application_event_manifests.refresh_requested_event(APP, timestamp=AT, username="ann", is_hard=True),
            "StatusRefreshed",
            "Normal",
            "ann asked for a hard refresh",
        ),
        (
            application_event_manifests.sync_held_event(APP, SyncHold("bad model", "ann", AT, "abc")),
            "ResourceUpdated",
            "Normal",
            "ann held automated sync at abc: bad model",
        ),
        (
            application_event_manifests.sync_released_event(APP, timestamp=AT),
            "ResourceUpdated",
            "Normal",
            "Unknown user released automated sync",
        ),
        (
            application_event_manifests.rollback_event(APP, timestamp=AT, history_id=3, revision="abc", username="ann"),
            "OperationStarted",
            "Normal",
            "ann initiated rollback to 3 (abc)",
        ),
        (
            application_event_manifests.deletion_requested_event(APP, timestamp=AT, username="ann"),
            "ResourceDeleted",
            "Normal",
            "ann deleted application",
        ),
    ],
)
def test_events_match_those_of_argocd(event: dict[str, str], reason: str, kind: str, message: str) -> None:
    assert (event["reason"], event["type"], event["message"]) == (reason, kind, message)


@pytest.mark.parametrize(
    ("sync", "words"),
    [({"revision": "abc"}, " at abc"), ({"revisions": ["abc", "def"]}, " at abc, def"), ({}, "")],
)
def test_events_other_than_syncs_contain_the_revision(sync: dict[str, Any], words: str) -> None:
    compared = replace(APP, status={"sync": sync}, deletion_timestamp=AT)
    written_events = [
        application_event_manifests.refresh_requested_event(compared, timestamp=AT, username="ann"),
        application_event_manifests.sync_released_event(compared, timestamp=AT, username="ann"),
        application_event_manifests.deletion_requested_event(compared, timestamp=AT, username="ann"),
        application_event_manifests.deletion_completed_event(compared),
    ]
    assert [event["message"].endswith(words) for event in written_events] == [True] * 4
    assert [event["message"].removesuffix(words) for event in written_events] == [
        "ann asked for a refresh",
        "ann released automated sync",
        "ann deleted application",
        "deleted application and its resources",
    ]
    assert {event["lastTimestamp"] for event in written_events} == {AT}


def test_hold_annotation_round_trips() -> None:
    hold = SyncHold('größer "als" vorher', "ann", AT, "abc")
    assert read_hold({"argosy.dev/hold": hold_to_annotation(hold)}) == hold
    assert read_hold({}) is None


@pytest.mark.parametrize("text", ["until Monday", "", "[1]", "{", "3", "[" * 100_000])
def test_hold_annotation_with_any_text_is_a_hold(text: str) -> None:
    assert read_hold({"argosy.dev/hold": text}) == SyncHold(reason=text)


def test_hold_annotation_with_few_fields_is_a_hold() -> None:
    assert read_hold({"argosy.dev/hold": '{"by": "ann", "at": null}'}) == SyncHold(by="ann")


def test_changed_sync_and_health_status_give_one_event_each() -> None:
    new_status = {"sync": {"status": "OutOfSync"}, "health": {"status": "Degraded"}}
    events = application_event_manifests.status_change_events(APP, new_status, timestamp=AT)
    assert [(event["reason"], event["message"], event["type"]) for event in events] == [
        ("ResourceUpdated", "Updated sync status: Synced -> OutOfSync", "Normal"),
        ("ResourceUpdated", "Updated health status: Healthy -> Degraded", "Normal"),
    ]


def test_unchanged_status_gives_no_event() -> None:
    new_status = {"sync": {"status": "Synced", "revision": "def"}, "health": {"status": "Healthy"}}
    assert application_event_manifests.status_change_events(APP, new_status, timestamp=AT) == ()


def build_app(version: str, state: OperationState | None = None, reconciled: str = AT) -> Application:
    """Return the Application as it is read in a pass; another write changes only its version."""
    return replace(
        APP,
        wire={"metadata": {**APP.wire["metadata"], "resourceVersion": version}},
        status={**APP.status, "reconciledAt": reconciled},
        state=state,
    )


def list_names(*events: Manifest) -> list[str]:
    return [event["metadata"]["name"] for event in events]


def test_status_change_events_keep_their_names_when_a_pass_is_repeated_after_a_conflict() -> None:
    new_status = {"sync": {"status": "OutOfSync"}, "health": {"status": "Degraded"}}
    status_change_events = application_event_manifests.status_change_events
    first = list_names(*status_change_events(build_app("7"), new_status, timestamp=AT))
    assert list_names(*status_change_events(build_app("8"), new_status, timestamp=LATER)) == first
    assert len({*first, *list_names(*status_change_events(build_app("9", None, LATER), new_status, timestamp=AT))}) == 4
    new_app = replace(build_app("1"), status={})
    names = list_names(*status_change_events(new_app, new_status, timestamp=AT))
    assert list_names(*status_change_events(new_app, new_status, timestamp=LATER)) == names


@pytest.mark.parametrize("written", [None, replace(STATE, phase=OperationPhase.SUCCEEDED)])
def test_operation_started_event_keeps_its_name_when_the_start_is_repeated(written: OperationState | None) -> None:
    started = application_event_manifests.operation_started_event
    first, second = replace(STATE, started=LATER), replace(STATE, started="2026-01-01T00:00:06Z")
    assert list_names(started(build_app("7", written), first)) == list_names(started(build_app("8", written), second))
    after_it = build_app("9", replace(first, phase=OperationPhase.SUCCEEDED))
    assert list_names(started(after_it, second)) != list_names(started(build_app("8", written), second))


def test_operation_completed_event_keeps_its_name_when_the_end_is_repeated() -> None:
    completed = application_event_manifests.operation_completed_event
    running, ended = replace(STATE, phase=OperationPhase.RUNNING), replace(STATE, phase=OperationPhase.ERROR)
    first = list_names(completed(build_app("7", running), replace(ended, finished=AT)))
    assert list_names(completed(build_app("8", running), replace(ended, finished=LATER))) == first
    # the next operation is rejected with the same message as it is requested
    assert list_names(completed(build_app("9", ended), replace(ended, started=LATER, finished=LATER))) != first
