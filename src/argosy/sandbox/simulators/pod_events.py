"""Derives the kubelet's events from the difference between the old and the new status of a Pod.

In: a Pod and its next status. Out: event drafts in order. Never: writes; reports what did not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.containers import INVALID_IMAGE_NAME_REASON, NOT_CREATED_REASONS
from argosy.sandbox.simulators.event_recorder import EventDraft
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE
from argosy.sandbox.simulators.simulation_annotations import InjectedFault, SimulationSettings

CONTAINER_STATUS_FIELDS = ("initContainerStatuses", "containerStatuses")
PROBE_FAILURE = "Readiness probe failed: HTTP probe failed with statuscode: 503"
MOUNT_ERROR = "rpc error: code = Internal desc = the volume cannot be mounted"
StatusMapping = Mapping[str, Any]


def build_status_events(pod: Manifest, new_status: StatusMapping, settings: SimulationSettings) -> Iterator[EventDraft]:
    old_status = pod.get("status") or {}
    if new_status.get("phase") == "Failed" and new_status.get("reason") and not old_status.get("reason"):
        yield EventDraft(str(new_status["reason"]), _remove_simulated_note(str(new_status["message"])), is_warning=True)
        yield from build_stop_events(pod)
        return
    for field in CONTAINER_STATUS_FIELDS:
        old_statuses = {container_status["name"]: container_status for container_status in old_status.get(field) or ()}
        for container_status in new_status.get(field) or ():
            yield from _build_container_events(
                pod,
                container_status,
                old_statuses.get(container_status["name"]) or {},
                _build_field_path(field, container_status),
            )
    if not old_status.get("containerStatuses"):
        yield from _build_mount_events(pod, new_status, settings)
    if (
        settings.fault is InjectedFault.NOT_READY
        and _has_running_container(new_status)
        and not _has_running_container(old_status)
    ):
        yield from (
            EventDraft("Unhealthy", PROBE_FAILURE, True, _build_field_path("containerStatuses", container_status))
            for container_status in _list_container_statuses(new_status)
        )


def build_stop_events(pod: Manifest) -> Iterator[EventDraft]:
    for container_status in (pod.get("status") or {}).get("containerStatuses") or ():
        if "running" in (container_status.get("state") or {}):
            yield EventDraft(
                "Killing",
                f"Stopping container {container_status['name']}",
                field_path=_build_field_path("containerStatuses", container_status),
            )


def _build_container_events(
    pod: Manifest, new_status: StatusMapping, old_status: StatusMapping, field_path: str
) -> Iterator[EventDraft]:
    waiting_reason, previous_reason = _read_waiting_reason(new_status), _read_waiting_reason(old_status)
    name, image = new_status["name"], new_status.get("image") or ""
    restarts = int(new_status.get("restartCount") or 0) - int(old_status.get("restartCount") or 0)
    was_created, is_created = _is_created(old_status), _is_created(new_status)
    if is_created and not was_created:
        yield EventDraft("Pulling", f'Pulling image "{image}"', field_path=field_path)
        pull_message = f'Successfully pulled image "{image}" in 1ms (1ms including waiting). Image size: 0 bytes.'
        yield from _build_start_events(name, pull_message, field_path)
    if restarts > 0:
        yield from _build_start_events(name, f'Container image "{image}" already present on machine', field_path)
    if waiting_reason == previous_reason:
        return
    message = _remove_simulated_note(
        str((new_status["state"]["waiting"] if waiting_reason else {}).get("message") or "")
    )
    if waiting_reason == "ErrImagePull":
        yield EventDraft("Pulling", f'Pulling image "{image}"', field_path=field_path)
        yield EventDraft("Failed", f'Failed to pull image "{image}": {message}', True, field_path)
        yield EventDraft("Failed", "Error: ErrImagePull", True, field_path)
    elif waiting_reason == INVALID_IMAGE_NAME_REASON:
        yield EventDraft("InspectFailed", message, True, field_path)
        yield EventDraft("Failed", f"Error: {INVALID_IMAGE_NAME_REASON}", True, field_path)
    elif waiting_reason == "ImagePullBackOff":
        yield EventDraft("BackOff", f'Back-off pulling image "{image}"', field_path=field_path)
        yield EventDraft("Failed", "Error: ImagePullBackOff", True, field_path)
    elif waiting_reason == "CrashLoopBackOff":
        metadata = pod["metadata"]
        container_location = f"{name} in pod {metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        yield EventDraft("BackOff", f"Back-off restarting failed container {container_location}", True, field_path)
    elif waiting_reason == "CreateContainerConfigError":
        yield EventDraft("Failed", f"Error: {message}", True, field_path)


def _build_start_events(name: str, pull_message: str, field_path: str) -> Iterator[EventDraft]:
    yield EventDraft("Pulled", pull_message, field_path=field_path)
    yield EventDraft("Created", f"Created container: {name}", field_path=field_path)
    yield EventDraft("Started", f"Started container {name}", field_path=field_path)


def _build_mount_events(pod: Manifest, new_status: StatusMapping, settings: SimulationSettings) -> Iterator[EventDraft]:
    """k8s: a volume that cannot be mounted shows only in events."""
    if settings.fault is not InjectedFault.STORAGE or new_status.get("phase") != "Pending":
        return
    names = [str(volume["name"]) for volume in pod["spec"].get("volumes") or ()] or ["data"]
    for name in names:
        yield EventDraft(
            "FailedMount", f'MountVolume.SetUp failed for volume "{name}" : {MOUNT_ERROR}', is_warning=True
        )


def _is_created(status: StatusMapping) -> bool:
    return bool(status.get("state")) and _read_waiting_reason(status) not in NOT_CREATED_REASONS


def _read_waiting_reason(status: StatusMapping) -> str:
    return str(((status.get("state") or {}).get("waiting") or {}).get("reason") or "")


def _has_running_container(status: StatusMapping) -> bool:
    return any(
        "running" in (container_status.get("state") or {}) for container_status in _list_container_statuses(status)
    )


def _list_container_statuses(status: StatusMapping) -> list[StatusMapping]:
    return list(status.get("containerStatuses") or ())


def _build_field_path(field: str, status: StatusMapping) -> str:
    return f"spec.{'initContainers' if field == CONTAINER_STATUS_FIELDS[0] else 'containers'}{{{status['name']}}}"


def _remove_simulated_note(message: str) -> str:
    """Remove the "simulated" note from a message; events add it themselves."""
    return message.removesuffix(f" ({SIMULATED_NOTE})")
