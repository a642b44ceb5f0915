"""Diagnosis of Applications: lines, wave wait of a running sync, score and post-sync checklist."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.analysis.current_wave_gate import find_wave_wait
from argosy.gitops.analysis.diagnosis_table_and_score import (
    Remedy,
    build_diagnosis_lines,
    compute_score,
    render_percent,
    summarize_state,
)
from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.analysis.live_view import InstallationView
from argosy.gitops.analysis.post_sync_checklist import build_checklist
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.analysis.rules import diagnose_installation
from argosy.gitops.status.sync_hold_annotation import SyncHold, describe_hold, hold_to_annotation
from support.installation_facts import ago, app, differs, row, view

BY_OTHERS = differs("Route", "/spec/host", CauseKind.OTHER_CONTROLLER, "openshift-router", "route.openshift.io")
SHARED = ("SharedResourceWarning", "Namespace/ml is part of applications models and other")
COMPARISON = ("ComparisonError", "deploy: app path does not exist")


def running(*results: dict[str, Any], message: str = "waiting for healthy state of batch/Job/train") -> dict[str, Any]:
    return {
        "operationState": {
            "phase": "Running",
            "message": message,
            "startedAt": ago(127),
            "operation": {"sync": {}},
            "syncResult": {"revision": "4c1d2e3f", "resources": list(results)},
        }
    }


def result(kind: str, name: str, **more: str) -> dict[str, str]:
    return {"group": "batch", "kind": kind, "namespace": "ml", "name": name, "hookPhase": "Running", **more}


# -- lines ------------------------------------------------------------------------------------------------------------


def test_application_state_is_the_worst_of_sync_health_and_conditions() -> None:
    assert summarize_state(app()) == "Synced"
    assert summarize_state(app(conditions=[SHARED])) == "Warning"
    assert summarize_state(app(sync="OutOfSync")) == "OutOfSync"
    assert summarize_state(app(sync="OutOfSync", health="Degraded")) == "Degraded"
    assert summarize_state(app(health="Progressing")) == "Progressing"
    assert summarize_state(app(sync="Unknown", conditions=[SHARED, COMPARISON])) == "ComparisonError"
    assert summarize_state(app(sync="OutOfSync", conditions=[("SyncError", "no")])) == "SyncError"
    assert summarize_state(app(status=running())) == "Syncing"


def test_each_finding_is_a_line_and_errors_come_first() -> None:
    live_view = view(app(sync="Unknown", conditions=[SHARED, COMPARISON]), app("other"))
    lines = build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {})
    assert [(line.app, line.severity) for line in lines] == [("models", Severity.ERROR), ("models", Severity.INFO)]


def test_hold_is_reported_as_a_hold_and_not_as_a_sync_error() -> None:
    hold = SyncHold("imported", "ann", "2026-11-15T11:00:00Z", "")
    spec, metadata = {"syncPolicy": {"automated": {}}}, {"annotations": {"argosy.dev/hold": hold_to_annotation(hold)}}
    condition = ("SyncError", f"Skipping sync attempt to [abc]: {describe_hold(hold, 'models')}")
    live_view = view(app(sync="OutOfSync", conditions=[condition], spec=spec, metadata=metadata))
    (line,) = build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {})
    assert line.state == "OutOfSync" and "its automated sync is held by ann: imported" in line.cause
    assert line.fix == "end the hold: argosy app release models"
    other = view(app(sync="OutOfSync", conditions=[("SyncError", "no")], spec=spec, metadata=metadata))
    assert [
        diagnosis_line.state
        for diagnosis_line in build_diagnosis_lines(other.apps, diagnose_installation(other), {}, {})
    ] == ["SyncError"]


def test_proven_remedy_replaces_the_usual_one() -> None:
    live_view = view(app(sync="OutOfSync", differing_fields=(BY_OTHERS,)))
    (usual,) = build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {})
    (proven,) = build_diagnosis_lines(
        live_view.apps, diagnose_installation(live_view), {("models", "AGY501"): Remedy("ignore rule", True)}, {}
    )
    assert (usual.remedy.tag, proven.remedy.tag) == ("[ask]", "[auto]")


def test_state_without_a_matching_rule_is_reported_as_unexplained() -> None:
    live_view = view(app(health="Missing"))
    (line,) = build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {})
    assert line.finding is None and line.cause.startswith("no rule identifies a cause")


def test_error_condition_without_a_rule_is_reported_next_to_findings() -> None:
    live_view = view(app(sync="OutOfSync", conditions=[("UnknownError", "a health check fails")]))
    first, second = build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {})
    assert "reported: UnknownError: a health check fails" in first.cause
    assert second.finding is not None and second.finding.rule.id == "AGY515"


def test_comparison_error_is_reported_before_its_consequences() -> None:
    ill = app(sync="Unknown", health="Degraded", conditions=[COMPARISON])
    lines = build_diagnosis_lines([ill], diagnose_installation(view(ill)), {}, {})
    assert [line.finding.rule.id for line in lines if line.finding] == ["AGY509", "AGY518"]


def test_warning_condition_without_a_rule_is_a_line_without_a_finding() -> None:
    live_view = view(app(conditions=[("OrphanedResourceWarning", "there are 2 orphaned resources")]))
    (line,) = build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {})
    assert line.finding is None and line.cause == "reported: OrphanedResourceWarning: there are 2 orphaned resources"


def test_healthy_applications_have_no_lines() -> None:
    live_view = view(app(), app("second"))
    assert build_diagnosis_lines(live_view.apps, diagnose_installation(live_view), {}, {}) == []


# -- wave wait --------------------------------------------------------------------------------------------------------


def test_postponed_sync_reports_its_wait_message() -> None:
    live_app = app(status=running(message="waiting for cluster prod (https://x): connection refused"))
    wait = find_wave_wait(live_app, view(live_app))
    assert wait is not None and wait.text.endswith(": waiting for cluster prod (https://x): connection refused")


def test_wave_wait_names_the_wave_its_objects_and_the_duration() -> None:
    live_app = app(status=running(result("Job", "train")), rows=(row("Job", "train", "batch", wave=2),))
    wait = find_wave_wait(live_app, view(live_app))
    assert wait is not None
    assert wait.text == "wave 2 is blocked for 2m07s: waiting for Job/train"


def test_wave_wait_names_a_blocking_hook_with_phase_and_deadline() -> None:
    message = "migrating (to be healthy by 2026-11-15T12:05:00.000Z)"
    hook = result("Job", "migrate", hookType="PreSync", syncPhase="PreSync", message=message)
    wait = find_wave_wait(app(status=running(hook)), view())
    assert wait is not None and (wait.phase, wait.objects) == ("PreSync", ("Job/migrate (hook): migrating",))
    assert "wave 0 of PreSync" in wait.text and wait.deadline == "2026-11-15T12:05:00+00:00"


def test_wave_wait_names_a_notebook_job_that_blocks_the_wave() -> None:
    message = "waiting for NotebookValidationJob ml/train, which blocks wave 4 (Running)"
    wait = find_wave_wait(app(status=running(message=message)), view())
    assert wait is not None and (wait.wave, wait.objects) == (4, ("NotebookValidationJob/train",))


def test_no_wave_wait_without_a_running_sync() -> None:
    assert find_wave_wait(app(), view()) is None


# -- score ------------------------------------------------------------------------------------------------------------


def test_score_is_computed_from_all_applications() -> None:
    apps = [app(f"a{at}", sync="Synced" if at < 3 else "OutOfSync") for at in range(8)]
    assert compute_score(apps, synced_after=8).text.startswith("Score 37.5% synced → 100% after fixes and a sync")
    assert compute_score([*apps, app("ninth")], synced_after=9).text.startswith("Score 44.4% synced → 100%")
    assert compute_score(apps).text == "Score 37.5% synced (3 of 8), 8 of 8 healthy"
    assert render_percent(7, 8) == "87.5%"


def test_score_lists_excluded_applications_with_reasons() -> None:
    apps = [app("dev"), app("staging", sync="OutOfSync"), app("production", sync="OutOfSync")]
    left = {"production": "a sync cannot be rehearsed: its namespace is not there yet"}
    assert compute_score(apps, 2, left).excluded_apps == left
    assert compute_score(apps, 2, left).to_wire()["left"] == left
    assert compute_score(apps, 1, left).excluded_apps == {}, "nothing is promised"


# -- checklist --------------------------------------------------------------------------------------------------------


def test_checklist_passes_for_healthy_applications_except_the_manual_item() -> None:
    held = [item.holds for item in build_checklist([app(plain_secrets=()), app("prod-a", plain_secrets=())])]
    assert held == [True, True, True, True, True, None]


def test_acceptable_drift_does_not_fail_the_checklist() -> None:
    assert build_checklist([app(sync="OutOfSync", differing_fields=(BY_OTHERS,))])[0].holds is True


def test_failed_checklist_items_name_the_application() -> None:
    ill = app(
        "models-prod",
        "OutOfSync",
        "Degraded",
        conditions=[COMPARISON],
        default_branch="main",
        plain_secrets=("Secret/key",),
    )
    breaches = [item.evidence for item in build_checklist([ill]) if item.holds is False]
    assert len(breaches) == 5 and all("models-prod" in " ".join(breach) for breach in breaches)


def test_secrets_item_of_the_checklist_is_unknown_if_secrets_were_not_checked() -> None:
    assert build_checklist([app()])[4].holds is None


def test_a_development_application_may_follow_a_feature_branch() -> None:
    assert build_checklist([app("models-dev", default_branch="main")])[3].holds is True


BAD_JQ = "jq cannot compile it, syntax error, unexpected end of file; correct it"
TIMED_OUT = (
    "Failed to load target state: chart: rendering the chart took longer than 50 s (limit wall); make it smaller; "
    "render timed out (3rd time); next try 14:03:20 UTC; retry now: argosy app get models --hard-refresh"
)
OUT_OF_MEMORY = (
    "Failed to load target state: chart: rendering the chart used more than 512 MiB of memory; make it smaller; "
    "render ran out of memory (1st time); next try 14:03:20 UTC; retry now: argosy app get models --hard-refresh"
)


def test_invalid_jq_expressions_are_reported_with_their_location() -> None:
    rules = [{"kind": "Deployment", "jqPathExpressions": [".spec.good", ".spec["]}, {"jqPathExpressions": [".a |"]}]
    settings = {"resource.customizations.ignoreDifferences.all": "jqPathExpressions:\n- .metadata[\n"}
    conditions = [
        ("ComparisonError", f"jqPathExpressions: {text!r}: {BAD_JQ}") for text in (".spec[", ".a |", ".metadata[")
    ]
    ill = app(sync="OutOfSync", conditions=conditions, spec={"ignoreDifferences": rules})
    live_view = view(ill, settings=InstallationView(data=settings))
    lines = [
        line
        for line in build_diagnosis_lines([ill], diagnose_installation(live_view), {}, {})
        if line.finding and line.finding.rule.id == "AGY509"
    ]
    assert [line.cause.partition(": ")[0] for line in lines] == [
        "the jq expression '.spec[' in spec.ignoreDifferences[0].jqPathExpressions[1] is invalid",
        "the jq expression '.a |' in spec.ignoreDifferences[1].jqPathExpressions[0] is invalid",
        "the jq expression '.metadata[' in resource.customizations.ignoreDifferences.all of argocd-cm is invalid",
    ]
    assert all("syntax error" in line.cause for line in lines)
    assert {line.remedy.label for line in lines} == {"jq expression"}
    assert "argosy app edit models" in lines[0].fix and "argosy kubectl edit configmap/argocd-cm" in lines[2].fix


@pytest.mark.parametrize(
    ("said", "limit", "word"),
    [(TIMED_OUT, "longer than 50 s", "timed out"), (OUT_OF_MEMORY, "512 MiB", "ran out of memory")],
)
def test_render_limit_error_names_the_limit_and_does_not_blame_the_branch(said: str, limit: str, word: str) -> None:
    ill = app(sync="Unknown", conditions=[("ComparisonError", said)])
    first, *_ = build_diagnosis_lines([ill], diagnose_installation(view(ill)), {}, {})
    assert first.cause.startswith(f"its render {word}") and limit in first.cause and "14:03:20 UTC" in first.cause
    assert "argosy app get models --hard-refresh" in first.fix and "targetRevision" not in first.cause + first.fix
    assert first.remedy.label == "smaller source"
