"""Restarts workloads and models without downtime.

In: a trigger execution and its target. Out: a changed Pod template, whose controller replaces the Pods, or Pods evicted
one by one. Never: removes all Pods at once; violates a PodDisruptionBudget.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.annotations import RESTARTED_AT
from argosy.errors import UserError
from argosy.features.notebooks.on_success_triggers import model_trial_pod, pod_eviction
from argosy.features.notebooks.on_success_triggers.execution_context import (
    POLL_INTERVAL_SECONDS,
    TriggerExecution,
    TriggerStep,
    describe_target,
)
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import EVICT, ROLLING, WORKLOADS
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

SERVICE_LABEL: Final = "serving.kserve.io/inferenceservice"
DEPLOYMENT_MODE: Final = "serving.kserve.io/deploymentMode"
REVISION_MODES: Final = ("Serverless", "Knative")
REVISION_LABEL: Final = "serving.knative.dev/revision"  # label of Pods of a Knative revision
ON_DELETE: Final = "OnDelete"


async def restart_target(execution: TriggerExecution, target: Manifest) -> TriggerStep:
    kind = execution.entry.group_kind
    if target["metadata"].get("deletionTimestamp"):
        raise UserError(f"{describe_target(target)} is being deleted")
    if kind in WORKLOADS:
        return await _restart_workload(execution, target)
    if kind != INFERENCE_SERVICE:
        return await pod_eviction.replace_pods(
            execution, target, await pod_eviction.list_owned_pods(target, execution.cluster)
        )
    pods = await pod_eviction.list_pods_by_label(target, f"{SERVICE_LABEL}={execution.entry.name}", execution.cluster)
    if execution.entry.probe and not execution.was_executed_on(target) and not execution.record.get("pods"):
        trial_result = await model_trial_pod.run_trial(execution, target, pods)
        if trial_result is not None:
            return trial_result
    if execution.entry.strategy != EVICT and (execution.entry.strategy == ROLLING or has_revisions(target, pods)):
        return await _restart_inference_service(execution, target)
    return await pod_eviction.replace_pods(execution, target, pods)


def has_revisions(service: Manifest, pods: list[Manifest]) -> bool:
    """kserve: newer versions report the deployment mode in the status; otherwise its annotation or the Pods tell."""
    mode = (service.get("status") or {}).get("deploymentMode") or get_annotation(service, DEPLOYMENT_MODE)
    if mode:
        return mode in REVISION_MODES
    return any(REVISION_LABEL in (pod["metadata"].get("labels") or {}) for pod in pods)


async def _restart_workload(execution: TriggerExecution, target: Manifest) -> TriggerStep:
    spec = target.get("spec") or {}
    if (spec.get("updateStrategy") or {}).get("type") == ON_DELETE:
        return await pod_eviction.replace_pods(
            execution, target, await pod_eviction.list_selected_pods(target, execution.cluster)
        )
    if not execution.was_executed_on(target):
        await execution.check_patch_permission(target)
        if spec.get("paused"):
            raise UserError(f"{describe_target(target)} is paused; resume it: kubectl rollout resume")
        template = {"metadata": {"annotations": {RESTARTED_AT: execution.time}}}
        target = await execution.patch(target, {"spec": {"template": template}}, {})
    if not execution.entry.waits:
        return TriggerStep("a rolling update replaces its Pods")
    return _follow_rollout(target)


async def _restart_inference_service(execution: TriggerExecution, target: Manifest) -> TriggerStep:
    """kserve: a patched Deployment would be reverted; the annotation causes a new revision or a rolling update."""
    if not execution.was_executed_on(target):
        await execution.check_patch_permission(target)
        changes = {"spec": {"predictor": {"annotations": {RESTARTED_AT: execution.time}}}}
        await execution.patch(target, changes, {})
        return (
            TriggerStep("waiting for new Pods", POLL_INTERVAL_SECONDS)
            if execution.entry.waits
            else TriggerStep("a new revision replaces its Pods")
        )
    if not execution.entry.waits:
        return TriggerStep("a new revision replaces its Pods")
    return await _follow_inference_service(execution, target, execution.cluster)


def _follow_rollout(live: Manifest) -> TriggerStep:
    rollout_text = describe_rollout(live)
    return (
        TriggerStep(f"waiting: {rollout_text}", POLL_INTERVAL_SECONDS)
        if rollout_text
        else TriggerStep("all Pods were replaced and are ready")
    )


def describe_rollout(live: Manifest) -> str:
    """k8s: the checks of `kubectl rollout status`; "" when done. Raises UserError if the rollout is stuck."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    if int(status.get("observedGeneration") or 0) < int(live["metadata"].get("generation") or 0):
        return "the controller has not observed the change yet"
    if live["kind"] == "DaemonSet":
        desired, updated, ready = (
            int(status.get(name) or 0)
            for name in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        )
    else:
        desired = int(spec.get("replicas", 1))
        updated, ready = int(status.get("updatedReplicas") or 0), _count_ready(live["kind"], status)
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            raise UserError(f"{describe_target(live)}: the new Pods do not become ready; the old Pods keep serving")
    if updated < desired:
        return f"{updated} of {desired} Pods are updated"
    if live["kind"] == "Deployment" and int(status.get("replicas") or 0) > updated:
        return "old Pods are terminating"
    return "" if ready >= desired else f"{ready} of {desired} Pods are ready"


def _count_ready(kind: str, status: dict[str, Any]) -> int:
    return int(status.get("availableReplicas" if kind == "Deployment" else "readyReplicas") or 0)


async def _follow_inference_service(execution: TriggerExecution, service: Manifest, cluster: Cluster) -> TriggerStep:
    status = service.get("status") or {}
    conditions = status.get("conditions") or ()
    ready: dict[str, Any] = next((condition for condition in conditions if condition.get("type") == "Ready"), {})
    observed = int(status.get("observedGeneration") or service["metadata"].get("generation") or 0)
    model = status.get("modelStatus") or {}
    if model.get("transitionStatus") in ("BlockedByFailedLoad", "InvalidSpec"):
        failure = (model.get("lastFailureInfo") or {}).get("message") or model["transitionStatus"]
        raise UserError(
            f"{describe_target(service)}: the new model does not load: {failure}; the old one keeps serving"
        )
    is_observed = observed >= int(service["metadata"].get("generation") or 0)
    restarted_at = (service.get("spec") or {}).get("predictor", {}).get("annotations", {}).get(RESTARTED_AT)
    pods = await pod_eviction.list_pods_by_label(service, f"{SERVICE_LABEL}={execution.entry.name}", cluster)
    ready_pods = [
        pod for pod in pods if get_annotation(pod, RESTARTED_AT) == restarted_at and pod_eviction.is_pod_ready(pod)
    ]
    if is_observed and ready_pods and ready.get("status") == "True":
        return TriggerStep("all Pods were replaced and it is Ready")
    return TriggerStep(
        f"waiting until it is Ready: {ready.get('message') or ready.get('reason') or 'not yet'}", POLL_INTERVAL_SECONDS
    )
