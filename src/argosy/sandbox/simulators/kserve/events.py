"""Derives events of an InferenceService from a status change: ready, not ready, failed, stopped.

In: the live manifest and its new status. Out: event drafts. Never: the same event twice in a row.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY
from argosy.sandbox.simulators.events import Happening


def happened(live: Manifest, status: Manifest) -> list[Happening]:
    known, name = live.get("status") or {}, live["metadata"]["name"]
    before, after = _condition(known, "Ready"), _condition(status, "Ready")
    found = []
    if before.get("status") != after.get("status"):
        if after.get("status") == "True":
            found.append(Happening("InferenceServiceReady", f"InferenceService [{name}] is Ready"))
        elif before.get("status") == "True":
            found.append(Happening("InferenceServiceNotReady", f"InferenceService [{name}] is no longer Ready"))
    failure, failed_before = _failure(status, live), _failure(known, live)
    if failure and failure != failed_before:
        found.append(Happening("InternalError", failure, is_warning=True))
    if _condition(status, "Stopped").get("status") == "True" != _condition(known, "Stopped").get("status"):
        found.append(Happening("InferenceServiceStopped", f"InferenceService [{name}] is stopped"))
    return found


def _condition(status: Manifest, type_: str) -> dict[str, Any]:
    return next((each for each in status.get("conditions") or () if each["type"] == type_), {})


def _failure(status: Manifest, live: Manifest) -> str:
    failure = (status.get("modelStatus") or {}).get("lastFailureInfo") or {}
    said = failure.get("message") or ""
    if failure.get("reason") == "RuntimeNotRecognized":
        # kserve: the event has the error itself, the status only says that it waits
        named = ((live["spec"].get("predictor") or {}).get("model") or {}).get("runtime")
        said = f"fails to reconcile predictor: No ServingRuntimes or ClusterServingRuntimes with the name: {named}"
    return str(said).removesuffix(f" ({BY})")
