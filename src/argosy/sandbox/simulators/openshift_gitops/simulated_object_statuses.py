"""Builds the statuses that real controllers would write, for simulated objects.

In: a live manifest. Out: its status. Never: reads a clock: all times are the object's own, so that the same object
always gets the same status and nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import CLUSTER_SERVICE_VERSION, DEPLOYMENT, POD, ROUTE, STATEFUL_SET, SUBSCRIPTION
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import SIMULATED_NOTE
from argosy.sandbox.simulators.openshift_gitops.workload_manifests import hash_pod_template

StatusFields = dict[str, Any]


def build_deployment_status(live: Manifest) -> StatusFields:
    replicas = live["spec"].get("replicas", 1)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    conditions = [
        _build_condition(live, "Available", "MinimumReplicasAvailable", f"available: {SIMULATED_NOTE}"),
        _build_condition(live, "Progressing", "NewReplicaSetAvailable", f"rolled out: {SIMULATED_NOTE}"),
    ]
    for condition in conditions:
        condition["lastUpdateTime"] = condition["lastTransitionTime"]
    return {**_build_observed_generation(live), **_build_counts(counts, replicas), "conditions": conditions}


def build_stateful_set_status(live: Manifest) -> StatusFields:
    replicas = live["spec"].get("replicas", 1)
    counts = ("currentReplicas", "updatedReplicas", "readyReplicas")
    revision = f"{live['metadata']['name']}-{hash_pod_template(live)}"
    return {
        **_build_observed_generation(live),
        "replicas": replicas,
        "availableReplicas": replicas,
        **_build_counts(counts, replicas),
        "currentRevision": revision,
        "updateRevision": revision,
    }


def build_pod_status(live: Manifest) -> StatusFields:
    """Build a Running status; no program starts, and the log says so."""
    created_at = live["metadata"]["creationTimestamp"]
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    containers = [
        {
            "name": item["name"], "image": item["image"], "imageID": "", "containerID": "",
            "ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": created_at}},
        }
        for item in live["spec"]["containers"]
    ]  # fmt: skip
    return {
        "phase": "Running",
        "message": SIMULATED_NOTE,
        "startTime": created_at,
        "conditions": [{"type": item, "status": "True", "lastTransitionTime": created_at} for item in types],
        "containerStatuses": containers,
    }


def build_route_status(live: Manifest) -> StatusFields:
    admitted = _build_condition(live, "Admitted", "", "")
    for field in ("reason", "message"):
        del admitted[field]
    entry = {"host": live["spec"].get("host") or "", "routerName": "default", "wildcardPolicy": "None"}
    return {"ingress": [{**entry, "conditions": [admitted]}]}


def build_subscription_status(live: Manifest) -> StatusFields:
    version = live["spec"].get("startingCSV") or ""
    healthy = {
        **_build_condition(live, "CatalogSourcesUnhealthy", "AllCatalogSourcesHealthy", SIMULATED_NOTE),
        "status": "False",
    }
    return {
        "state": "AtLatestKnown",
        "currentCSV": version,
        "installedCSV": version,
        "lastUpdated": live["metadata"]["creationTimestamp"],
        "conditions": [healthy],
    }


def build_operator_version_status(live: Manifest) -> StatusFields:
    return {"phase": "Succeeded", "reason": "InstallSucceeded", "message": SIMULATED_NOTE}


def build_argocd_status(
    live: Manifest, *, host: str, component_states: Mapping[str, str | None], problem: str = ""
) -> StatusFields:
    """Build the status of an ArgoCD resource; `component_states` maps status fields to states, None to remove one."""
    condition = _build_condition(live, "Reconciled", "Success", SIMULATED_NOTE)
    if problem:
        condition.update(status="False", reason="ErrorOccurred", message=f"{problem} ({SIMULATED_NOTE})")
    return {**component_states, "host": host, "phase": "Failed" if problem else "Available", "conditions": [condition]}


def _build_observed_generation(live: Manifest) -> StatusFields:
    return {"observedGeneration": live["metadata"].get("generation", 1)}


def _build_counts(fields: Sequence[str], replicas: int) -> StatusFields:
    """k8s: a count of 0 is omitted, which None does in a merge patch."""
    return dict.fromkeys(fields, replicas or None)


def _build_condition(live: Manifest, type_: str, reason: str, message: str) -> StatusFields:
    created_at = live["metadata"]["creationTimestamp"]
    return {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": created_at}


STATUS_BUILDERS: Final[Mapping[GroupKind, Callable[[Manifest], StatusFields]]] = {
    DEPLOYMENT: build_deployment_status,
    STATEFUL_SET: build_stateful_set_status,
    POD: build_pod_status,
    ROUTE: build_route_status,
    SUBSCRIPTION: build_subscription_status,
    CLUSTER_SERVICE_VERSION: build_operator_version_status,
}
