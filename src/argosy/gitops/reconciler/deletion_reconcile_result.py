"""Turns a step of the deletion of an Application into the result of a pass.

In: an Application that is being deleted, the step. Out: ReconcileResult. Never: deletes anything itself.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.application import Application
from argosy.gitops.application.finalizers import is_controller_finalizer
from argosy.gitops.reconciler.status_patch import ReconcileResult
from argosy.gitops.status import events
from argosy.gitops.status.conditions import AppCondition, ConditionType, conditions_to_wire
from argosy.gitops.sync.app_deletion import DeletionStep


def build_deletion_result(app: Application, step: DeletionStep, now: str) -> ReconcileResult:
    """Build the patch and the Event for one step of the deletion; `now` is an RFC 3339 timestamp."""
    patch: dict[str, Any] = {}
    if step.finalizers != app.finalizers:
        patch["metadata"] = {"finalizers": list(step.finalizers)}
    errors = [AppCondition(ConditionType.DELETION_ERROR, step.error)] if step.error else []
    before = app.status.get("conditions") or []
    is_still_waiting = not step.error and step.finalizers == app.finalizers  # keep the condition of the last error
    evaluated_types = set() if is_still_waiting else {ConditionType.DELETION_ERROR}
    after = conditions_to_wire(before, errors, evaluated_types, now)
    if after != before:
        patch["status"] = {"conditions": after}
    is_done = any(map(is_controller_finalizer, app.finalizers)) and not any(
        map(is_controller_finalizer, step.finalizers)
    )
    return ReconcileResult(patch or None, (events.deletion_completed_event(app),) if is_done else (), wait=step.wait)
