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
from argosy.features.notebooks.notebook_validation_job_parser import API_VERSION
from argosy.features.notebooks.on_success_triggers import service_account_permission_check
from argosy.features.notebooks.on_success_triggers.execution_context import (
    MANAGER,
    POLL_INTERVAL_SECONDS,
    SHORT_DELAY_SECONDS,
    TriggerExecution,
    TriggerStep,
)
from argosy.features.notebooks.on_success_triggers.pod_eviction import TERMINAL_POD_PHASES, is_pod_ready
from argosy.features.notebooks.on_success_triggers.service_account_permission_check import ResourceAccess
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import TrialProbe
from argosy.http_client.anonymous_request import send_plain_request
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB, POD

REQUEST_TIMEOUT_SECONDS: Final = 10.0
DEADLINE_MARGIN_SECONDS: Final = 60
SIMULATED_PREFIX: Final = "simulated://"
TOKEN_VOLUME_PREFIX: Final = "kube-api-access-"  # k8s: prefix of the token volume that admission adds to every Pod
NODE_FIELDS: Final = ("nodeName", "hostname", "subdomain", "ephemeralContainers")


async def run_trial(execution: TriggerExecution, service: Manifest, pods: Sequence[Manifest]) -> TriggerStep | None:
    """None if the trial succeeded. Raises UserError if it failed; the old Pods stay."""
    if execution.record.get("tried"):
        await delete_trial_pod(execution, service)
        return None
    template_pod = next((pod for pod in pods if is_pod_ready(pod) and _is_predictor(pod)), None)
    live = await execution.cluster.get(_get_trial_key(execution, service))
    if live is None and template_pod is None:
        return None  # nothing is serving that could break
    if live is None:
        assert template_pod is not None
        namespace = service["metadata"]["namespace"]
        await service_account_permission_check.check_permission(
            execution.job, ResourceAccess("create", "", "pods", namespace), execution.cluster
        )
        await execution.cluster.create(build_trial_pod(execution, service, template_pod), manager=MANAGER)
        return TriggerStep("testing the new model in a trial Pod", POLL_INTERVAL_SECONDS)
    if (live.get("status") or {}).get("phase") in TERMINAL_POD_PHASES:
        raise UserError(f"the trial Pod of the new model ended ({_describe_pod(live)}); the old Pods keep serving")
    if not is_pod_ready(live):
        return TriggerStep(f"testing the new model: {_describe_pod(live)}", POLL_INTERVAL_SECONDS)
    assert execution.entry.probe is not None
    await _check_probe(execution.entry.probe, live)
    return TriggerStep("the new model responds", SHORT_DELAY_SECONDS, {"tried": True})


async def delete_trial_pod(execution: TriggerExecution, service: Manifest) -> None:
    await delete_if_exists(_get_trial_key(execution, service), execution.cluster)


async def delete_if_exists(key: ResourceKey, cluster: Cluster) -> None:
    pod = await cluster.get(key)
    if pod is not None:
        await cluster.delete(key, uid=pod["metadata"].get("uid"))


def _is_predictor(pod: Manifest) -> bool:
    """kserve: transformers and explainers have the same label, but no model."""
    return bool((pod["metadata"].get("labels") or {}).get("component", "predictor") == "predictor")


def _get_trial_key(execution: TriggerExecution, service: Manifest) -> ResourceKey:
    return build_trial_key(service["metadata"]["namespace"], execution.entry.name, execution.trigger_id)


def build_trial_key(namespace: str, service: str, trigger_id: str) -> ResourceKey:
    return ResourceKey(*POD, namespace, f"{service[:40]}-trial-{trigger_id[:8]}")


def build_trial_pod(execution: TriggerExecution, service: Manifest, template_pod: Manifest) -> Manifest:
    """Without the labels, no Service selects the Pod and no controller adopts it."""
    spec: dict[str, Any] = {name: value for name, value in template_pod["spec"].items() if name not in NODE_FIELDS}
    spec["volumes"] = [
        entry for entry in spec.get("volumes") or () if not entry["name"].startswith(TOKEN_VOLUME_PREFIX)
    ]
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [_drop_token_mounts(entry) for entry in spec[kind]]
    # If this process dies, the Pod still ends.
    spec["activeDeadlineSeconds"] = int(execution.entry.timeout) + DEADLINE_MARGIN_SECONDS
    key = _get_trial_key(execution, service)
    metadata: dict[str, Any] = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {NOTEBOOK_RUN: execution.trigger_id},
        "annotations": dict(template_pod["metadata"].get("annotations") or {}),
    }
    if key.namespace == execution.job.namespace:  # k8s: owners must be in the same namespace
        owner = {
            "apiVersion": API_VERSION,
            "kind": NOTEBOOK_JOB.kind,
            "name": execution.job.name,
            "uid": execution.job.uid,
        }
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _drop_token_mounts(container: dict[str, Any]) -> dict[str, Any]:
    mounts = [
        mount for mount in container.get("volumeMounts") or () if not mount["name"].startswith(TOKEN_VOLUME_PREFIX)
    ]
    return {**container, "volumeMounts": mounts}


async def _check_probe(probe: TrialProbe, pod: Manifest) -> None:
    if not probe.path or _is_simulated(pod):
        return
    host = str((pod.get("status") or {}).get("podIP") or "")
    container = (pod["spec"].get("containers") or [{}])[0]
    port = probe.port or next(
        (int(container_port["containerPort"]) for container_port in container.get("ports") or ()), 8080
    )
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise TransientError("the trial Pod of the new model has no IP yet") from None
    if address.is_link_local:  # cloud metadata addresses
        raise UserError(f"{host} is not a Pod IP; check the status of the Pod")
    host_text = f"[{host}]" if address.version == 6 else host
    response = await asyncio.to_thread(
        send_plain_request, f"http://{host_text}:{port}{probe.path}", timeout_seconds=REQUEST_TIMEOUT_SECONDS
    )
    if response.code >= 400:
        raise TransientError(f"the new model returns {response.code} for {probe.path}")
    if probe.contains and probe.contains not in response.body.decode(errors="replace"):
        raise TransientError(f"the response of the new model to {probe.path} does not contain {probe.contains!r}")


def _is_simulated(pod: Manifest) -> bool:
    """True if the sandbox only simulates the Pod: its IP leads nowhere, or to another process."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(
        str(container_status.get("containerID") or "").startswith(SIMULATED_PREFIX) for container_status in containers
    )


def _describe_pod(pod: Manifest) -> str:
    status = pod.get("status") or {}
    for container_status in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = container_status.get("state") or {}
        container_state = state.get("waiting") or (container_status.get("lastState") or {}).get("terminated") or {}
        if container_state.get("reason"):
            return f"{container_state['reason']} {container_state.get('message', '')}".strip()
    return f"the Pod is {status.get('phase') or 'Pending'}"
