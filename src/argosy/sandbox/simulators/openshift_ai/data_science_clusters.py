"""Simulates the OpenShift AI operator: a DataScienceCluster becomes ready, and its Gateways are reset to the operator's
spec.

In: the key of a DataScienceCluster. Out: its status, and two Gateways if models are served through a service mesh.
Never: installs a component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy.kube.controller import Context, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY, is_dying, is_played_by_others, own_key, told, unmarked
from argosy.sandbox.simulators.fault_injection import asked, read_wishes
from argosy.sandbox.simulators.openshift_ai.constants import DATA_SCIENCE_CLUSTER, GATEWAY, OPERATOR
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import keep_status, patient, same

NAMESPACE: Final = "knative-serving"
SELECTED: Final = {"knative": "ingressgateway"}
Spec = dict[str, Any]


def _server(number: int, tls: Mapping[str, str]) -> Spec:
    return {"hosts": ["*"], "port": {"name": "https", "number": number, "protocol": "HTTPS"}, "tls": dict(tls)}


GATEWAYS: Final[Mapping[str, Spec]] = {
    "knative-ingress-gateway": {
        "selector": SELECTED,
        "servers": [_server(443, {"mode": "SIMPLE", "credentialName": "knative-serving-cert"})],
    },
    "knative-local-gateway": {"selector": SELECTED, "servers": [_server(8081, {"mode": "ISTIO_MUTUAL"})]},
}


class DataScienceClusters:
    """Remembers keys only to enqueue them when a Gateway changes."""

    name = "simulated-datascienceclusters"

    def __init__(self) -> None:
        self._known: set[ResourceKey] = set()
        self.watches = (Watch(DATA_SCIENCE_CLUSTER, unmarked), Watch(GATEWAY, self._meshed))

    def _meshed(self, gateway: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._known) if gateway["metadata"]["name"] in GATEWAYS else ()

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            self._known.discard(key)
            return
        self._known.add(key)
        if namespace := meshed_in(live):
            for name, spec in GATEWAYS.items():
                await _keep_gateway(own_key(GATEWAY, namespace, name), spec, context)
        await keep_status(live, status_of(live, stamp(context.clock.now())), context.cluster)


def meshed_in(cluster: Manifest) -> str:
    """Return the namespace of its Gateways, or an empty string if it does not manage serving through a mesh."""
    kserve = ((cluster.get("spec") or {}).get("components") or {}).get("kserve") or {}
    serving = kserve.get("serving") or {}
    is_ours = kserve.get("managementState") == serving.get("managementState") == "Managed"
    return str(serving.get("name") or NAMESPACE) if is_ours else ""


async def _keep_gateway(key: ResourceKey, spec: Spec, context: Context) -> None:
    """Reset an existing Gateway to the wanted spec; others may create it, so it is never created here."""
    found = context.cache.get(key)
    if found is None or is_dying(found) or is_played_by_others(found) or same(found.get("spec"), spec):
        return
    gone = {name: None for name in (found["spec"].get("selector") or {}) if name not in spec["selector"]}
    wanted = {**spec, "selector": {**gone, **spec["selector"]}}
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
    await context.cluster.patch(key, {"metadata": version, "spec": wanted}, manager=OPERATOR)


def status_of(cluster: Manifest, now: str) -> dict[str, Any]:
    components = (cluster.get("spec") or {}).get("components") or {}
    is_ready = read_wishes([asked(cluster)]).fail is None
    status, reason = ("True", "Ready") if is_ready else ("False", "NotReady")
    message = BY if is_ready else told("requested by annotation")
    known = {each["type"]: each for each in (cluster.get("status") or {}).get("conditions") or ()}
    since = now
    if (before := known.get("Ready")) and before["status"] == status:
        since = before["lastTransitionTime"]
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    return {
        "phase": "Ready" if is_ready else "Not Ready",
        "observedGeneration": cluster["metadata"].get("generation"),
        "installedComponents": {
            name: each.get("managementState") == "Managed" for name, each in components.items() if each
        },
        "conditions": [ready],
    }
