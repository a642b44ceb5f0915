"""Executes one trigger step by step.

In: a trigger execution. Out: the result, or when to continue. Raises UserError or ClusterError if it cannot succeed,
and TransientError or Conflict if it may soon succeed. Never: does the same step twice.
"""

from __future__ import annotations

from argosy.annotations import RESTART_TIMESTAMP
from argosy.errors import UserError
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.on_success_triggers import application_sync, model_trial_pod, restarts
from argosy.features.notebooks.on_success_triggers.execution_context import TriggerExecution, TriggerStep
from argosy.features.notebooks.on_success_triggers.records import TriggerRecord, build_trigger_id
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import RESTART, SYNC, TriggerEntry
from argosy.gitops.application.refresh_request_annotations import build_refresh_annotations
from argosy.kube.client import Cluster, KindInfo
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

# argo: namespaces where an installation keeps its Applications by default


async def execute_trigger(
    entry: TriggerEntry, job: NotebookJob, record: TriggerRecord, context: ControllerContext
) -> TriggerStep:
    catalog = await context.cluster.kinds()
    info = catalog.get(entry.group_kind)
    if info is None:
        raise UserError(f"{entry.group_kind} is not served by this cluster; see kubectl api-resources")
    target = await _load_target(entry, job, info, context.cluster)
    execution = TriggerExecution(
        entry, job, record, build_trigger_id(job, record), info.plural, context.cluster, context.clock.now()
    )
    step_result = await _execute_action(execution, target)
    namespace = str(target["metadata"].get("namespace") or "")
    acted_field = {"acted": True} if execution.has_acted or execution.was_executed_on(target) else {}
    return TriggerStep(
        step_result.message, step_result.requeue_seconds, {"namespace": namespace, **acted_field, **step_result.fields}
    )


async def _execute_action(execution: TriggerExecution, target: Manifest) -> TriggerStep:
    if execution.entry.action == RESTART:
        return await restarts.restart_target(execution, target)
    if execution.entry.action == SYNC:
        return await application_sync.sync_application(execution, target)
    return await _refresh_target(execution, target)


async def _refresh_target(execution: TriggerExecution, target: Manifest) -> TriggerStep:
    """Patch only annotations, so that other writers do not conflict."""
    is_app = execution.entry.group_kind == APPLICATION
    if not execution.was_executed_on(target):
        await execution.check_patch_permission(target)
        annotations = build_refresh_annotations(target["metadata"].get("annotations") or {}, execution.now)
        await execution.patch(target, {}, annotations if is_app else {RESTART_TIMESTAMP: execution.time})
    if is_app and execution.entry.waits:
        return await application_sync.follow_refresh(execution, target)
    return TriggerStep("refresh requested" if is_app else f"annotated with {RESTART_TIMESTAMP}")


async def _load_target(entry: TriggerEntry, job: NotebookJob, info: KindInfo, cluster: Cluster) -> Manifest:
    namespaces = [entry.namespace or job.namespace] if info.namespaced else [""]
    if entry.group_kind == APPLICATION and not entry.namespace:
        namespaces = list(dict.fromkeys((*CONTROL_NAMESPACES, job.namespace)))
    for namespace in namespaces:
        manifest = await cluster.get(ResourceKey(*entry.group_kind, namespace, entry.name))
        if manifest is not None:
            return manifest
    namespace_text = f" in namespace {' or '.join(namespaces)}" if namespaces[0] else ""
    raise UserError(f"{entry.kind} {entry.name} not found{namespace_text}; correct the trigger, or create the object")


async def delete_trial(
    entry: TriggerEntry, job: NotebookJob, record: TriggerRecord, context: ControllerContext
) -> None:
    """Delete the trial Pod of a failed trigger."""
    info = (await context.cluster.kinds()).get(entry.group_kind)
    if info is not None:
        execution = TriggerExecution(
            entry, job, record, build_trigger_id(job, record), info.plural, context.cluster, context.clock.now()
        )
        await model_trial_pod.delete_trial_pod(execution, {"metadata": {"namespace": entry.namespace or job.namespace}})
