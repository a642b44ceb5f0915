"""A trial of the new model while the old one serves.

In: an InferenceService with Pods, a probe. Out: one more Pod, made as they are, that no Service leads to; when it is
ready and answers it is taken away, and the restart begins. Never: lets an old Pod go before that.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Any, Final

from argosy.annotations import NOTEBOOK_RUN
from argosy.errors import TransientError, UserError
from argosy.features.notebooks.job import API_VERSION, KIND
from argosy.features.notebooks.triggers import permission
from argosy.features.notebooks.triggers.entries import Probe
from argosy.features.notebooks.triggers.eviction import OVER, POD, is_ready
from argosy.features.notebooks.triggers.permission import Wish
from argosy.features.notebooks.triggers.turns import MANAGER, PACE, SOON, Acted, Turn
from argosy.http_client.plain_request import ask
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

SECONDS: Final = 10.0
SPARE: Final = 60
PLAYED: Final = "simulated://"
TOKENS: Final = "kube-api-access-"  # k8s: the volume that admission adds to every Pod
OF_A_PLACE: Final = ("nodeName", "hostname", "subdomain", "ephemeralContainers")


async def tried(turn: Turn, service: Manifest, pods: Sequence[Manifest]) -> Acted | None:
    """None: it was tried, and is good. Raises UserError where it is not, and the old Pods stay."""
    if turn.record.get("tried"):
        await end(turn, service)
        return None
    pattern = next((pod for pod in pods if is_ready(pod) and _is_predictor(pod)), None)
    live = await turn.cluster.get(_key(turn, service))
    if live is None and pattern is None:
        return None  # nothing serves that could be harmed
    if live is None:
        assert pattern is not None
        namespace = service["metadata"]["namespace"]
        await permission.check(turn.job, Wish("create", "", "pods", namespace), turn.cluster)
        await turn.cluster.create(trial(turn, service, pattern), manager=MANAGER)
        return Acted("trying the new model in a Pod of its own", PACE)
    if (live.get("status") or {}).get("phase") in OVER:
        raise UserError(f"the Pod that tried the new model ended ({_said(live)}); the old Pods keep serving")
    if not is_ready(live):
        return Acted(f"trying the new model: {_said(live)}", PACE)
    assert turn.entry.probe is not None
    await _probe(turn.entry.probe, live)
    return Acted("the new model answers", SOON, {"tried": True})


async def end(turn: Turn, service: Manifest) -> None:
    await take_away(_key(turn, service), turn.cluster)


async def take_away(key: ResourceKey, cluster: Cluster) -> None:
    found = await cluster.get(key)
    if found is not None:
        await cluster.delete(key, uid=found["metadata"].get("uid"))


def _is_predictor(pod: Manifest) -> bool:
    """kserve: transformers and explainers carry the same label, and hold no model."""
    return bool((pod["metadata"].get("labels") or {}).get("component", "predictor") == "predictor")


def _key(turn: Turn, service: Manifest) -> ResourceKey:
    return key_for(service["metadata"]["namespace"], turn.entry.name, turn.mark)


def key_for(namespace: str, service: str, mark: str) -> ResourceKey:
    return ResourceKey(*POD, namespace, f"{service[:40]}-trial-{mark[:8]}")


def trial(turn: Turn, service: Manifest, pattern: Manifest) -> Manifest:
    """Without their labels no Service leads to it, and no controller counts it among its own."""
    spec: dict[str, Any] = {name: value for name, value in pattern["spec"].items() if name not in OF_A_PLACE}
    spec["volumes"] = [each for each in spec.get("volumes") or () if not each["name"].startswith(TOKENS)]
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [_without_token(each) for each in spec[kind]]
    spec["activeDeadlineSeconds"] = int(turn.entry.timeout) + SPARE  # whoever dies meanwhile leaves nothing that runs
    key = _key(turn, service)
    metadata: dict[str, Any] = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {NOTEBOOK_RUN: turn.mark},
        "annotations": dict(pattern["metadata"].get("annotations") or {}),
    }
    if key.namespace == turn.job.namespace:  # k8s: an owner is of the same namespace
        owner = {"apiVersion": API_VERSION, "kind": KIND.kind, "name": turn.job.name, "uid": turn.job.uid}
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _without_token(container: dict[str, Any]) -> dict[str, Any]:
    mounts = [each for each in container.get("volumeMounts") or () if not each["name"].startswith(TOKENS)]
    return {**container, "volumeMounts": mounts}


async def _probe(probe: Probe, pod: Manifest) -> None:
    if not probe.path or _is_played(pod):
        return
    host = str((pod.get("status") or {}).get("podIP") or "")
    container = (pod["spec"].get("containers") or [{}])[0]
    port = probe.port or next((int(each["containerPort"]) for each in container.get("ports") or ()), 8080)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise TransientError("the Pod that tries the new model has no address yet") from None
    if address.is_link_local:  # where clouds keep credentials of machines
        raise UserError(f"{host} is no address of a Pod; see who wrote it into the status")
    shown = f"[{host}]" if address.version == 6 else host
    answered = await asyncio.to_thread(ask, f"http://{shown}:{port}{probe.path}", seconds=SECONDS)
    if answered.code >= 400:
        raise TransientError(f"the new model answers {answered.code} to {probe.path}")
    if probe.contains and probe.contains not in answered.body.decode(errors="replace"):
        raise TransientError(f"the new model's answer to {probe.path} does not contain {probe.contains!r}")


def _is_played(pod: Manifest) -> bool:
    """What the sandbox only plays has an address that leads nowhere, or worse, to somebody else."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(str(each.get("containerID") or "").startswith(PLAYED) for each in containers)


def _said(pod: Manifest) -> str:
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = each.get("state") or {}
        found = state.get("waiting") or (each.get("lastState") or {}).get("terminated") or {}
        if found.get("reason"):
            return f"{found['reason']} {found.get('message', '')}".strip()
    return f"its Pod is {status.get('phase') or 'Pending'}"
