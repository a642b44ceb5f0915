"""Application status: every field in Argo CD's form, and no patch without a change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    SyncRequest,
    read_application,
)
from argosy.gitops.application.step_results import Assessment, HealthStatus, SyncStatus
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.history import append_deployment
from argosy.gitops.status.resources import ResourceStatus
from argosy.gitops.status.status_builder import (
    StatusReport,
    build_compared_to,
    build_status,
    build_status_patch,
    build_unreadable_patch,
    is_comparison_outdated,
)
from argosy.kube.patch import merge_patch
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.schema.crd import build_custom_kinds
from support.examples import examples
from support.operation_values import KEYS, NAMES, SOURCE_WIRES, TIMES, WORDS, states

SOURCE = {"repoURL": "https://git.example/models", "path": "dev", "targetRevision": "main"}
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"


def app(written: dict[str, Any] | None = None, **spec: Any) -> Application:
    return read_application(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "models", "namespace": "argocd", "uid": "u-1"},
            "spec": {
                "project": "default",
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
                **({} if "sources" in spec else {"source": SOURCE}),
                **spec,
            },
            **({"status": written} if written is not None else {}),
        }
    )


def report(application: Application, now: str = LATE, **fields: Any) -> StatusReport:
    usual: dict[str, Any] = {
        "state": application.state,
        "status": SyncStatus.SYNCED,
        "revisions": ("abc",),
        "tools": ("Kustomize",),
        "resources": [ResourceStatus(ResourceKey("apps", "Deployment", "ml", "web"), "v1", SyncStatus.SYNCED)],
        "health": Assessment(HealthStatus.HEALTHY),
        "summary": {"images": ["nginx:1"]},
        "controller_namespace": "argocd",
    }
    return StatusReport(app=application, now=now, **{**usual, **fields})


def test_status_has_all_fields_that_argo_cd_writes() -> None:
    assert build_status(report(app())) == {
        "sync": {
            "status": "Synced",
            "revision": "abc",
            "comparedTo": {
                "source": SOURCE,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
            },
        },
        "health": {"status": "Healthy", "lastTransitionTime": LATE},
        "resources": [
            {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "ml", "name": "web",
             "status": "Synced"},
        ],
        "resourceHealthSource": "appTree",
        "sourceType": "Kustomize",
        "summary": {"images": ["nginx:1"]},
        "controllerNamespace": "argocd",
        "reconciledAt": LATE,
    }  # fmt: skip


def test_multi_source_status_has_revisions_and_source_types() -> None:
    status = build_status(report(app(sources=[SOURCE, SOURCE]), revisions=("a", "b"), tools=("Helm", "Directory")))
    assert status["sync"]["revisions"] == ["a", "b"] and status["sourceTypes"] == ["Helm", "Directory"]
    assert status["sync"]["comparedTo"]["sources"] == [SOURCE, SOURCE]
    assert (
        "sourceType" not in status and "revision" not in status["sync"] and "source" not in status["sync"]["comparedTo"]
    )


def test_stale_source_types_are_removed() -> None:
    assert "sourceTypes" not in build_status(report(app({"sourceTypes": ["Helm", "Helm"]})))


def test_health_transition_time_changes_only_with_the_health_status() -> None:
    first = build_status(report(app(), EARLY))
    again = build_status(report(app(first), health=Assessment(HealthStatus.HEALTHY, "still")))
    assert again["health"] == {"status": "Healthy", "message": "still", "lastTransitionTime": EARLY}
    worse = build_status(report(app(first), health=Assessment(HealthStatus.DEGRADED)))
    assert worse["health"] == {"status": "Degraded", "lastTransitionTime": LATE}


def test_fields_that_were_not_evaluated_are_kept() -> None:
    first = build_status(report(app(), EARLY))
    step = StatusReport(app=app(first), now=LATE, state=None)
    assert build_status(step) == {**first, "reconciledAt": LATE}


def test_failed_comparison_marks_resources_unknown_but_not_hooks() -> None:
    lines = [{"kind": "Job", "name": "hook", "hook": True}, {"kind": "Service", "name": "web", "status": "Synced"}]
    status_report = report(
        app({"resources": lines}), status=SyncStatus.UNKNOWN, resources=None, is_comparison_failed=True
    )
    assert build_status(status_report)["resources"] == [lines[0], {**lines[1], "status": "Unknown"}]


def test_uncompared_app_keeps_last_sync_fields_with_status_unknown() -> None:
    first = build_status(report(app(), EARLY))
    status_report = report(app(first), status=SyncStatus.UNKNOWN, revisions=(), resources=None, is_compared=False)
    assert build_status(status_report)["sync"] == {**first["sync"], "status": "Unknown"}
    assert build_status(status_report)["resources"] == first["resources"]


def test_status_fields_of_other_controllers_are_kept() -> None:
    status = build_status(
        report(app({"sourceHydrator": {"currentOperation": {"phase": "Hydrated"}}, "observedAt": EARLY}))
    )
    assert status["sourceHydrator"] == {"currentOperation": {"phase": "Hydrated"}} and status["observedAt"] == EARLY


def test_cleared_operation_conditions_and_resources_are_removed() -> None:
    state = OperationState(OperationRequest(), started=EARLY)
    condition = AppCondition(ConditionType.SYNC_ERROR, "no")
    first = build_status(
        report(app(), state=state, conditions=[condition], evaluated_types=frozenset({condition.type}))
    )
    assert {"operationState", "conditions"} <= first.keys()
    second = build_status(report(app(first), state=None, resources=(), evaluated_types=frozenset({condition.type})))
    assert not {"operationState", "conditions", "resources"} & second.keys()
    patch = build_status_patch(first, second)
    assert patch == {"operationState": None, "conditions": None, "resources": None}


def test_unchanged_operation_state_is_written_unchanged() -> None:
    written = {"operation": {"sync": {}, "info": [{"name": "a", "value": "b"}]}, "phase": "Running", "startedAt": EARLY}
    assert build_status(report(app({"operationState": written})))["operationState"] == written


def test_nulls_in_the_source_are_dropped_as_by_the_api_server() -> None:
    source = {**SOURCE, "helm": {"valuesObject": {"a": None, "b": [{"c": None}]}}}
    application = app(source=source)
    written = build_status(report(application))
    assert written["sync"]["comparedTo"]["source"]["helm"] == {"valuesObject": {"b": [{}]}}
    assert not is_comparison_outdated(app(written, source=source))


@pytest.mark.parametrize(
    "spec",
    [
        {"source": {**SOURCE, "path": "prod"}},
        {"destination": {"name": "far", "namespace": "ml"}},
        {"ignoreDifferences": [{"kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]},
        {"sources": [SOURCE]},
    ],
)
def test_spec_change_makes_the_status_outdated(spec: dict[str, Any]) -> None:
    written = build_status(report(app()))
    assert not is_comparison_outdated(app(written))
    assert is_comparison_outdated(app(written, **spec))


def test_application_that_was_never_compared_is_outdated() -> None:
    assert is_comparison_outdated(app())
    assert build_compared_to(app(), app().sources)["source"] == SOURCE


def test_unchanged_status_writes_reconciled_at_once_a_minute() -> None:
    first = build_status(report(app(), "2026-01-01T00:00:00Z"))
    soon = build_status(report(app(first), "2026-01-01T00:00:59Z"))
    later = build_status(report(app(first), "2026-01-01T00:01:00Z"))
    assert build_status_patch(first, soon) is None
    assert build_status_patch(first, later) == {"reconciledAt": "2026-01-01T00:01:00Z"}
    assert build_status_patch(first, first) is None


def test_comparison_is_older_than_the_operation_that_ends_in_its_pass_and_the_next_one_is_written() -> None:
    """`argocd app sync` waits for a comparison that is not older than the operation."""
    request = OperationRequest(SyncRequest())
    ended = OperationState(request, OperationPhase.SUCCEEDED, started=EARLY, finished="2026-01-01T00:00:10Z")
    last = build_status(report(app(), "2026-01-01T00:00:10Z", state=ended))
    assert last["reconciledAt"] == "2026-01-01T00:00:09Z"
    again = app(last)
    later = build_status(report(again, "2026-01-01T00:00:10Z", state=again.state))
    assert build_status_patch(last, later) == {"reconciledAt": "2026-01-01T00:00:10Z"}


def test_status_change_is_patched_at_once_without_unchanged_fields() -> None:
    first = build_status(report(app(), "2026-01-01T00:00:00Z"))
    next_one = build_status(report(app(first), "2026-01-01T00:00:01Z", status=SyncStatus.OUT_OF_SYNC))
    assert build_status_patch(first, next_one) == {
        "sync": {"status": "OutOfSync"},
        "reconciledAt": "2026-01-01T00:00:01Z",
    }


@pytest.mark.parametrize("written", ["", "yesterday", None, "2027-01-01T00:00:00Z"])
def test_invalid_or_future_reconciled_at_is_rewritten(written: str | None) -> None:
    assert build_status_patch({"reconciledAt": written}, {"reconciledAt": LATE}) == {"reconciledAt": LATE}


ASSESSMENTS = st.none() | st.builds(Assessment, st.none() | st.sampled_from(HealthStatus), WORDS)
RESOURCES = st.builds(
    ResourceStatus,
    key=KEYS,
    version=st.sampled_from(["", "v1"]),
    status=st.none() | st.sampled_from(SyncStatus),
    assessment=ASSESSMENTS,
    is_hook=st.booleans(),
    requires_pruning=st.booleans(),
    wave=st.integers(-5, 5),
    requires_confirmation=st.booleans(),
)
CONDITIONS = st.builds(AppCondition, st.sampled_from(ConditionType), WORDS)


@st.composite
def reports(draw: st.DrawFn, written: dict[str, Any] | None = None) -> StatusReport:
    sources = draw(st.lists(SOURCE_WIRES, min_size=1, max_size=2))
    spec: dict[str, Any] = {"sources": sources} if draw(st.booleans()) else {"source": sources[0]}
    application = app(written, **spec)
    state = draw(st.none() | states())
    history = append_deployment([], state, 10) if state else None
    return StatusReport(
        app=application,
        now=draw(TIMES),
        state=state,
        status=draw(st.none() | st.sampled_from(SyncStatus)),
        revisions=draw(st.lists(NAMES, max_size=2).map(tuple)),
        sources=application.sources,
        tools=draw(st.lists(st.sampled_from(["", "Helm", "Kustomize"]), max_size=2).map(tuple)),
        resources=draw(st.none() | st.lists(RESOURCES, max_size=4)),
        persists_resource_health=draw(st.booleans()),
        health=draw(ASSESSMENTS),
        conditions=draw(st.lists(CONDITIONS, max_size=3)),
        evaluated_types=draw(st.frozensets(st.sampled_from(ConditionType))),
        history=history,
        summary=draw(st.none() | st.just({}) | st.just({"images": ["a"], "externalURLs": ["https://a.example"]})),
        controller_namespace=draw(WORDS),
    )


KIND = build_custom_kinds(load_definition("applications.argoproj.io"))[0]


@settings(max_examples=examples())
@given(reports())
def test_every_status_is_valid_for_the_application_crd(status_report: StatusReport) -> None:
    manifest = {**status_report.app.wire, "status": build_status(status_report)}
    assert KIND.validate(manifest) == []
    assert KIND.decode(manifest) == (manifest, [])


@settings(max_examples=examples(), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_status_patch_applied_to_the_old_status_gives_the_new_one(data: st.DataObject) -> None:
    first = data.draw(reports())
    before = build_status(first)
    after = build_status(data.draw(reports(before)))
    patch = build_status_patch(before, after)
    if patch is not None:
        assert merge_patch.apply(before, patch) == after


@settings(max_examples=examples())
@given(st.data())
def test_same_report_twice_writes_nothing(data: st.DataObject) -> None:
    first_report = data.draw(reports())
    before = build_status(first_report)
    again = StatusReport(
        **{
            **{name: getattr(first_report, name) for name in first_report.__slots__},
            "app": app(before, **first_report.app.wire["spec"]),
        }
    )
    assert build_status_patch(before, build_status(again)) is None


def test_unreadable_application_becomes_unknown_with_one_condition() -> None:
    before = {"sync": {"status": "Synced", "revision": "abc"}, "health": {"status": "Healthy", "message": "fine"}}
    patch = build_unreadable_patch(before, "spec.source: is a text", EARLY)
    assert patch is not None
    after = merge_patch.apply(before, patch)
    assert after == {
        "conditions": [{"type": "InvalidSpecError", "message": "spec.source: is a text", "lastTransitionTime": EARLY}],
        "sync": {"status": "Unknown", "revision": "abc"},
        "health": {"status": "Unknown", "lastTransitionTime": EARLY},
    }
    assert build_unreadable_patch(after, "spec.source: is a text", LATE) is None


def test_source_type_is_removed_while_the_desired_state_is_unknown() -> None:
    before = app({"sourceType": "Kustomize"})
    assert build_status(report(before, tools=()))["sourceType"] == "Kustomize"
    assert "sourceType" not in build_status(report(before, tools=(), is_desired_known=False))
