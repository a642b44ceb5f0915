"""Derives events of an InferenceService from a status change: ready, not ready, failed, stopped.

In: the live manifest and its new status. Out: event drafts. Never: the same event twice in a row.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.event_recorder import EventDraft
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE


def build_status_events(service: Manifest, new_status: Manifest) -> list[EventDraft]:
    old_status, name = service.get("status") or {}, service["metadata"]["name"]
    old_ready, new_ready = _find_condition(old_status, "Ready"), _find_condition(new_status, "Ready")
    events = []
    if old_ready.get("status") != new_ready.get("status"):
        if new_ready.get("status") == "True":
            events.append(EventDraft("InferenceServiceReady", f"InferenceService [{name}] is Ready"))
        elif old_ready.get("status") == "True":
            events.append(EventDraft("InferenceServiceNotReady", f"InferenceService [{name}] is no longer Ready"))
    failure, old_failure = _describe_failure(new_status, service), _describe_failure(old_status, service)
    if failure and failure != old_failure:
        events.append(EventDraft("InternalError", failure, is_warning=True))
    if (
        _find_condition(new_status, "Stopped").get("status")
        == "True"
        != _find_condition(old_status, "Stopped").get("status")
    ):
        events.append(EventDraft("InferenceServiceStopped", f"InferenceService [{name}] is stopped"))
    return events


def _find_condition(status: Manifest, type_: str) -> dict[str, Any]:
    return next((condition for condition in status.get("conditions") or () if condition["type"] == type_), {})


def _describe_failure(status: Manifest, service: Manifest) -> str:
    failure = (status.get("modelStatus") or {}).get("lastFailureInfo") or {}
    message = failure.get("message") or ""
    if failure.get("reason") == "RuntimeNotRecognized":
        # kserve: the event has the error itself, the status only says that it waits
        runtime_name = ((service["spec"].get("predictor") or {}).get("model") or {}).get("runtime")
        message = (
            f"fails to reconcile predictor: No ServingRuntimes or ClusterServingRuntimes with the name: {runtime_name}"
        )
    return str(message).removesuffix(f" ({SIMULATED_NOTE})")
