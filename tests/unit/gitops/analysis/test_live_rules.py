"""Each live rule reports its bad cases and reports nothing for its good cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.analysis.live_view import (
    HealthResponse,
    InstallationView,
    LiveApplication,
    LiveModel,
    LiveView,
    OperatorHealth,
    RepositorySecret,
)
from argosy.gitops.analysis.rule_violation import FileLocation, Violation
from argosy.gitops.analysis.rules import CATALOGUE, diagnose_installation
from argosy.gitops.analysis.rules.live.health_checks import NOTEBOOK_KEY
from argosy.gitops.application import read_application
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.application_delivery_engine_detection import ArgoCDController, DeliveryEngines
from argosy.gitops.status.projects_over_worker_budget_configmap import BudgetUse
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB, STORAGE_CLASS
from support.installation_facts import ago, app, differs, list_messages, manifest, row, view

SERVING, NOTEBOOKS = "serving.kserve.io", "mlops.mlops.dev"
UNREADABLE = Violation(
    FileLocation("ConfigMap/argosy-cm"), "argosy-cm: sync.waveDelay: 'soon' is no duration", "correct it"
)
BY_ROUTER = differs("Route", "/spec/host", CauseKind.OTHER_CONTROLLER, "openshift-router", "route.openshift.io")
BY_ADMISSION = differs("Route", "/spec/tls", CauseKind.WEBHOOK, group="route.openshift.io")
BY_HAND = differs("Deployment", "/spec/replicas", CauseKind.OTHER_CONTROLLER, "kubectl-edit", "apps")
BY_GIT_OVER_HAND = differs("Deployment", "/spec/replicas", CauseKind.GIT_CHANGE, "kubectl-edit", "apps")
BY_GIT = differs("Deployment", "/spec/replicas", CauseKind.GIT_CHANGE, "argocd-controller", "apps")
ROLLED_BACK = {
    "sync": {"status": "OutOfSync", "revision": "b" * 40},
    "history": [
        {"id": at, "revision": letter * 40, "initiatedBy": {"username": "ann"}} for at, letter in enumerate("aba")
    ],
}
AUTOMATED = {"syncPolicy": {"automated": {"selfHeal": True}}}
KEY = "resource.customizations.health.serving.kserve.io_InferenceService"


def not_looked_at() -> LiveApplication:
    wire = {
        "metadata": {"name": "models", "namespace": "argocd"},
        "spec": {"source": {"repoURL": "https://git.example/a"}},
    }
    return LiveApplication(read_application(wire))


def operation(phase: str = "Failed", message: str = "", results: Sequence[Mapping[str, Any]] = (), **more: Any) -> Any:
    synced = {"revision": "4c1d2e3f", "resources": list(results)}
    return {
        "operationState": {
            "phase": phase,
            "message": message,
            "startedAt": ago(2000),
            "finishedAt": ago(1990) if phase != "Running" else "",
            "operation": {"sync": {}},
            "syncResult": synced,
            **more,
        }
    }


def result(kind: str, name: str, message: str, status: str = "SyncFailed", group: str = "apps") -> dict[str, str]:
    return {"group": group, "kind": kind, "name": name, "namespace": "ml", "status": status, "message": message}


def history(*seconds: float) -> list[dict[str, Any]]:
    return [
        {"id": at, "deployStartedAt": ago(9000), "deployedAt": ago(9000 - duration)}
        for at, duration in enumerate(seconds)
    ]


def claim(name: str | None = "fast", **status: Any) -> Manifest:
    spec = {"storageClassName": name} if name is not None else {}
    return manifest("v1", "PersistentVolumeClaim", spec=spec, status={"phase": "Pending", **status})


def storage(name: str, mode: str = "Immediate", **annotations: str) -> Manifest:
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "volumeBindingMode": mode}


def event(kind: str, reason: str, message: str) -> Manifest:
    about = {"apiVersion": "v1", "kind": kind, "namespace": "ml", "name": "one"}
    return manifest("v1", "Event", f"{reason}.1", involvedObject=about, reason=reason, message=message)


def pod(reason: str, message: str, image: str = "registry.example.com/ml/web:2") -> Manifest:
    waiting = {"name": "web", "image": image, "state": {"waiting": {"reason": reason, "message": message}}}
    return manifest("v1", "Pod", status={"containerStatuses": [waiting]})


def build(phase: str) -> Manifest:
    to = {"kind": "ImageStreamTag", "name": "web:2"}
    return manifest("build.openshift.io/v1", "Build", "web-3", spec={"output": {"to": to}}, status={"phase": phase})


def model(ready: str = "True", **more: Any) -> Manifest:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return manifest(f"{SERVING}/v1beta1", "InferenceService", "fraud", status=status, **more)


def notebook(phase: str, name: str = "train") -> Manifest:
    return manifest(f"{NOTEBOOKS}/v1alpha1", "NotebookValidationJob", name, status={"phase": phase})


def deployment(generation: int, observed: int, written: float) -> Manifest:
    fields = [{"manager": "argocd-controller", "time": ago(written), "fieldsV1": {"f:spec": {}}}]
    metadata = {"generation": generation, "managedFields": fields}
    return manifest("apps/v1", "Deployment", metadata=metadata, status={"observedGeneration": observed})


def operated(changed: float = 300, **more: Any) -> InstallationView:
    return InstallationView("openshift-gitops", "openshift-gitops", {}, changed_at=ago(changed), **more)


def window(**fields: Any) -> dict[str, Any]:
    """Return a sync window that is open from 11:00 to 13:00."""
    usual = {"kind": "deny", "schedule": "0 11 * * *", "duration": "2h", "applications": ["*"], "description": "rest"}
    return {**usual, **fields}


def projects(*windows: dict[str, Any]) -> dict[str, Project]:
    spec = {"sourceRepos": ["*"], "syncWindows": list(windows)}
    return {"default": read_project({"metadata": {"name": "default"}, "spec": spec})}


IMMUTABLE = 'Deployment.apps "one" is invalid: spec.selector: Invalid value: {…}: field is immutable'
REFUSED = "Failed to load target state: failed to list refs: authentication required: Repository not found."
PLAIN = InstallationView("argocd", data={})
MODEL_ROW = row("InferenceService", "fraud", SERVING)
TRAIN = row("NotebookValidationJob", "train", NOTEBOOKS, wave=3)
OLD = row("NotebookValidationJob", "old", NOTEBOOKS)
SERVED = row("InferenceService", "fraud", SERVING, wave=4)
MAIN = Cause(CauseKind.STALE_BRANCH, "stage1-complete cannot be rendered, and main can")
URL = "https://git.example.com/ml.git"
STAGE = {"source": {"repoURL": URL, "path": "serving", "targetRevision": "stage1-complete"}}
UNPROVISIONED = event("PersistentVolumeClaim", "ProvisioningFailed", "disk full")
CHILD = {"annotations": {"argocd.argoproj.io/tracking-id": "root:argoproj.io/Application:argocd/child"}}
ROOT = row("Application", "child", "argoproj.io")


def unread(said: str) -> LiveView:
    """Return a view of an Application whose live state cannot be read."""
    return view(app(sync="Unknown", conditions=[("ComparisonError", f"Failed to load live state: {said}")]))


AWAY = [unread("cluster prod (https://10.0.0.1:6443): connection refused"), unread("ServiceAccount robot")]


class Case(NamedTuple):
    bad: Sequence[tuple[LiveView, str]]  # views, each with text that the finding must contain
    good: Sequence[LiveView]


CASES: Mapping[str, Case] = {
    "AGY501": Case(
        [
            (
                view(app(sync="OutOfSync", differing_fields=(BY_ROUTER, BY_ADMISSION))),
                "acceptable: Route/one: spec.host, spec.tls set by openshift-router (2 fields)",
            ),
            (
                view(app(sync="OutOfSync", health="Degraded", differing_fields=(BY_ADMISSION,))),
                "set by an admission controller",
            ),
        ],
        [
            view(app(sync="OutOfSync", differing_fields=(BY_ROUTER, BY_GIT))),
            view(app(sync="OutOfSync", differing_fields=(BY_HAND,))),
            view(app(sync="OutOfSync", differing_fields=None)),
            view(app(differing_fields=())),
        ],
    ),
    "AGY502": Case(
        [
            (
                view(
                    app(
                        health="Progressing",
                        status={**operation("Running"), "history": history(50, 60, 70, 80, 300)},
                        blockers=("wave 2: Job/train  Progressing",),
                    )
                ),
                "its sync runs for 33m20s, but 95% of its syncs took at most 5m00s; waiting for: wave 2: Job/train",
            ),
            (
                view(app(health="Progressing", status={"history": history(1, 1, 1, 1, 1)}, rows=(MODEL_ROW,))),
                "is Progressing for",
            ),
            (
                view(app(status=operation("Running", "waiting for healthy state"), is_removed=True)),
                "its sync runs for 33m20s, but its operation was removed from the Application",
            ),
        ],
        [
            view(app(health="Progressing", status={**operation("Running"), "history": history(50, 60)})),
            view(app(health="Progressing", status={**operation("Running"), "history": history(*[4000] * 5)})),
            view(app(status={"history": history(1, 1, 1, 1, 1)})),
        ],
    ),
    "AGY503": Case(
        [
            (view(live=(claim("slow"), storage("fast"))), "StorageClass slow does not exist"),
            (view(live=(claim(None), storage("fast"))), "storageClassName is not set, and the cluster has no default"),
            (
                view(live=(claim(), storage("fast"), UNPROVISIONED)),
                "its provisioner failed: disk full",
            ),
            (
                view(
                    live=(
                        claim(),
                        storage("fast"),
                        event("PersistentVolumeClaim", "ProvisioningFailed", "exceeded quota: storage"),
                    )
                ),
                "the quota is exceeded",
            ),
        ],
        [
            view(live=(claim(), storage("fast", "WaitForFirstConsumer"))),
            view(live=(claim("slow"),), unread_kinds=frozenset({STORAGE_CLASS})),
            view(live=(claim("slow", phase="Bound"), storage("fast"))),
            view(live=(claim(None), storage("fast", **{"storageclass.kubernetes.io/is-default-class": "true"}))),
        ],
    ),
    "AGY504": Case(
        [
            (view(live=(pod("ErrImagePull", "manifest unknown"),)), "the registry has no such tag"),
            (view(live=(pod("ImagePullBackOff", "unauthorized: access denied"),)), "the registry requires credentials"),
            (
                view(live=(pod("ErrImagePull", "manifest unknown"), build("Running"))),
                "its build web-3 is still running (Running)",
            ),
            (view(live=(pod("ErrImagePull", "not found"), build("Failed"))), "its build web-3 failed"),
        ],
        [
            view(live=(pod("ContainerCreating", ""),)),
            view(live=(pod("CrashLoopBackOff", "back-off"),)),
        ],
    ),
    "AGY505": Case(
        [
            (
                view(
                    app(sync="Unknown", conditions=[("ComparisonError", REFUSED)]),
                    repositories=(RepositorySecret("argocd/ml-git", "https://git.example.com/ml"),),
                ),
                "rejects the credentials of Secret argocd/ml-git",
            ),
            (
                view(app(sync="Unknown", conditions=[("ComparisonError", REFUSED)]), repositories=()),
                "it has no repository Secret",
            ),
            (
                view(app(sync="Unknown", conditions=[("ComparisonError", "dial tcp: lookup git: no such host")])),
                "cannot be reached",
            ),
        ],
        [
            view(app(sync="Unknown", conditions=[("ComparisonError", "deploy: app path does not exist")])),
            view(app()),
            *AWAY,
        ],
    ),
    "AGY506": Case(
        [
            (
                view(models=(LiveModel(model(), (HealthResponse("/v2/health/ready", 503),)),)),
                "its health requests fail",
            ),
            (
                view(models=(LiveModel(model(), outdated_pods="fraud-1 started before train left it"),)),
                "the loaded model is not the one on storage",
            ),
        ],
        [
            view(models=(LiveModel(model(), (HealthResponse("/v2/health/ready", 404), HealthResponse("/", 200))),)),
            view(models=(LiveModel(model(), (HealthResponse("/v2/health/ready", 0),)),)),
            view(models=(LiveModel(model("False"), (HealthResponse("/v2/health/ready", 503),)),)),
        ],
    ),
    "AGY507": Case(
        [
            (
                view(app(status=operation("Running", "one failed. Retrying attempt #4 at 3PM.", retryCount=3))),
                "the sync of 4c1d2e3 was tried 4 times: one failed",
            ),
            (
                view(
                    app(
                        spec=AUTOMATED,
                        differing_fields=(BY_ROUTER,),
                        status=operation("Succeeded", operation={"sync": {"autoHealAttemptsCount": 7}}),
                    )
                ),
                "self-heal has synced the same revision 7 times: openshift-router overwrites Route/one spec.host",
            ),
        ],
        [
            view(app(status=operation("Running", retryCount=1))),
            view(app(status=operation("Succeeded", retryCount=4))),
            view(app(spec=AUTOMATED, status=operation("Succeeded", operation={"sync": {"autoHealAttemptsCount": 1}}))),
        ],
    ),
    "AGY508": Case(
        [
            (
                view(app(rows=(row("Deployment", group="apps"),)), live=(deployment(3, 2, 600),)),
                "Deployment/one: its controller has not acted for 10m00s",
            ),
            (
                view(
                    settings=operated(
                        missing_keys=(KEY,), phase="Pending", operator=OperatorHealth(pods=("operator-1 Pending",))
                    )
                ),
                f"in ArgoCD CR openshift-gitops, not in ConfigMap argocd-cm: {KEY}; operator not reconciling",
            ),
        ],
        [
            view(app(rows=(row("Deployment", group="apps"),)), live=(deployment(3, 3, 600),)),
            view(app(rows=(row("Deployment", group="apps"),)), live=(deployment(3, 2, 30),)),
            view(settings=operated(20, missing_keys=(KEY,))),
            view(settings=operated()),
        ],
    ),
    "AGY509": Case(
        [
            (
                view(
                    app(
                        sync="Unknown",
                        conditions=[("ComparisonError", "serving: app path does not exist")],
                        spec=STAGE,
                        render_failure=MAIN,
                        default_branch="main",
                    )
                ),
                "targetRevision stage1-complete: path serving not in branch; main renders",
            ),
            (
                view(
                    app(
                        conditions=[("ComparisonError", "serving/kustomization.yaml:7: vllm/pvc.yaml does not exist")],
                        spec=STAGE,
                        render_failure=MAIN,
                        default_branch="main",
                    )
                ),
                "targetRevision stage1-complete: path vllm/pvc.yaml not in branch; main renders",
            ),
            (
                view(app(conditions=[("InvalidSpecError", "project theirs does not exist")])),
                "the Application's spec is invalid: project theirs does not exist",
            ),
            (
                view(app(conditions=[("ComparisonError", "unable to resolve 'gone' to a commit SHA")])),
                "targetRevision main does not exist in the repository",
            ),
        ],
        [view(app(conditions=[("ComparisonError", REFUSED)])), view(app()), *AWAY],
    ),
    "AGY510": Case(
        [
            (
                view(
                    app(
                        sync="OutOfSync",
                        rows=(row("Deployment", group="apps"),),
                        status=operation(results=[result("Deployment", "one", IMMUTABLE)]),
                    )
                ),
                "Deployment/one: spec.selector changed, but cannot be changed on an existing object (immutable)",
            ),
            (view(app(sync="OutOfSync", conditions=[("SyncError", f"Failed: {IMMUTABLE}")])), "immutable"),
        ],
        [
            view(app(sync="OutOfSync", status=operation(results=[result("Deployment", "one", "quota exceeded")]))),
            view(app(status=operation(results=[result("Deployment", "one", IMMUTABLE)]))),
        ],
    ),
    "AGY511": Case(
        [
            (
                view(
                    app(conditions=[("SharedResourceWarning", "Namespace/ml is part of applications models and other")])
                ),
                "SharedResourceWarning with other: Namespace/ml",
            ),
            (
                view(
                    app(
                        conditions=[
                            ("SharedResourceWarning", "Pod/a is part of applications argocd/models and team/models")
                        ]
                    )
                ),
                "SharedResourceWarning with team/models: Pod/a",
            ),
            (
                view(app(conditions=[("SharedResourceWarning", "Pod/a is part of applications other and models")])),
                "SharedResourceWarning with other: Pod/a",
            ),
        ],
        [view(app(conditions=[("OrphanedResourceWarning", "there are 2")]))],
    ),
    "AGY512": Case(
        [
            (
                view(app(health="Progressing", rows=(MODEL_ROW,)), live=(model(),), settings=operated()),
                "no health check for InferenceService in ArgoCD CR openshift-gitops",
            ),
            (
                view(
                    app(health="Progressing", rows=(MODEL_ROW,)),
                    live=(model(),),
                    settings=InstallationView("argocd", "a", {KEY: "x"}, requested_scripts={INFERENCE_SERVICE: "x"}),
                ),
                "the health check is in ArgoCD CR and in ConfigMap",
            ),
            (
                view(app(rows=(TRAIN,)), live=(notebook("Succeeded"),), settings=PLAIN),
                f"argocd-cm has no key {NOTEBOOK_KEY}",
            ),
            (
                view(
                    app(rows=(TRAIN,)),
                    settings=InstallationView("argocd", data={NOTEBOOK_KEY.replace("_", "."): "return {}"}),
                ),
                f"is not spelled {NOTEBOOK_KEY}",
            ),
            (
                view(app(rows=(TRAIN,)), settings=InstallationView("argocd", has_configmap=False)),
                "ConfigMap argocd-cm does not exist in argocd",
            ),
        ],
        [
            view(app(health="Progressing", rows=(MODEL_ROW,)), live=(model("False"),), settings=operated()),
            view(app(rows=(MODEL_ROW,)), live=(model(),), settings=operated()),
            view(app(health="Progressing", rows=(MODEL_ROW,)), live=(model(),), settings=operated(missing_keys=(KEY,))),
            view(
                app(rows=(TRAIN,)),
                settings=InstallationView("argocd", data={}, kinds_with_check=frozenset({NOTEBOOK_JOB})),
            ),
            view(app(rows=(TRAIN,)), settings=InstallationView("argocd")),
        ],
    ),
    "AGY513": Case(
        [
            (
                view(app(rows=(TRAIN, SERVED)), settings=PLAIN),
                "wave 4 (InferenceService/fraud) does not wait for NotebookValidationJob/train in wave 3",
            )
        ],
        [
            view(app(rows=(TRAIN,)), settings=PLAIN),
            view(
                app(rows=(TRAIN, SERVED)),
                settings=InstallationView("argocd", data={}, kinds_with_check=frozenset({NOTEBOOK_JOB})),
            ),
            view(app(rows=(TRAIN, SERVED)), settings=InstallationView("argocd", data={}, is_delivered_by_argosy=True)),
        ],
    ),
    "AGY514": Case(
        [
            (
                view(
                    app(health="Degraded", rows=(TRAIN, OLD)), live=(notebook("Succeeded"), notebook("Failed", "old"))
                ),
                "Degraded because notebook jobs Failed: old; 1 Succeeded",
            )
        ],
        [
            view(app(rows=(TRAIN, OLD)), live=(notebook("Succeeded"), notebook("Failed", "old"))),
            view(app(health="Degraded", rows=(TRAIN,)), live=(notebook("Succeeded"),)),
        ],
    ),
    "AGY515": Case(
        [
            (
                view(app(sync="OutOfSync", rows=(row("Job", status="OutOfSync"),))),
                "never synced, 1 to create; expected: it is synced manually",
            ),
            (
                view(
                    app(
                        sync="OutOfSync",
                        rows=(row("Job", status="OutOfSync"),),
                        status=operation("Succeeded"),
                        differing_fields=(BY_GIT,),
                    )
                ),
                "1 object of 1 differs; expected: it is synced manually, and was not synced since",
            ),
            (
                view(app(sync="OutOfSync", rows=(row("Job", status="OutOfSync"),), status=operation("Succeeded"))),
                "1 object of 1 differs; it is synced manually, and was not compared",
            ),
            (
                view(app(sync="OutOfSync", rows=(row("Job", status="OutOfSync"),), status=ROLLED_BACK)),
                "1 object of 1 differs: it was rolled back to deployment 0 by ann; main still has bbbbbbb",
            ),
            (
                view(app(sync="OutOfSync", spec=AUTOMATED, differing_fields=(BY_GIT,), status=operation("Succeeded"))),
                "its automated sync has not started for",
            ),
            (
                view(
                    app(
                        sync="OutOfSync",
                        spec={"syncPolicy": {"automated": {}}},
                        differing_fields=(BY_HAND, BY_ROUTER),
                        status=operation("Succeeded"),
                    )
                ),
                "changed by hand, but self-heal is off: Deployment/one: spec.replicas set by kubectl-edit (1 field)",
            ),
            (
                view(app(sync="OutOfSync", differing_fields=(BY_HAND,), status=operation("Succeeded"))),
                "changed by hand, but no automated sync reverts it: Deployment/one: spec.replicas set by",
            ),
            (
                view(app(sync="OutOfSync", differing_fields=(BY_HAND, BY_GIT), status=operation("Succeeded"))),
                "spec.replicas set by kubectl-edit (1 field); Git has changed 1 more field",
            ),
            (
                view(app(sync="OutOfSync", differing_fields=(BY_GIT_OVER_HAND,), status=operation("Succeeded"))),
                "expected: it is synced manually, and was not synced since",
            ),
        ],
        [
            view(app(sync="OutOfSync", differing_fields=(BY_ROUTER,))),
            view(app(sync="OutOfSync", status=operation("Failed"))),
            view(app()),
        ],
    ),
    "AGY516": Case(
        [
            (
                view(app("root", rows=(ROOT,)), app("second", rows=(ROOT,)), app("child")),
                "Application child is declared twice: root and second both manage it",
            ),
            (
                view(app("root", rows=(ROOT,), spec=STAGE, default_branch="main"), app("child", metadata=CHILD)),
                "it creates 1 Application from stage1-complete, not from main: their manifests are stale",
            ),
        ],
        [view(app("root", rows=(ROOT,)), app("child", metadata=CHILD))],
    ),
    "AGY517": Case(
        [
            (
                view(app(sync="OutOfSync", status=operation(results=[result("Job", "seed", "quota exceeded")]))),
                "the sync of 4c1d2e3 failed: Job/seed: quota exceeded",
            )
        ],
        [
            view(app(status=operation(results=[result("Job", "seed", "quota exceeded")]))),
            view(app(sync="OutOfSync", status=operation(results=[result("Deployment", "one", IMMUTABLE)]))),
        ],
    ),
    "AGY518": Case(
        [
            (
                view(app(health="Degraded", blockers=("wave 0: Pod/x  CrashLoopBackOff",))),
                "Degraded: Pod/x  CrashLoopBackOff",
            )
        ],
        [view(app(health="Progressing")), view(app())],
    ),
    "AGY519": Case(
        [
            (AWAY[0], "cluster prod (https://10.0.0.1:6443) cannot be reached: connection refused"),
            (
                unread("cluster prod (https://x:1): x:1: cannot be reached: connection refused"),
                "cluster prod (https://x:1) cannot be reached: connection refused",
            ),
            (unread("cluster prod (https://x): Unauthorized"), "cluster prod (https://x) rejects the credentials"),
            (
                unread("cluster prod (https://x): config: is no JSON (Secret cluster-prod)"),
                "Secret cluster-prod of cluster prod (https://x) cannot be used: config: is no JSON",
            ),
            (
                unread('namespace "ml" for ConfigMap "settings" is not managed'),
                'is managed in some namespaces only: namespace "ml" for ConfigMap',
            ),
            (unread("ServiceAccount robot cannot be read"), "cannot be read: ServiceAccount robot cannot be read"),
            (
                view(app(conditions=[("InvalidSpecError", "there are no clusters with this name: prod")])),
                "is unknown: there are no clusters with this name: prod",
            ),
        ],
        [view(app(conditions=[("ComparisonError", REFUSED)])), view(app())],
    ),
    "AGY520": Case(
        [
            (
                view(settings=operated(unexpanded_sets=("teams",))),
                "ApplicationSet/teams: no controller expands it, so it generates no Applications",
            )
        ],
        [view(settings=operated()), view(app())],
    ),
    "AGY521": Case(
        bad=[
            (
                view(app(), projects=projects(window(**fields))),
                f"AppProject/default: sync window 0 is malformed: {word}; until then models cannot sync",
            )
            for fields, word in (
                ({"schedule": "61 * * * *"}, "invalid schedule of a sync window: invalid minute '61'"),
                ({"duration": "an hour"}, "invalid duration of a sync window: 'an hour' is not a duration"),
                ({"timeZone": "Mars/Olympus"}, "unknown time zone of a sync window: 'Mars/Olympus'"),
                ({"kind": "forbid"}, "the sync window '0 11 * * *' has the kind 'forbid'"),
            )
        ],
        good=[view(app(), projects=projects(window())), view(app(), projects=projects())],
    ),
    "AGY522": Case(
        bad=[
            (
                view(app(sync="OutOfSync", spec=AUTOMATED), projects=projects(window())),
                "its automated sync waits for a sync window: a deny window is open until 2026-11-15 13:00 UTC: "
                "0 11 * * * for 2h (rest)",
            ),
            (
                view(app(status=operation("Running")), projects=projects(window())),
                "its operation waits for a sync window: a deny window is open until 2026-11-15 13:00 UTC",
            ),
            (
                view(
                    app(sync="OutOfSync", spec=AUTOMATED),
                    projects=projects(window(kind="allow", schedule="0 20 * * *")),
                ),
                "no allow window is open until 2026-11-15 20:00 UTC",
            ),
        ],
        good=[
            view(app(spec=AUTOMATED), projects=projects(window())),
            view(app(sync="OutOfSync"), projects=projects(window())),
            view(app(sync="OutOfSync", spec=AUTOMATED), projects=projects(window(schedule="0 20 * * *"))),
            view(app(sync="OutOfSync", spec=AUTOMATED), projects=projects(window(applications=["other"]))),
            view(app(sync="OutOfSync", spec=AUTOMATED), projects=projects(window(duration="an hour"))),
            view(app(status=operation("Running")), projects=projects(window(manualSync=True))),
        ],
    ),
    "AGY523": Case(
        [
            (
                view(settings=operated(sso_fault="argocd-cm: oidc.config: clientID is missing; add it")),
                "SSO is not usable: argocd-cm: oidc.config: clientID is missing; add it",
            )
        ],
        [
            view(settings=operated()),
            view(settings=operated(sso_fault="argocd-cm: oidc.config: is no mapping", has_argocd=True)),
        ],
    ),
    "AGY524": Case(
        [(view(unreadable_settings=(UNREADABLE,)), UNREADABLE.message)],
        [view()],
    ),
    "AGY525": Case(
        [
            (
                view(not_looked_at(), budget_uses={"default": BudgetUse(75.0, 60.0, 300.0)}),
                "waits because project 'default' is over its budget (75s of 60s of worker time within 300s)",
            )
        ],
        [
            view(not_looked_at()),
            view(not_looked_at(), budget_uses={"other": BudgetUse(75.0, 60.0, 300.0)}),
            view(app(), budget_uses={"default": BudgetUse(75.0, 60.0, 300.0)}),
            view(
                not_looked_at(),
                budget_uses={"default": BudgetUse(75.0, 60.0, 300.0)},
                settings=InstallationView(
                    engines=DeliveryEngines((ArgoCDController("StatefulSet", "argocd", "controller"),))
                ),
            ),
        ],
    ),
}
LIVE = [number for number, rule in CATALOGUE.items() if rule.is_live]


def test_every_live_rule_has_bad_and_good_cases() -> None:
    assert list(CASES) == LIVE
    assert all(case.bad and case.good for case in CASES.values())


def test_sync_is_not_advised_while_a_window_refuses_it() -> None:
    differing = app(sync="OutOfSync", differing_fields=(BY_GIT,))
    (free,) = [
        finding.violation.fix
        for finding in diagnose_installation(view(differing, projects=projects()))
        if finding.rule.id == "AGY515"
    ]
    assert "argosy app sync models" in free
    for windows, is_refused in (([window()], True), ([window(manualSync=True)], False)):
        findings = diagnose_installation(view(differing, projects=projects(*windows)))
        (fix,) = [finding.violation.fix for finding in findings if finding.rule.id == "AGY515"]
        assert ("argosy app sync" not in fix) is is_refused
        assert ("a sync is refused now" in fix and "argosy proj windows list default" in fix) is is_refused
        assert ("13:00" in fix) is is_refused, "the end of the window is named"


@pytest.mark.parametrize("rule", LIVE)
def test_live_rule_reports_its_bad_cases(rule: str) -> None:
    for live_view, words in CASES[rule].bad:
        (message,) = list_messages(rule, live_view)
        assert words in message


@pytest.mark.parametrize("rule", LIVE)
def test_live_rule_reports_nothing_for_its_good_cases(rule: str) -> None:
    for live_view in CASES[rule].good:
        assert list_messages(rule, live_view) == []


@pytest.mark.parametrize("rule", LIVE)
def test_every_live_finding_has_a_fix(rule: str) -> None:
    for live_view, _ in CASES[rule].bad:
        assert all(violation.fix for violation in CATALOGUE[rule].check_installation(live_view))


def fixes(rule: str, live_view: LiveView) -> list[str]:
    return [sight.fix for sight in CATALOGUE[rule].check_installation(live_view)]


def test_fixes_for_a_stuck_sync_name_only_applicable_commands() -> None:
    running, row_of_pod = operation("Running", "waiting for healthy state of apps/Deployment/web"), row("Pod")
    end, back = "argosy app terminate-op models", "argosy app rollback models"
    unpulled = pod("ImagePullBackOff", "manifest unknown")
    earlier = {"history": [{"id": 0, "revision": "a" * 40}]}
    (fix,) = fixes("AGY504", view(app(status={**running, **earlier}, rows=(row_of_pod,)), live=(unpulled,)))
    assert end in fix and back in fix
    for nothing in ({}, {"history": [{"id": 0, "revision": "4c1d2e3f"}]}):
        (fix,) = fixes("AGY504", view(app(status={**running, **nothing}, rows=(row_of_pod,)), live=(unpulled,)))
        assert end in fix and back not in fix
    (fix,) = fixes("AGY504", view(app(rows=(row_of_pod,)), live=(unpulled,)))
    assert end not in fix and back not in fix
    (fix,) = fixes("AGY502", view(app(status={**running, "history": history(50, 60, 70, 80, 300)})))
    assert end in fix
    (fix,) = fixes("AGY502", view(app(status=running, is_removed=True)))
    assert fix == f"end it: {end}"
    retried = operation("Running", "no. Retrying attempt #4 at 3PM.", retryCount=3)
    (fix,) = fixes("AGY507", view(app(status={**retried, **earlier})))
    assert end in fix and back in fix
    (fix,) = fixes("AGY507", view(app(status=retried)))
    assert end in fix and back not in fix


def test_fixes_for_sync_windows_name_the_allowed_commands() -> None:
    waits = {"sync": "OutOfSync", "spec": AUTOMATED}
    (fix,) = fixes("AGY522", view(app(**waits), projects=projects(window())))
    assert fix == "wait until then, or change the window; see the windows: argosy proj windows list default"
    (fix,) = fixes("AGY522", view(app(**waits), projects=projects(window(manualSync=True))))
    assert "sync it by hand, which the window allows: argosy app sync models" in fix
    (fix,) = fixes("AGY522", view(app(status=operation("Running")), projects=projects(window())))
    assert "end the operation: argosy app terminate-op models" in fix
    (fix,) = fixes("AGY521", view(app(), projects=projects(window(), window(duration="x"))))
    assert fix.startswith("correct it: argosy proj windows update default 1 with --schedule, --duration or --time-zone")


@pytest.mark.parametrize("rule", LIVE)
def test_live_rules_report_nothing_for_a_repository(rule: str) -> None:
    from argosy.gitops.analysis.repository_view import RepositoryView

    assert list(CATALOGUE[rule].check_repository(RepositoryView())) == []
