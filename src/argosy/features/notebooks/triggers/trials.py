"""Tests a new model in a trial Pod while the old one keeps serving.

In: an InferenceService with Pods, a probe. Out: one more Pod, created like the others, that no Service selects; when it
is ready and answers the probe, it is deleted and the restart begins. Never: lets an old Pod go before that.
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
TOKENS: Final = "kube-api-access-"  # k8s: prefix of the token volume that admission adds to every Pod
OF_A_PLACE: Final = ("nodeName", "hostname", "subdomain", "ephemeralContainers")


async def tried(turn: Turn, service: Manifest, pods: Sequence[Manifest]) -> Acted | None:
    """None if the trial succeeded. Raises UserError if it failed; the old Pods stay."""
    if turn.record.get("tried"):
        await end(turn, service)
        return None
    pattern = next((pod for pod in pods if is_ready(pod) and _is_predictor(pod)), None)
    live = await turn.cluster.get(_key(turn, service))
    if live is None and pattern is None:
        return None  # nothing is serving that could break
    if live is None:
        assert pattern is not None
        namespace = service["metadata"]["namespace"]
        await permission.check(turn.job, Wish("create", "", "pods", namespace), turn.cluster)
        await turn.cluster.create(trial(turn, service, pattern), manager=MANAGER)
        return Acted("testing the new model in a trial Pod", PACE)
    if (live.get("status") or {}).get("phase") in OVER:
        raise UserError(f"the trial Pod of the new model ended ({_said(live)}); the old Pods keep serving")
    if not is_ready(live):
        return Acted(f"testing the new model: {_said(live)}", PACE)
    assert turn.entry.probe is not None
    await _probe(turn.entry.probe, live)
    return Acted("the new model responds", SOON, {"tried": True})


async def end(turn: Turn, service: Manifest) -> None:
    await take_away(_key(turn, service), turn.cluster)


async def take_away(key: ResourceKey, cluster: Cluster) -> None:
    found = await cluster.get(key)
    if found is not None:
        await cluster.delete(key, uid=found["metadata"].get("uid"))


def _is_predictor(pod: Manifest) -> bool:
    """kserve: transformers and explainers have the same label, but no model."""
    return bool((pod["metadata"].get("labels") or {}).get("component", "predictor") == "predictor")


def _key(turn: Turn, service: Manifest) -> ResourceKey:
    return key_for(service["metadata"]["namespace"], turn.entry.name, turn.mark)


def key_for(namespace: str, service: str, mark: str) -> ResourceKey:
    return ResourceKey(*POD, namespace, f"{service[:40]}-trial-{mark[:8]}")


def trial(turn: Turn, service: Manifest, pattern: Manifest) -> Manifest:
    """Without the labels, no Service selects the Pod and no controller adopts it."""
    spec: dict[str, Any] = {name: value for name, value in pattern["spec"].items() if name not in OF_A_PLACE}
    spec["volumes"] = [each for each in spec.get("volumes") or () if not each["name"].startswith(TOKENS)]
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [_without_token(each) for each in spec[kind]]
    spec["activeDeadlineSeconds"] = int(turn.entry.timeout) + SPARE  # if this process dies, the Pod still ends
    key = _key(turn, service)
    metadata: dict[str, Any] = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {NOTEBOOK_RUN: turn.mark},
        "annotations": dict(pattern["metadata"].get("annotations") or {}),
    }
    if key.namespace == turn.job.namespace:  # k8s: owners must be in the same namespace
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
        raise TransientError("the trial Pod of the new model has no IP yet") from None
    if address.is_link_local:  # cloud metadata addresses
        raise UserError(f"{host} is not a Pod IP; check the status of the Pod")
    shown = f"[{host}]" if address.version == 6 else host
    answered = await asyncio.to_thread(ask, f"http://{shown}:{port}{probe.path}", seconds=SECONDS)
    if answered.code >= 400:
        raise TransientError(f"the new model returns {answered.code} for {probe.path}")
    if probe.contains and probe.contains not in answered.body.decode(errors="replace"):
        raise TransientError(f"the response of the new model to {probe.path} does not contain {probe.contains!r}")


def _is_played(pod: Manifest) -> bool:
    """True if the sandbox only simulates the Pod: its IP leads nowhere, or to another process."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(str(each.get("containerID") or "").startswith(PLAYED) for each in containers)


def _said(pod: Manifest) -> str:
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = each.get("state") or {}
        found = state.get("waiting") or (each.get("lastState") or {}).get("terminated") or {}
        if found.get("reason"):
            return f"{found['reason']} {found.get('message', '')}".strip()
    return f"the Pod is {status.get('phase') or 'Pending'}"
