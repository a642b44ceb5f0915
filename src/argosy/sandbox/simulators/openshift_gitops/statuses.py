"""Builds the statuses that real controllers would write, for simulated objects.

In: a live manifest. Out: its status. Never: reads a clock: all times are the object's own, so that the same object
always gets the same status and nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops import constants
from argosy.sandbox.simulators.openshift_gitops.constants import BY
from argosy.sandbox.simulators.openshift_gitops.workloads import revision_of

Status = dict[str, Any]


def of_deployment(live: Manifest) -> Status:
    replicas = live["spec"].get("replicas", 1)
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    conditions = [
        _condition(live, "Available", "MinimumReplicasAvailable", f"available: {BY}"),
        _condition(live, "Progressing", "NewReplicaSetAvailable", f"rolled out: {BY}"),
    ]
    for condition in conditions:
        condition["lastUpdateTime"] = condition["lastTransitionTime"]
    return {**_observed(live), **_counted(counts, replicas), "conditions": conditions}


def of_stateful_set(live: Manifest) -> Status:
    replicas = live["spec"].get("replicas", 1)
    counts = ("currentReplicas", "updatedReplicas", "readyReplicas")
    revision = f"{live['metadata']['name']}-{revision_of(live)}"
    return {
        **_observed(live),
        "replicas": replicas,
        "availableReplicas": replicas,
        **_counted(counts, replicas),
        "currentRevision": revision,
        "updateRevision": revision,
    }


def of_pod(live: Manifest) -> Status:
    """Build a Running status; no program starts, and the log says so."""
    made = live["metadata"]["creationTimestamp"]
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    containers = [
        {
            "name": each["name"], "image": each["image"], "imageID": "", "containerID": "",
            "ready": True, "started": True, "restartCount": 0, "state": {"running": {"startedAt": made}},
        }
        for each in live["spec"]["containers"]
    ]  # fmt: skip
    return {
        "phase": "Running",
        "message": BY,
        "startTime": made,
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": made} for each in types],
        "containerStatuses": containers,
    }


def of_route(live: Manifest) -> Status:
    admitted = _condition(live, "Admitted", "", "")
    for empty in ("reason", "message"):
        del admitted[empty]
    entry = {"host": live["spec"].get("host") or "", "routerName": "default", "wildcardPolicy": "None"}
    return {"ingress": [{**entry, "conditions": [admitted]}]}


def of_subscription(live: Manifest) -> Status:
    version = live["spec"].get("startingCSV") or ""
    healthy = {**_condition(live, "CatalogSourcesUnhealthy", "AllCatalogSourcesHealthy", BY), "status": "False"}
    return {
        "state": "AtLatestKnown",
        "currentCSV": version,
        "installedCSV": version,
        "lastUpdated": live["metadata"]["creationTimestamp"],
        "conditions": [healthy],
    }


def of_cluster_service_version(live: Manifest) -> Status:
    return {"phase": "Succeeded", "reason": "InstallSucceeded", "message": BY}


def of_argocd(live: Manifest, *, host: str, parts: Mapping[str, bool], problem: str = "") -> Status:
    """Build the status of an ArgoCD resource; `components` maps status fields to True if they are enabled."""
    # argo: Running once all Pods are ready, Unknown for components that are not installed
    found = {part: "Running" if is_there else "Unknown" for part, is_there in parts.items()}
    condition = _condition(live, "Reconciled", "Success", BY)
    if problem:
        condition.update(status="False", reason="ErrorOccurred", message=f"{problem} ({BY})")
    return {**found, "host": host, "phase": "Failed" if problem else "Available", "conditions": [condition]}


def _observed(live: Manifest) -> Status:
    return {"observedGeneration": live["metadata"].get("generation", 1)}


def _counted(fields: Sequence[str], replicas: int) -> Status:
    """k8s: a count of 0 is omitted, which None does in a merge patch."""
    return dict.fromkeys(fields, replicas or None)


def _condition(live: Manifest, type_: str, reason: str, message: str) -> Status:
    made = live["metadata"]["creationTimestamp"]
    return {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": made}


PLAYED: Final[Mapping[GroupKind, Callable[[Manifest], Status]]] = {
    constants.DEPLOYMENT: of_deployment,
    constants.STATEFUL_SET: of_stateful_set,
    constants.POD: of_pod,
    constants.ROUTE: of_route,
    constants.SUBSCRIPTION: of_subscription,
    constants.CLUSTER_SERVICE_VERSION: of_cluster_service_version,
}
