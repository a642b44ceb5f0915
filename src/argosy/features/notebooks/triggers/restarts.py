"""Restarts workloads and models without downtime.

In: a trigger execution and its target. Out: a changed Pod template, whose controller replaces the Pods, or Pods evicted
one by one. Never: removes all Pods at once; violates a PodDisruptionBudget.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.annotations import RESTARTED_AT
from argosy.errors import UserError
from argosy.features.notebooks.triggers import eviction, trials
from argosy.features.notebooks.triggers.entries import EVICT, ROLLING, SERVICE, WORKLOADS
from argosy.features.notebooks.triggers.turns import PACE, Acted, Turn, called
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, annotation

POD: Final = GroupKind("", "Pod")
OF_SERVICE: Final = "serving.kserve.io/inferenceservice"
MODE: Final = "serving.kserve.io/deploymentMode"
REVISIONED: Final = ("Serverless", "Knative")
REVISION: Final = "serving.knative.dev/revision"  # label of Pods of a Knative revision
ON_DELETE: Final = "OnDelete"


async def restart(turn: Turn, target: Manifest) -> Acted:
    kind = turn.entry.group_kind
    if target["metadata"].get("deletionTimestamp"):
        raise UserError(f"{called(target)} is being deleted")
    if kind in WORKLOADS:
        return await _workload(turn, target)
    if kind != SERVICE:
        return await eviction.evict(turn, target, await eviction.owned(target, turn.cluster))
    pods = await eviction.labelled(target, f"{OF_SERVICE}={turn.entry.name}", turn.cluster)
    if turn.entry.probe and not turn.is_marked(target) and not turn.record.get("pods"):
        waits = await trials.tried(turn, target, pods)
        if waits is not None:
            return waits
    if turn.entry.strategy != EVICT and (turn.entry.strategy == ROLLING or has_revisions(target, pods)):
        return await _service(turn, target)
    return await eviction.evict(turn, target, pods)


def has_revisions(service: Manifest, pods: list[Manifest]) -> bool:
    """kserve: newer versions report the deployment mode in the status; otherwise its annotation or the Pods tell."""
    mode = (service.get("status") or {}).get("deploymentMode") or annotation(service, MODE)
    if mode:
        return mode in REVISIONED
    return any(REVISION in (pod["metadata"].get("labels") or {}) for pod in pods)


async def _workload(turn: Turn, target: Manifest) -> Acted:
    spec = target.get("spec") or {}
    if (spec.get("updateStrategy") or {}).get("type") == ON_DELETE:
        return await eviction.evict(turn, target, await eviction.selected(target, turn.cluster))
    if not turn.is_marked(target):
        await turn.may_patch(target)
        if spec.get("paused"):
            raise UserError(f"{called(target)} is paused; resume it: kubectl rollout resume")
        template = {"metadata": {"annotations": {RESTARTED_AT: turn.time}}}
        target = await turn.patch(target, {"spec": {"template": template}}, {})
    if not turn.entry.waits:
        return Acted("a rolling update replaces its Pods")
    return _rolled_out(target)


async def _service(turn: Turn, target: Manifest) -> Acted:
    """kserve: a patched Deployment would be reverted; the annotation causes a new revision or a rolling update."""
    if not turn.is_marked(target):
        await turn.may_patch(target)
        changes = {"spec": {"predictor": {"annotations": {RESTARTED_AT: turn.time}}}}
        await turn.patch(target, changes, {})
        return Acted("waiting for new Pods", PACE) if turn.entry.waits else Acted("a new revision replaces its Pods")
    if not turn.entry.waits:
        return Acted("a new revision replaces its Pods")
    return await _serving(turn, target, turn.cluster)


def _rolled_out(live: Manifest) -> Acted:
    why = rollout(live)
    return Acted(f"waiting: {why}", PACE) if why else Acted("all Pods were replaced and are ready")


def rollout(live: Manifest) -> str:
    """k8s: the checks of `kubectl rollout status`; "" when done. Raises UserError if the rollout is stuck."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(live["metadata"].get("generation") or 0):
        return "the controller has not observed the change yet"
    if live["kind"] == "DaemonSet":
        wanted, updated, ready = (
            int(status.get(name) or 0)
            for name in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        )
    else:
        wanted = int(spec.get("replicas", 1))
        updated, ready = int(status.get("updatedReplicas") or 0), _ready(live["kind"], status)
    for each in status.get("conditions") or ():
        if each.get("type") == "Progressing" and each.get("reason") == "ProgressDeadlineExceeded":
            raise UserError(f"{called(live)}: the new Pods do not become ready; the old Pods keep serving")
    if updated < wanted:
        return f"{updated} of {wanted} Pods are updated"
    if live["kind"] == "Deployment" and int(status.get("replicas") or 0) > updated:
        return "old Pods are terminating"
    return "" if ready >= wanted else f"{ready} of {wanted} Pods are ready"


def _ready(kind: str, status: dict[str, Any]) -> int:
    return int(status.get("availableReplicas" if kind == "Deployment" else "readyReplicas") or 0)


async def _serving(turn: Turn, service: Manifest, cluster: Cluster) -> Acted:
    status = service.get("status") or {}
    conditions = status.get("conditions") or ()
    ready: dict[str, Any] = next((each for each in conditions if each.get("type") == "Ready"), {})
    observed = int(status.get("observedGeneration") or service["metadata"].get("generation") or 0)
    model = status.get("modelStatus") or {}
    if model.get("transitionStatus") in ("BlockedByFailedLoad", "InvalidSpec"):
        failure = (model.get("lastFailureInfo") or {}).get("message") or model["transitionStatus"]
        raise UserError(f"{called(service)}: the new model does not load: {failure}; the old one keeps serving")
    is_new = observed >= int(service["metadata"].get("generation") or 0)
    at = (service.get("spec") or {}).get("predictor", {}).get("annotations", {}).get(RESTARTED_AT)
    pods = await eviction.labelled(service, f"{OF_SERVICE}={turn.entry.name}", cluster)
    fresh = [pod for pod in pods if annotation(pod, RESTARTED_AT) == at and eviction.is_ready(pod)]
    if is_new and fresh and ready.get("status") == "True":
        return Acted("all Pods were replaced and it is Ready")
    return Acted(f"waiting until it is Ready: {ready.get('message') or ready.get('reason') or 'not yet'}", PACE)
