"""Derives the kubelet's events from the difference between the old and the new status of a Pod.

In: a Pod and its next status. Out: event drafts in order. Never: writes; reports what did not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY
from argosy.sandbox.simulators.containers import NOT_CREATED
from argosy.sandbox.simulators.events import Happening
from argosy.sandbox.simulators.fault_injection import Fault, Wishes

LISTS = ("initContainerStatuses", "containerStatuses")
PROBE = "Readiness probe failed: HTTP probe failed with statuscode: 503"
NO_VOLUME = "rpc error: code = Internal desc = the volume cannot be mounted"
Status = Mapping[str, Any]


def between(pod: Manifest, wanted: Status, wishes: Wishes) -> Iterator[Happening]:
    known = pod.get("status") or {}
    if wanted.get("phase") == "Failed" and wanted.get("reason") and not known.get("reason"):
        yield Happening(str(wanted["reason"]), _plain(str(wanted["message"])), is_warning=True)
        yield from stopping(pod)
        return
    for which in LISTS:
        before = {each["name"]: each for each in known.get(which) or ()}
        for each in wanted.get(which) or ():
            yield from _of_container(pod, each, before.get(each["name"]) or {}, _part(which, each))
    if not known.get("containerStatuses"):
        yield from _volumes(pod, wanted, wishes)
    if wishes.fail is Fault.NOT_READY and _runs(wanted) and not _runs(known):
        yield from (Happening("Unhealthy", PROBE, True, _part("containerStatuses", each)) for each in _mains(wanted))


def stopping(pod: Manifest) -> Iterator[Happening]:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        if "running" in (each.get("state") or {}):
            yield Happening("Killing", f"Stopping container {each['name']}", part=_part("containerStatuses", each))


def _of_container(pod: Manifest, now: Status, before: Status, part: str) -> Iterator[Happening]:
    waiting, waited = _waiting(now), _waiting(before)
    name, image = now["name"], now.get("image") or ""
    starts = int(now.get("restartCount") or 0) - int(before.get("restartCount") or 0)
    was_created, is_created = _is_created(before), _is_created(now)
    if is_created and not was_created:
        yield Happening("Pulling", f'Pulling image "{image}"', part=part)
        pulled = f'Successfully pulled image "{image}" in 1ms (1ms including waiting). Image size: 0 bytes.'
        yield from _started(name, pulled, part)
    if starts > 0:
        yield from _started(name, f'Container image "{image}" already present on machine', part)
    if waiting == waited:
        return
    message = _plain(str((now["state"]["waiting"] if waiting else {}).get("message") or ""))
    if waiting == "ErrImagePull":
        yield Happening("Pulling", f'Pulling image "{image}"', part=part)
        yield Happening("Failed", f'Failed to pull image "{image}": {message}', True, part)
        yield Happening("Failed", "Error: ErrImagePull", True, part)
    elif waiting == "ImagePullBackOff":
        yield Happening("BackOff", f'Back-off pulling image "{image}"', part=part)
        yield Happening("Failed", "Error: ImagePullBackOff", True, part)
    elif waiting == "CrashLoopBackOff":
        metadata = pod["metadata"]
        which = f"{name} in pod {metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        yield Happening("BackOff", f"Back-off restarting failed container {which}", True, part)
    elif waiting == "CreateContainerConfigError":
        yield Happening("Failed", f"Error: {message}", True, part)


def _started(name: str, pulled: str, part: str) -> Iterator[Happening]:
    yield Happening("Pulled", pulled, part=part)
    yield Happening("Created", f"Created container: {name}", part=part)
    yield Happening("Started", f"Started container {name}", part=part)


def _volumes(pod: Manifest, wanted: Status, wishes: Wishes) -> Iterator[Happening]:
    """k8s: a volume that cannot be mounted shows only in events."""
    if wishes.fail is not Fault.STORAGE or wanted.get("phase") != "Pending":
        return
    names = [str(each["name"]) for each in pod["spec"].get("volumes") or ()] or ["data"]
    for name in names:
        yield Happening("FailedMount", f'MountVolume.SetUp failed for volume "{name}" : {NO_VOLUME}', is_warning=True)


def _is_created(status: Status) -> bool:
    return bool(status.get("state")) and _waiting(status) not in NOT_CREATED


def _waiting(status: Status) -> str:
    return str(((status.get("state") or {}).get("waiting") or {}).get("reason") or "")


def _runs(status: Status) -> bool:
    return any("running" in (each.get("state") or {}) for each in _mains(status))


def _mains(status: Status) -> list[Status]:
    return list(status.get("containerStatuses") or ())


def _part(which: str, status: Status) -> str:
    return f"spec.{'initContainers' if which == LISTS[0] else 'containers'}{{{status['name']}}}"


def _plain(message: str) -> str:
    """Remove the "simulated" note from a message; events add it themselves."""
    return message.removesuffix(f" ({BY})")
