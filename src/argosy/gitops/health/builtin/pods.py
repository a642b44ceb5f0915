"""Health of Pods.

In: a live manifest of v1. Out: an Assessment with Argo CD's message. Never: treats a hook Pod as long-running.
"""

from __future__ import annotations

from typing import Any

from argosy.annotations import IGNORE_RESTART_POLICY
from argosy.gitops.application.hooks import annotation_text, is_hook
from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import first_condition, items, mapping, number, text
from argosy.kube.objects import Manifest


def pod(manifest: Manifest) -> Assessment:
    stays = _is_long_running(manifest)
    if stays and (troubles := _waiting_troubles(manifest)):
        return Assessment(Health.DEGRADED, ", ".join(troubles))
    phase, message = text(manifest, "status", "phase"), text(manifest, "status", "message")
    if phase == "Pending":
        return Assessment(Health.PROGRESSING, message)
    if phase == "Succeeded":
        return Assessment(Health.HEALTHY, message)
    if phase == "Failed":
        return Assessment(Health.DEGRADED, message or _failure(manifest))
    if phase == "Running" and stays:
        return Assessment(_running(manifest), message)
    if phase == "Running" and text(manifest, "spec", "restartPolicy") in ("OnFailure", "Never"):
        return Assessment(Health.PROGRESSING, message)
    return Assessment(Health.UNKNOWN, message)


def _is_long_running(manifest: Manifest) -> bool:
    if text(manifest, "spec", "restartPolicy") == "Always":
        return True
    # argo: the annotation is for Pods that are restarted from outside. A hook must still complete to succeed.
    return annotation_text(manifest, IGNORE_RESTART_POLICY) == "true" and not is_hook(manifest)


def _waiting_troubles(manifest: Manifest) -> list[str]:
    """Return the error messages of waiting containers. Long-running Pods only: a hook would fail permanently."""
    waiting = [mapping(each, "state", "waiting") for each in items(manifest, "status", "containerStatuses")]
    return [text(each, "message") for each in waiting if _is_trouble(text(each, "reason"))]


def _is_trouble(reason: str) -> bool:
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _running(manifest: Manifest) -> Health:
    ready = first_condition(manifest, "Ready")
    if ready and ready.status == "True":
        return Health.HEALTHY
    containers = items(manifest, "status", "containerStatuses")
    restarted = any(mapping(each, "lastState").get("terminated") is not None for each in containers)
    return Health.DEGRADED if restarted else Health.PROGRESSING


def _failure(manifest: Manifest) -> str:
    containers = items(manifest, "status", "initContainerStatuses") + items(manifest, "status", "containerStatuses")
    return next((reason for each in containers if (reason := _container_failure(each))), "")


def _container_failure(container: dict[str, Any]) -> str:
    end = mapping(container, "state", "terminated")
    if message := text(end, "message"):
        return message
    if (reason := text(end, "reason")) == "OOMKilled":
        return reason
    code, name = number(end, "exitCode"), text(container, "name")
    return f'container "{name}" failed with exit code {code}' if code else ""
