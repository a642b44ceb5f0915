"""What live rules advise: the very commands, labels and keys, and each only where it helps."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.analysis.difference_cause import CauseKind
from argosy.gitops.analysis.live_view import InstallationView, OperatorHealth
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.analysis.rules import diagnose_installation
from argosy.gitops.analysis.rules.live.health_checks import NOTEBOOK_KEY
from argosy.gitops.analysis.rules.live.workloads import MODEL
from support.installation_facts import advised, ago, app, differs, list_messages, manifest, row, view

SERVING, NOTEBOOKS = "serving.kserve.io", "mlops.mlops.dev"
MODEL_ROW = row("InferenceService", "fraud", SERVING)
TRAIN, OLD = (row("NotebookValidationJob", name, NOTEBOOKS, wave=wave) for name, wave in (("train", 3), ("old", 0)))
REFUSED = ("ComparisonError", "authentication required")


def notebook(name: str, phase: str) -> dict[str, Any]:
    return manifest(f"{NOTEBOOKS}/v1alpha1", "NotebookValidationJob", name, status={"phase": phase})


def test_a_repository_without_a_secret_is_told_the_label_and_the_keys_that_are_mandatory() -> None:
    fix = advised("AGY505", view(app(sync="Unknown", conditions=[REFUSED]), repositories=()))
    assert "argocd.argoproj.io/secret-type=repository" in fix
    assert "type: git and url: https://git.example.com/ml.git" in fix


def test_an_operator_that_is_idle_is_looked_at_and_then_made_to_look_by_a_timestamp() -> None:
    operator = OperatorHealth("openshift-gitops-operator", ("Deployment openshift-gitops-operator 0/1 ready",))
    settings = InstallationView(
        "openshift-gitops", "openshift-gitops", {}, missing_keys=("k",), changed_at=ago(90), operator=operator
    )
    fix = advised("AGY508", view(settings=settings))
    assert "kubectl get deployment,pods -n openshift-gitops-operator" in fix
    assert "kubectl annotate argocd openshift-gitops -n openshift-gitops --overwrite" in fix
    assert 'kubectl.kubernetes.io/restartedAt="$(date +%Y-%m-%dT%H:%M:%S%z)"' in fix


def test_what_the_controller_logs_is_told_where_a_check_is_in_place() -> None:
    key = f"resource.customizations.health.{SERVING}_InferenceService"
    settings = InstallationView(
        "argocd", "a", {key: "x"}, requested_scripts={MODEL: "x"}, errors=("lua error in line 3",)
    )
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    live = manifest(f"{SERVING}/v1beta1", "InferenceService", "fraud", status=status)
    live_view = view(app(health="Progressing", rows=(MODEL_ROW,)), live=(live,), settings=settings)

    assert "the application controller logs: lua error in line 3" in list_messages("AGY512", live_view)[0]


def test_a_notebook_that_is_done_and_not_called_so_leads_to_its_controllers_log() -> None:
    settings = InstallationView("argocd", data={NOTEBOOK_KEY: "x"}, kinds_with_check=frozenset({TRAIN.key.group_kind}))
    live_view = view(
        app(health="Progressing", rows=(TRAIN,)), live=(notebook("train", "Succeeded"),), settings=settings
    )
    fix = advised("AGY512", live_view)
    assert "kubectl logs -n jupyter-notebook-validator-system" in fix
    assert "deployment/jupyter-notebook-validator-operator-controller-manager" in fix


def test_health_that_is_not_shown_leads_to_the_key_the_log_and_a_restart() -> None:
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
def test_a_deleted_job_comes_back_by_itself_only_with_self_heal(policy: dict[str, Any], words: str) -> None:
    live = (notebook("train", "Succeeded"), notebook("old", "Failed"))
    live_view = view(app(health="Degraded", rows=(TRAIN, OLD), spec={"syncPolicy": policy}), live=live)
    assert advised("AGY514", live_view).endswith(words)


def test_waves_that_do_not_wait_are_offered_a_check_or_a_job_that_is_no_pre_sync_hook() -> None:
    later = row("InferenceService", "fraud", SERVING, wave=4)
    fix = advised("AGY513", view(app(rows=(TRAIN, later)), settings=InstallationView("argocd", data={})))
    assert "hook: Sync" in fix and "PreSync" not in fix
    assert "argosy generate wait-for-notebook --name train --block-wave 4 -n ml" in fix


def test_an_unhealthy_model_leads_to_its_pods_events_and_logs() -> None:
    fix = advised("AGY518", view(app(health="Degraded", rows=(MODEL_ROW,))))
    for words in (
        "kubectl get pods -n ml",
        "kubectl describe inferenceservice fraud -n ml",
        "kubectl logs -n ml -l serving.kserve.io/inferenceservice=fraud",
    ):
        assert words in fix


def test_a_selector_is_first_looked_for_in_kustomize_and_recreated_only_then() -> None:
    message = "Deployment.apps is invalid: spec.selector: Invalid value: {}: field is immutable"
    application = app(sync="OutOfSync", conditions=[("SyncError", message)], rows=(row("Deployment", group="apps"),))
    fix = advised("AGY510", view(application))
    assert fix.index("includeSelectors: true") < fix.index("--force --replace")


def test_an_automated_sync_that_does_not_begin_leads_to_policy_polling_and_a_try_by_hand() -> None:

    state = {"phase": "Succeeded", "startedAt": ago(2000), "finishedAt": ago(1990), "operation": {"sync": {}}}
    application = app(
        sync="OutOfSync",
        spec={"syncPolicy": {"automated": {}}},
        differing_fields=(differs("ConfigMap", "/data/a", CauseKind.CHANGED_IN_GIT),),
        status={"operationState": state},
    )
    fix = advised("AGY515", view(application))
    for words in ("spec.syncPolicy.automated", "polls Git", "argosy app sync models"):
        assert words in fix


def test_a_change_by_hand_is_a_warning_where_people_sync_and_gits_change_is_for_information() -> None:
    state = {"operationState": {"phase": "Succeeded", "operation": {"sync": {}}}}
    severities = {}
    for kind in (CauseKind.OTHER_CONTROLLER, CauseKind.CHANGED_IN_GIT):
        differing = (differs("ConfigMap", "/data/a", kind, "kubectl-edit"),)
        (finding,) = diagnose_installation(view(app(sync="OutOfSync", differing_fields=differing, status=state)))
        severities[kind] = finding.severity
    assert severities == {CauseKind.OTHER_CONTROLLER: Severity.WARNING, CauseKind.CHANGED_IN_GIT: Severity.INFO}


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
def test_a_cluster_that_cannot_be_used_is_looked_at_by_its_name(said: str, way: str) -> None:
    ill = app(sync="Unknown", conditions=[("ComparisonError", f"Failed to load live state: {said}")])
    assert way in advised("AGY519", view(ill))
    assert [finding.rule.id for finding in diagnose_installation(view(ill))] == ["AGY519"]
