"""Health of Pods.

In: a live manifest of v1. Out: an Assessment with Argo CD's message. Never: treats a hook Pod as long-running.
"""

from __future__ import annotations

from typing import Any

from argosy.annotations import IGNORE_RESTART_POLICY
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application.sync_annotations import get_annotation, is_hook
from argosy.gitops.health.builtin.fields import find_condition, read_int, read_map, read_objects, read_text
from argosy.kube.objects import Manifest


def assess_pod(manifest: Manifest) -> Assessment:
    is_long_running = _is_long_running(manifest)
    if is_long_running and (errors := _list_waiting_errors(manifest)):
        return Assessment(HealthStatus.DEGRADED, ", ".join(errors))
    phase, message = read_text(manifest, "status", "phase"), read_text(manifest, "status", "message")
    if phase == "Pending":
        return Assessment(HealthStatus.PROGRESSING, message)
    if phase == "Succeeded":
        return Assessment(HealthStatus.HEALTHY, message)
    if phase == "Failed":
        return Assessment(HealthStatus.DEGRADED, message or _find_failure(manifest))
    if phase == "Running" and is_long_running:
        return Assessment(_assess_running(manifest), message)
    if phase == "Running" and read_text(manifest, "spec", "restartPolicy") in ("OnFailure", "Never"):
        return Assessment(HealthStatus.PROGRESSING, message)
    return Assessment(HealthStatus.UNKNOWN, message)


def _is_long_running(manifest: Manifest) -> bool:
    if read_text(manifest, "spec", "restartPolicy") == "Always":
        return True
    # argo: the annotation is for Pods that are restarted from outside. A hook must still complete to succeed.
    return get_annotation(manifest, IGNORE_RESTART_POLICY) == "true" and not is_hook(manifest)


def _list_waiting_errors(manifest: Manifest) -> list[str]:
    """Return the error messages of waiting containers. Long-running Pods only: a hook would fail permanently."""
    waiting = [read_map(entry, "state", "waiting") for entry in read_objects(manifest, "status", "containerStatuses")]
    return [read_text(entry, "message") for entry in waiting if _is_error_reason(read_text(entry, "reason"))]


def _is_error_reason(reason: str) -> bool:
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _assess_running(manifest: Manifest) -> HealthStatus:
    ready = find_condition(manifest, "Ready")
    if ready and ready.status == "True":
        return HealthStatus.HEALTHY
    containers = read_objects(manifest, "status", "containerStatuses")
    has_restarted = any(read_map(container, "lastState").get("terminated") is not None for container in containers)
    return HealthStatus.DEGRADED if has_restarted else HealthStatus.PROGRESSING


def _find_failure(manifest: Manifest) -> str:
    containers = read_objects(manifest, "status", "initContainerStatuses") + read_objects(
        manifest, "status", "containerStatuses"
    )
    return next((reason for container in containers if (reason := _render_container_failure(container))), "")


def _render_container_failure(container: dict[str, Any]) -> str:
    terminated = read_map(container, "state", "terminated")
    if message := read_text(terminated, "message"):
        return message
    if (reason := read_text(terminated, "reason")) == "OOMKilled":
        return reason
    code, name = read_int(terminated, "exitCode"), read_text(container, "name")
    return f'container "{name}" failed with exit code {code}' if code else ""
