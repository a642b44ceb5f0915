"""Events beside an Application, and holds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from argosy.gitops.application import OperationRequest, OperationState, Progress, SyncRequest, read_application
from argosy.gitops.status import events
from argosy.gitops.status.events import Reason, event
from argosy.gitops.status.hold import Hold, hold_text, read_hold
from argosy.kube.names import ResourceKey

AT = "2026-01-01T00:00:00Z"
APP = read_application(
    {
        "metadata": {"name": "models", "namespace": "argocd", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"}},
        "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
    }
)
STATE = OperationState(
    OperationRequest(SyncRequest(revision="main"), by="ann"),
    started=AT,
    finished="2026-01-01T00:00:09Z",
    has_result=True,
    revision="abc",
    message="one or more objects failed",
)


def test_an_event_is_about_the_application_and_says_who() -> None:
    told = event(APP, Reason.OPERATION_STARTED, "ann initiated sync to abc", at=AT, by="ann")
    name = told["metadata"].pop("name")
    assert re.fullmatch(r"models\.[0-9a-f]{16}", name)
    assert told == {
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


def test_the_same_event_has_the_same_name_and_another_has_another() -> None:
    def name(message: str, at: str = AT) -> str:
        return str(event(APP, Reason.RESOURCE_UPDATED, message, at=at)["metadata"]["name"])

    assert name("a") == name("a")
    assert len({name("a"), name("b"), name("a", "2026-01-01T00:00:01Z")}) == 3


def test_a_long_name_and_a_long_message_fit() -> None:
    found = event(replace(APP, name="a" * 253), Reason.RESOURCE_UPDATED, "x" * 5000, at=AT)
    assert len(found["metadata"]["name"]) == 253 and len(found["message"]) == 1024


SELECTED = replace(STATE.request, sync=SyncRequest(resources=(ResourceKey("", "Pod", "", "a"),)))
AUTOMATED = replace(STATE.request, is_automated=True, by="")


@pytest.mark.parametrize(
    ("told", "reason", "kind", "message"),
    [
        (events.started(APP, STATE), "OperationStarted", "Normal", "ann initiated sync to abc"),
        (events.started(APP, replace(STATE, revision="")), "OperationStarted", "Normal", "ann initiated sync to main"),
        (events.started(APP, replace(STATE, request=SELECTED)), "OperationStarted", "Normal",
         "ann initiated partial sync to abc"),
        (events.started(APP, replace(STATE, request=AUTOMATED)), "OperationStarted", "Normal",
         "Initiated automated sync to 'abc'"),
        (events.completed(APP, replace(STATE, progress=Progress.SUCCEEDED)), "OperationCompleted", "Normal",
         "Sync operation to abc succeeded"),
        (events.completed(APP, replace(STATE, progress=Progress.FAILED, request=SELECTED)), "OperationCompleted",
         "Warning", "Partial sync operation to abc failed: one or more objects failed"),
        (events.completed(APP, replace(STATE, progress=Progress.ERROR, has_result=False)), "OperationCompleted",
         "Warning", "Sync operation failed: one or more objects failed"),
        (events.refreshed(APP, at=AT, by="ann", is_hard=True), "StatusRefreshed", "Normal",
         "ann asked for a hard refresh"),
        (events.held(APP, Hold("bad model", "ann", AT, "abc")), "ResourceUpdated", "Normal",
         "ann held automated sync at abc: bad model"),
        (events.released(APP, at=AT), "ResourceUpdated", "Normal", "Unknown user released automated sync"),
        (events.rolled_back(APP, at=AT, to=3, revision="abc", by="ann"), "OperationStarted", "Normal",
         "ann initiated rollback to 3 (abc)"),
        (events.deleted(APP, at=AT, by="ann"), "ResourceDeleted", "Normal", "ann deleted application"),
    ],
)  # fmt: skip
def test_events_speak_as_argo_cd_does(told: dict[str, str], reason: str, kind: str, message: str) -> None:
    assert (told["reason"], told["type"], told["message"]) == (reason, kind, message)


@pytest.mark.parametrize(
    ("sync", "words"),
    [({"revision": "abc"}, " at abc"), ({"revisions": ["abc", "def"]}, " at abc, def"), ({}, "")],
)
def test_what_is_no_sync_tells_its_revision_too(sync: dict[str, Any], words: str) -> None:
    compared = replace(APP, status={"sync": sync}, deleted=AT)
    told = [
        events.refreshed(compared, at=AT, by="ann"), events.released(compared, at=AT, by="ann"),
        events.deleted(compared, at=AT, by="ann"), events.gone(compared),
    ]  # fmt: skip
    assert [each["message"].endswith(words) for each in told] == [True] * 4
    assert [each["message"].removesuffix(words) for each in told] == [
        "ann asked for a refresh", "ann released automated sync", "ann deleted application",
        "deleted application and its resources",
    ]  # fmt: skip
    assert {each["lastTimestamp"] for each in told} == {AT}


def test_a_hold_is_read_as_it_was_written() -> None:
    hold = Hold('größer "als" vorher', "ann", AT, "abc")
    assert read_hold({"argosy.dev/hold": hold_text(hold)}) == hold
    assert read_hold({}) is None


@pytest.mark.parametrize("text", ["until Monday", "", "[1]", "{", "3", "[" * 100_000])
def test_a_hold_written_by_hand_holds_too(text: str) -> None:
    assert read_hold({"argosy.dev/hold": text}) == Hold(reason=text)


def test_a_hold_that_says_little_holds_too() -> None:
    assert read_hold({"argosy.dev/hold": '{"by": "ann", "at": null}'}) == Hold(by="ann")
