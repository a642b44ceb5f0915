"""Syncs or refreshes Applications for a trigger.

In: a trigger execution and an Application. Out: one operation; its result, if the trigger waits for it. Never: starts
while another operation is running.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN, REFRESH
from argosy.errors import UserError
from argosy.features.notebooks.triggers.turns import PACE, Acted, Turn, called
from argosy.kube.objects import Manifest, annotation

OVER: Final = ("Succeeded", "Failed", "Error")


async def sync(turn: Turn, app: Manifest) -> Acted:
    if turn.is_marked(app):
        return _followed(turn, app) if turn.entry.waits else Acted("sync requested")
    await turn.may_patch(app)
    if app["metadata"].get("deletionTimestamp"):
        raise UserError(f"{called(app)} is being deleted and cannot be synced")
    if is_busy(app):
        return Acted("waiting for the current operation to finish", PACE)
    await turn.patch(app, {"operation": operation(turn, app)}, {})
    return Acted("waiting for the sync", PACE) if turn.entry.waits else Acted("sync requested")


def is_busy(app: Manifest) -> bool:
    state = (app.get("status") or {}).get("operationState") or {}
    return bool(app.get("operation")) or state.get("phase") in ("Running", "Terminating")


def operation(turn: Turn, app: Manifest) -> Mapping[str, Any]:
    """argo: a sync uses only the options of its request, so those of the Application are copied.

    Sync windows are enforced by the reconciler: this is not an automated sync, so `manualSync` of a window decides.
    """
    policy = (app.get("spec") or {}).get("syncPolicy") or {}
    automated = policy.get("automated") or {}
    by = f"system:serviceaccount:{turn.job.namespace}:{turn.job.account}"
    found: dict[str, Any] = {
        "initiatedBy": {"username": by},
        "info": [
            {"name": NOTEBOOK_RUN, "value": turn.mark},
            {"name": "Reason", "value": f"notebook {turn.job.namespace}/{turn.job.name} succeeded"},
        ],
        "sync": {
            "syncStrategy": {"hook": {}},
            **({"prune": True} if automated.get("prune") else {}),
            **({"syncOptions": list(policy["syncOptions"])} if policy.get("syncOptions") else {}),
        },
    }
    return {**found, **({"retry": policy["retry"]} if policy.get("retry") else {})}


def _followed(turn: Turn, app: Manifest) -> Acted:
    """Wait until the operation is over and the Application is Healthy."""
    status = app.get("status") or {}
    state = status.get("operationState") or {}
    if is_busy(app):
        return Acted("waiting for the sync", PACE)
    if not _is_ours(turn, state):  # another operation followed: ours is over, but its result is unknown
        return Acted("the sync is over, and another one followed")
    if state.get("phase") not in OVER:
        return Acted("waiting for the sync", PACE)
    if state["phase"] != "Succeeded":
        raise UserError(f"the sync of {called(app)} ended as {state['phase']}: {state.get('message', '')}")
    health = (status.get("health") or {}).get("status")
    if health != "Healthy":
        return Acted(f"synced; waiting until it is Healthy (currently {health or 'Unknown'})", PACE)
    return Acted("synced and Healthy")


def _is_ours(turn: Turn, state: Mapping[str, Any]) -> bool:
    infos = (state.get("operation") or {}).get("info") or ()
    return any(each.get("name") == NOTEBOOK_RUN and each.get("value") == turn.mark for each in infos)


async def refreshed(turn: Turn, app: Manifest) -> Acted:
    """argo: the reconciler removes the annotation after the refresh."""
    if not turn.is_marked(app) or annotation(app, REFRESH):
        return Acted("waiting for the refresh", PACE)
    return Acted("refreshed")
