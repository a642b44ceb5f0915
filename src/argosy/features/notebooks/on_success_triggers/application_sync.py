"""Syncs or refreshes Applications for a trigger.

In: a trigger execution and an Application. Out: one operation; its result, if the trigger waits for it. Never: starts
while another operation is running.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN, REFRESH
from argosy.errors import UserError
from argosy.features.notebooks.on_success_triggers.execution_context import (
    POLL_INTERVAL_SECONDS,
    TriggerExecution,
    TriggerStep,
    describe_target,
)
from argosy.kube.objects import Manifest, get_annotation

TERMINAL_PHASES: Final = ("Succeeded", "Failed", "Error")


async def sync_application(execution: TriggerExecution, app: Manifest) -> TriggerStep:
    if execution.was_executed_on(app):
        return _follow_sync(execution, app) if execution.entry.waits else TriggerStep("sync requested")
    await execution.check_patch_permission(app)
    if app["metadata"].get("deletionTimestamp"):
        raise UserError(f"{describe_target(app)} is being deleted and cannot be synced")
    if has_running_operation(app):
        return TriggerStep("waiting for the current operation to finish", POLL_INTERVAL_SECONDS)
    await execution.patch(app, {"operation": build_operation(execution, app)}, {})
    return (
        TriggerStep("waiting for the sync", POLL_INTERVAL_SECONDS)
        if execution.entry.waits
        else TriggerStep("sync requested")
    )


def has_running_operation(app: Manifest) -> bool:
    state = (app.get("status") or {}).get("operationState") or {}
    return bool(app.get("operation")) or state.get("phase") in ("Running", "Terminating")


def build_operation(execution: TriggerExecution, app: Manifest) -> Mapping[str, Any]:
    """argo: a sync uses only the options of its request, so those of the Application are copied.

    Sync windows are enforced by the reconciler: this is not an automated sync, so `manualSync` of a window decides.
    """
    policy = (app.get("spec") or {}).get("syncPolicy") or {}
    automated = policy.get("automated") or {}
    username = f"system:serviceaccount:{execution.job.namespace}:{execution.job.service_account}"
    fields: dict[str, Any] = {
        "initiatedBy": {"username": username},
        "info": [
            {"name": NOTEBOOK_RUN, "value": execution.trigger_id},
            {"name": "Reason", "value": f"notebook {execution.job.namespace}/{execution.job.name} succeeded"},
        ],
        "sync": {
            "syncStrategy": {"hook": {}},
            **({"prune": True} if automated.get("prune") else {}),
            **({"syncOptions": list(policy["syncOptions"])} if policy.get("syncOptions") else {}),
        },
    }
    return {**fields, **({"retry": policy["retry"]} if policy.get("retry") else {})}


def _follow_sync(execution: TriggerExecution, app: Manifest) -> TriggerStep:
    """Wait until the operation is over and the Application is Healthy."""
    status = app.get("status") or {}
    state = status.get("operationState") or {}
    if has_running_operation(app):
        return TriggerStep("waiting for the sync", POLL_INTERVAL_SECONDS)
    if not _is_own_operation(execution, state):  # another operation followed: ours is over, but its result is unknown
        return TriggerStep("the sync is over, and another one followed")
    if state.get("phase") not in TERMINAL_PHASES:
        return TriggerStep("waiting for the sync", POLL_INTERVAL_SECONDS)
    if state["phase"] != "Succeeded":
        raise UserError(f"the sync of {describe_target(app)} ended as {state['phase']}: {state.get('message', '')}")
    health = (status.get("health") or {}).get("status")
    if health != "Healthy":
        return TriggerStep(
            f"synced; waiting until it is Healthy (currently {health or 'Unknown'})", POLL_INTERVAL_SECONDS
        )
    return TriggerStep("synced and Healthy")


def _is_own_operation(execution: TriggerExecution, state: Mapping[str, Any]) -> bool:
    infos = (state.get("operation") or {}).get("info") or ()
    return any(info.get("name") == NOTEBOOK_RUN and info.get("value") == execution.trigger_id for info in infos)


async def follow_refresh(execution: TriggerExecution, app: Manifest) -> TriggerStep:
    """argo: the reconciler removes the annotation after the refresh."""
    if not execution.was_executed_on(app) or get_annotation(app, REFRESH):
        return TriggerStep("waiting for the refresh", POLL_INTERVAL_SECONDS)
    return TriggerStep("refreshed")
