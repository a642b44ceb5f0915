"""Simulates the OpenShift AI operator: a DataScienceCluster becomes ready, and its Gateways are reset to the operator's
spec.

In: the key of a DataScienceCluster. Out: its status, and two Gateways if models are served through a service mesh.
Never: installs a component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy.kube.controller import ControllerContext, Watch
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import DATA_SCIENCE_CLUSTER
from argosy.sandbox.simulators.conditional_writes import (
    equals_ignoring_empty,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.openshift_ai.kinds_and_field_managers import GATEWAY, OPERATOR_FIELD_MANAGER
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    append_simulated_note,
    build_key,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.simulation_annotations import read_simulation_annotations, read_simulation_settings

DEFAULT_GATEWAY_NAMESPACE: Final = "knative-serving"
GATEWAY_SELECTOR: Final = {"knative": "ingressgateway"}
GatewaySpec = dict[str, Any]


def _build_server(port: int, tls: Mapping[str, str]) -> GatewaySpec:
    return {"hosts": ["*"], "port": {"name": "https", "number": port, "protocol": "HTTPS"}, "tls": dict(tls)}


GATEWAYS: Final[Mapping[str, GatewaySpec]] = {
    "knative-ingress-gateway": {
        "selector": GATEWAY_SELECTOR,
        "servers": [_build_server(443, {"mode": "SIMPLE", "credentialName": "knative-serving-cert"})],
    },
    "knative-local-gateway": {"selector": GATEWAY_SELECTOR, "servers": [_build_server(8081, {"mode": "ISTIO_MUTUAL"})]},
}


class DataScienceClusterController:
    """Remembers keys only to enqueue them when a Gateway changes."""

    name = "simulated-datascienceclusters"

    def __init__(self) -> None:
        self._cluster_keys: set[ResourceKey] = set()
        self.watches = (
            Watch(DATA_SCIENCE_CLUSTER, enqueue_if_unmarked),
            Watch(GATEWAY, self._enqueue_clusters_of_gateway),
        )

    def _enqueue_clusters_of_gateway(self, gateway: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._cluster_keys) if gateway["metadata"]["name"] in GATEWAYS else ()

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        data_science_cluster = context.cache.get(key)
        if (
            data_science_cluster is None
            or is_being_deleted(data_science_cluster)
            or is_simulated_by_other_addon(data_science_cluster)
        ):
            self._cluster_keys.discard(key)
            return
        self._cluster_keys.add(key)
        if namespace := find_gateway_namespace(data_science_cluster):
            for name, spec in GATEWAYS.items():
                await _reset_gateway(build_key(GATEWAY, namespace, name), spec, context)
        await update_status_if_changed(
            data_science_cluster,
            build_cluster_status(data_science_cluster, format_timestamp(context.clock.now())),
            context.cluster,
        )


def find_gateway_namespace(data_science_cluster: Manifest) -> str:
    """Return the namespace of its Gateways, or an empty string if it does not manage serving through a mesh."""
    kserve = ((data_science_cluster.get("spec") or {}).get("components") or {}).get("kserve") or {}
    serving = kserve.get("serving") or {}
    is_ours = kserve.get("managementState") == serving.get("managementState") == "Managed"
    return str(serving.get("name") or DEFAULT_GATEWAY_NAMESPACE) if is_ours else ""


async def _reset_gateway(key: ResourceKey, spec: GatewaySpec, context: ControllerContext) -> None:
    """Reset an existing Gateway to the desired spec; others may create it, so it is never created here."""
    gateway = context.cache.get(key)
    if (
        gateway is None
        or is_being_deleted(gateway)
        or is_simulated_by_other_addon(gateway)
        or equals_ignoring_empty(gateway.get("spec"), spec)
    ):
        return
    removed_labels = {name: None for name in (gateway["spec"].get("selector") or {}) if name not in spec["selector"]}
    desired = {**spec, "selector": {**removed_labels, **spec["selector"]}}
    version_fields = {"resourceVersion": gateway["metadata"]["resourceVersion"]}
    await context.cluster.patch(key, {"metadata": version_fields, "spec": desired}, manager=OPERATOR_FIELD_MANAGER)


def build_cluster_status(data_science_cluster: Manifest, now: str) -> dict[str, Any]:
    components = (data_science_cluster.get("spec") or {}).get("components") or {}
    is_ready = read_simulation_settings([read_simulation_annotations(data_science_cluster)]).fault is None
    status, reason = ("True", "Ready") if is_ready else ("False", "NotReady")
    message = SIMULATED_NOTE if is_ready else append_simulated_note("requested by annotation")
    previous_conditions = {
        item["type"]: item for item in (data_science_cluster.get("status") or {}).get("conditions") or ()
    }
    transitioned_at = now
    if (previous := previous_conditions.get("Ready")) and previous["status"] == status:
        transitioned_at = previous["lastTransitionTime"]
    ready = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": transitioned_at,
    }
    return {
        "phase": "Ready" if is_ready else "Not Ready",
        "observedGeneration": data_science_cluster["metadata"].get("generation"),
        "installedComponents": {
            name: item.get("managementState") == "Managed" for name, item in components.items() if item
        },
        "conditions": [ready],
    }
