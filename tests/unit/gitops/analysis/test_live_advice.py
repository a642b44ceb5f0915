"""Fixes that live rules advise: exact commands, labels and keys, only where they help."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.analysis.difference_cause_kinds import CauseKind
from argosy.gitops.analysis.live_view import InstallationView, OperatorHealth
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.analysis.rules import diagnose_installation
from argosy.gitops.analysis.rules.live.health_checks import NOTEBOOK_KEY
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from support.installation_facts import advised, ago, app, differs, list_messages, manifest, row, view

SERVING, NOTEBOOKS = "serving.kserve.io", "mlops.mlops.dev"
MODEL_ROW = row("InferenceService", "fraud", SERVING)
TRAIN, OLD = (row("NotebookValidationJob", name, NOTEBOOKS, wave=wave) for name, wave in (("train", 3), ("old", 0)))
REFUSED = ("ComparisonError", "authentication required")


def notebook(name: str, phase: str) -> dict[str, Any]:
    return manifest(f"{NOTEBOOKS}/v1alpha1", "NotebookValidationJob", name, status={"phase": phase})


def test_missing_repository_secret_fix_names_its_label_and_required_keys() -> None:
    fix = advised("AGY505", view(app(sync="Unknown", conditions=[REFUSED]), repositories=()))
    assert "argocd.argoproj.io/secret-type=repository" in fix
    assert "type: git and url: https://git.example.com/ml.git" in fix


def test_idle_operator_fix_inspects_it_and_triggers_a_reconcile() -> None:
    operator = OperatorHealth("openshift-gitops-operator", ("Deployment openshift-gitops-operator 0/1 ready",))
    settings = InstallationView(
        "openshift-gitops", "openshift-gitops", {}, missing_keys=("k",), changed_at=ago(90), operator=operator
    )
    fix = advised("AGY508", view(settings=settings))
    assert "kubectl get deployment,pods -n openshift-gitops-operator" in fix
    assert "kubectl annotate argocd openshift-gitops -n openshift-gitops --overwrite" in fix
    assert 'kubectl.kubernetes.io/restartedAt="$(date +%Y-%m-%dT%H:%M:%S%z)"' in fix


def test_controller_log_error_is_reported_if_a_health_check_is_installed() -> None:
    key = f"resource.customizations.health.{SERVING}_InferenceService"
    settings = InstallationView(
        "argocd", "a", {key: "x"}, requested_scripts={INFERENCE_SERVICE: "x"}, errors=("lua error in line 3",)
    )
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    live = manifest(f"{SERVING}/v1beta1", "InferenceService", "fraud", status=status)
    live_view = view(app(health="Progressing", rows=(MODEL_ROW,)), live=(live,), settings=settings)

    assert "the application controller logs: lua error in line 3" in list_messages("AGY512", live_view)[0]


def test_succeeded_but_progressing_notebook_fix_shows_the_operator_log() -> None:
    settings = InstallationView("argocd", data={NOTEBOOK_KEY: "x"}, kinds_with_check=frozenset({TRAIN.key.group_kind}))
    live_view = view(
        app(health="Progressing", rows=(TRAIN,)), live=(notebook("train", "Succeeded"),), settings=settings
    )
    fix = advised("AGY512", live_view)
    assert "kubectl logs -n jupyter-notebook-validator-system" in fix
    assert "deployment/jupyter-notebook-validator-operator-controller-manager" in fix


def test_missing_health_fix_applies_the_check_and_restarts_argocd_server() -> None:
    fix = advised("AGY512", view(app(rows=(TRAIN,)), settings=InstallationView("argocd", data={})))
    assert "argosy health apply --kinds NotebookValidationJob" in fix
    assert "kubectl rollout restart deployment argocd-server -n argocd" in fix


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"automated": {"selfHeal": True}}, "Argo CD recreates it automatically"),
        ({"automated": {}}, "then sync it: argosy app sync models"),
        ({}, "then sync it: argosy app sync models"),
    ],
)
def test_failed_job_fix_needs_a_sync_unless_self_heal_is_on(policy: dict[str, Any], words: str) -> None:
    live = (notebook("train", "Succeeded"), notebook("old", "Failed"))
    live_view = view(app(health="Degraded", rows=(TRAIN, OLD), spec={"syncPolicy": policy}), live=live)
    assert advised("AGY514", live_view).endswith(words)


def test_ungated_wave_fix_suggests_a_sync_hook_and_not_pre_sync() -> None:
    later = row("InferenceService", "fraud", SERVING, wave=4)
    fix = advised("AGY513", view(app(rows=(TRAIN, later)), settings=InstallationView("argocd", data={})))
    assert "hook: Sync" in fix and "PreSync" not in fix
    assert "argosy generate wait-for-notebook --name train --block-wave 4 -n ml" in fix


def test_degraded_model_fix_shows_pods_events_and_logs() -> None:
    fix = advised("AGY518", view(app(health="Degraded", rows=(MODEL_ROW,))))
    for words in (
        "kubectl get pods -n ml",
        "kubectl describe inferenceservice fraud -n ml",
        "kubectl logs -n ml -l serving.kserve.io/inferenceservice=fraud",
    ):
        assert words in fix


def test_immutable_selector_fix_names_kustomize_before_recreation() -> None:
    message = "Deployment.apps is invalid: spec.selector: Invalid value: {}: field is immutable"
    application = app(sync="OutOfSync", conditions=[("SyncError", message)], rows=(row("Deployment", group="apps"),))
    fix = advised("AGY510", view(application))
    assert fix.index("includeSelectors: true") < fix.index("--force --replace")


def test_stuck_automated_sync_fix_names_policy_polling_and_manual_sync() -> None:

    state = {"phase": "Succeeded", "startedAt": ago(2000), "finishedAt": ago(1990), "operation": {"sync": {}}}
    application = app(
        sync="OutOfSync",
        spec={"syncPolicy": {"automated": {}}},
        differing_fields=(differs("ConfigMap", "/data/a", CauseKind.GIT_CHANGE),),
        status={"operationState": state},
    )
    fix = advised("AGY515", view(application))
    for words in ("spec.syncPolicy.automated", "polls Git", "argosy app sync models"):
        assert words in fix


def test_manual_change_is_a_warning_and_a_git_change_is_info() -> None:
    state = {"operationState": {"phase": "Succeeded", "operation": {"sync": {}}}}
    severities = {}
    for kind in (CauseKind.OTHER_CONTROLLER, CauseKind.GIT_CHANGE):
        differing = (differs("ConfigMap", "/data/a", kind, "kubectl-edit"),)
        (finding,) = diagnose_installation(view(app(sync="OutOfSync", differing_fields=differing, status=state)))
        severities[kind] = finding.severity
    assert severities == {CauseKind.OTHER_CONTROLLER: Severity.WARNING, CauseKind.GIT_CHANGE: Severity.INFO}


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("cluster prod (https://x): connection refused", "check whether it responds now: argosy cluster get prod"),
        ("cluster prod (https://x:1): x:1: the certificate is not trusted by y", "set its CA as caData of tls"),
        ("cluster my prod (https://x): Unauthorized", "see it: argosy cluster get 'my prod'; then renew its"),
        (
            "cluster prod (https://x): config: is no JSON (Secret cluster-prod)",
            "correct Secret cluster-prod in namespace argocd; see: argosy cluster get prod",
        ),
        ('namespace "ml" for ConfigMap "a" is not managed', "argosy cluster set https://kubernetes.default.svc "),
    ],
)
def test_unusable_cluster_fix_depends_on_the_error(said: str, way: str) -> None:
    ill = app(sync="Unknown", conditions=[("ComparisonError", f"Failed to load live state: {said}")])
    assert way in advised("AGY519", view(ill))
    assert [finding.rule.id for finding in diagnose_installation(view(ill))] == ["AGY519"]
