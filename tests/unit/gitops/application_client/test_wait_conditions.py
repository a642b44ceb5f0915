"""Tests wait conditions: which are unmet, when a wait fails early, and progress output."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.applications.sync.progress_output import HEARTBEAT_SECONDS, WaitReporter
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.stuck_pods import list_waiting_reasons
from argosy.gitops.application_client.wait_conditions import WaitConditions, WaitFailure, find_wait_failure

COMMIT = "4c1d2e3" + "0" * 33
OBJECT = {"version": "v1", "kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "OutOfSync"}
OUT = {"sync": {"status": "OutOfSync", "revision": COMMIT}, "resources": [OBJECT]}
ALL = WaitConditions(sync=True, operation=True, health=frozenset({"Healthy"}))
HEALTH = WaitConditions(health=frozenset({"Healthy"}))
AUTOMATED: dict[str, Any] = {"spec": {"syncPolicy": {"automated": {}}}}
HEALING = {"spec": {"syncPolicy": {"automated": {"selfHeal": True}}}}
HELD = {"metadata": {"annotations": {"argosy.dev/hold": '{"by": "ann", "reason": "latency"}'}}}
SICK = {"sync": {"status": "Synced"}, "health": {"status": "Degraded", "message": "no image"}}


def application(status: dict[str, Any] | None = None, **more: Any) -> Application:
    metadata = {"name": "models", "namespace": "argocd", **more.pop("metadata", {})}
    spec = {"source": {"repoURL": "https://git.example/ml", "path": "app"}, **more.pop("spec", {})}
    return read_application({"metadata": metadata, "spec": spec, "status": status or {}, **more})


def operation(phase: str, message: str = "", **result: Any) -> dict[str, Any]:
    return {
        "operation": {"sync": {}}, "phase": phase, "message": message, "startedAt": "2026-01-01T00:00:00Z",
        "syncResult": {"revision": COMMIT, **result},
    }  # fmt: skip


@pytest.mark.parametrize(
    "status, more, missing",
    [
        ({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}, {}, []),
        (
            {"sync": {"status": "Synced"}, "health": {"status": "Progressing"}},
            {},
            ["health is Progressing, not Healthy"],
        ),
        (
            {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
            {"operation": {"sync": {}}},
            ["the operation is not finished: not started"],
        ),
        ({}, {}, ["sync status is Unknown, not Synced", "health is Unknown, not Healthy"]),
    ],
)
def test_unmet_conditions_are_listed(status: dict[str, Any], more: dict[str, Any], missing: list[str]) -> None:
    assert ALL.list_unmet(application(status, **more)) == missing


FAILED = "the sync of this revision failed: no quota"
NOBODY = "no sync was requested, and automated sync is off"


@pytest.mark.parametrize(
    "status, more, expected",
    [
        ({}, {}, None),
        (OUT, {}, WaitFailure(NOBODY)),
        (OUT, {"operation": {"sync": {}}}, None),
        (OUT, AUTOMATED, None),
        (OUT, {**AUTOMATED, **HELD}, WaitFailure("automated sync is held by ann: latency")),
        ({**OUT, "operationState": operation("Failed", "no quota")}, AUTOMATED, WaitFailure(FAILED)),
        ({**OUT, "operationState": operation("Failed", "no quota", revision="other")}, AUTOMATED, None),
        (
            {
                **OUT,
                "sync": {"status": "OutOfSync", "revisions": ["a", "b"]},
                "operationState": operation("Failed", "no quota", revision="", revisions=["a", "b"]),
            },
            AUTOMATED,
            WaitFailure(FAILED),
        ),
        (
            {"conditions": [{"type": "InvalidSpecError", "message": "no path"}]},
            {},
            WaitFailure("InvalidSpecError: no path"),
        ),
        (
            {"conditions": [{"type": "ComparisonError", "message": "no ref"}]},
            HEALING,
            WaitFailure("ComparisonError: no ref", is_certain=False),  # the Git host may recover
        ),
        ({"conditions": [{"type": "SharedResourceWarning", "message": "w"}]}, {}, None),
        (SICK, {}, WaitFailure("health is Degraded: no image, and no operation is running", is_certain=False)),
        (SICK, AUTOMATED, WaitFailure("health is Degraded: no image, and no operation is running", is_certain=False)),
        (SICK, HEALING, None),  # self-heal corrects the drift
        ({**SICK, "operationState": operation("Running")}, {}, None),
    ],
)
def test_wait_fails_early_only_if_conditions_cannot_be_met(
    status: dict[str, Any], more: dict[str, Any], expected: WaitFailure | None
) -> None:
    assert find_wait_failure(application(status, **more), ALL) == expected


def test_health_wait_fails_if_no_sync_will_create_objects() -> None:
    missing = {**OUT, "health": {"status": "Missing"}}
    assert find_wait_failure(application(missing), HEALTH) == WaitFailure(NOBODY)
    assert find_wait_failure(application({**OUT, "health": {"status": "Progressing"}}), HEALTH) is None


def test_degraded_does_not_fail_waits_for_degraded_or_suspended() -> None:
    conditions = WaitConditions(health=frozenset({"Degraded"}))
    assert conditions.list_unmet(application(SICK)) == []
    assert (
        find_wait_failure(
            application({"health": {"status": "Degraded"}}), WaitConditions(health=frozenset({"Suspended"}))
        )
        is None
    )


def test_only_selected_resource_can_fail_the_wait() -> None:
    synced = {**OBJECT, "kind": "Deployment", "group": "apps", "status": "Synced"}
    rows = [
        {**synced, "name": name, "health": {"status": health}}
        for name, health in (("good", "Progressing"), ("bad", "Degraded"))
    ]
    app = application({**SICK, "resources": rows})
    failure = find_wait_failure(app, WaitConditions(health=frozenset({"Healthy"}), resources=("apps:Deployment:bad",)))
    assert failure == WaitFailure("Deployment/bad: Degraded, and no operation is running", is_certain=False)
    assert (
        find_wait_failure(app, WaitConditions(health=frozenset({"Healthy"}), resources=("apps:Deployment:good",)))
        is None
    )


def test_container_waiting_reason_is_listed_unless_only_starting() -> None:
    pod = {
        "status": {
            "initContainerStatuses": [{"name": "load", "state": {"waiting": {"reason": "PodInitializing"}}}],
            "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}},
                {"name": "side", "state": {"running": {}}},
            ],
        }
    }
    (waiting_reason,) = list_waiting_reasons(pod)
    assert (waiting_reason, waiting_reason.reason) == ("container main  ErrImagePull: no such image", "ErrImagePull")


def test_unchanged_progress_is_repeated_only_after_heartbeat() -> None:
    now, lines = [0.0], list[str]()
    reporter = WaitReporter(ALL, lines.append, lambda: now[0])
    app = application({"sync": {"status": "Synced"}, "health": {"status": "Progressing", "message": "0 of 2"}})
    for moment in (0.0, 1.0, HEARTBEAT_SECONDS + 2):
        now[0] = moment
        reporter.show(app)
    assert lines == ["models: waiting: health is Progressing, not Healthy (0 of 2)"] * 2
    reporter.show(application({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}))
    assert len(lines) == 2
