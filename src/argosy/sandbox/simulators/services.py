"""Simulates the Service controllers: Endpoints and EndpointSlices of the selected Pods, and load balancer addresses.

In: the key of a Service. Out: its endpoints and its status. Never: touches Endpoints that others wrote.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from argosy.annotations import SIMULATED
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import POD, SERVICE
from argosy.sandbox.simulators.conditional_writes import (
    create_if_absent,
    delete_object,
    equals_ignoring_empty,
    patch_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.endpoint_manifests import (
    SERVICE_NAME_LABEL,
    build_endpoint_slices,
    build_endpoints,
    has_managed_endpoints,
)
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.external_addresses import build_external_ip, compute_provisioning_delay
from argosy.sandbox.simulators.owner_references_and_marks import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    SIMULATED_CONDITION,
    append_simulated_note,
    build_key,
    enqueue_if_unmarked,
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.reconcile_throttle import ReconcileThrottle

SELECTOR_INDEX, POD_LABEL_INDEX = "simulators-selecting", "simulators-labelled"


class ServiceController:
    name = "simulated-services"

    def __init__(self) -> None:
        self._cache: InformerCache | None = None
        self._throttle = ReconcileThrottle(0.2, 0.002)
        self._events = EventRecorder("service-controller")
        self.watches = (
            Watch(SERVICE, enqueue_if_unmarked),
            Watch(POD, self._enqueue_services_of_pod),
            Watch(ENDPOINTS, _enqueue_service_of_endpoints),
            Watch(ENDPOINT_SLICE, _enqueue_service_of_slice),
        )

    def _enqueue_services_of_pod(self, pod: Manifest) -> Iterable[ResourceKey]:
        if self._cache is None:
            return
        labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
        for item in labels.items():
            for service in self._cache.find(SELECTOR_INDEX, (namespace, *item)):
                if service["spec"]["selector"].items() <= labels.items():
                    yield key_of(service)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._use_cache(context.cache)
        service = context.cache.get(key)
        if service is None or is_being_deleted(service) or is_simulated_by_other_addon(service):
            self._throttle.forget(key)
            await _delete_endpoints(key, service, context)
            return None
        wait = await self._update_load_balancer(service, context)
        if not has_managed_endpoints(service):
            return Requeue(wait) if wait else None
        if (pause := self._throttle.compute_wait(key, context.clock)) > 0:
            return Requeue(pause)
        pods = _list_selected_pods(service, context.cache)
        if await _write_endpoints(service, pods, context):
            self._throttle.record_reconcile(key, len(pods), context.clock)
        return Requeue(wait) if wait else None

    def _use_cache(self, cache: InformerCache) -> None:
        if self._cache is not cache:
            cache.add_index(SELECTOR_INDEX, _index_by_selector)
            cache.add_index(POD_LABEL_INDEX, _index_by_label)
            self._cache = cache

    async def _update_load_balancer(self, service: Manifest, context: ControllerContext) -> float | None:
        """Set the load balancer address; return the seconds until it is due if a delay or fault was requested."""
        previous = service.get("status") or {}
        if service["spec"].get("type") != "LoadBalancer":
            if (previous.get("loadBalancer") or {}).get("ingress"):
                await update_status_if_changed(service, {"loadBalancer": None, "conditions": None}, context.cluster)
            return None
        wait = compute_provisioning_delay(service, context.clock.now())
        if wait is None or wait > 0:
            return wait
        address = service["spec"].get("loadBalancerIP") or build_external_ip(service)
        load_balancer = {"ingress": [{"ip": address, "ipMode": "VIP"}]}
        new_status = {
            "loadBalancer": load_balancer,
            "conditions": _add_simulated_condition(service, format_timestamp(context.clock.now())),
        }
        if await update_status_if_changed(service, new_status, context.cluster):
            await self._events.record(service, [EventDraft("EnsuredLoadBalancer", "Ensured load balancer")], context)
        return None


def _add_simulated_condition(service: Manifest, now: str) -> list[dict[str, Any]]:
    """Build the condition that says no load balancer exists."""
    conditions = (service.get("status") or {}).get("conditions") or ()
    transitioned_at = (
        next((entry.get("lastTransitionTime") for entry in conditions if entry["type"] == SIMULATED_CONDITION), None)
        or now
    )
    message = append_simulated_note("no load balancer serves this address")
    condition = {"type": SIMULATED_CONDITION, "status": "True", "reason": "Simulated", "message": message}
    other_conditions = [entry for entry in conditions if entry["type"] != SIMULATED_CONDITION]
    return [*other_conditions, {**condition, "lastTransitionTime": transitioned_at}]


async def _write_endpoints(service: Manifest, pods: list[Manifest], context: ControllerContext) -> bool:
    """Write Endpoints and EndpointSlices; return True if something was written."""
    namespace = service["metadata"]["namespace"]
    current = context.cache.get(build_key(ENDPOINTS, namespace, service["metadata"]["name"]))
    is_changed = await _write_if_changed(current, build_endpoints(service, pods), ("subsets",), context)
    slices_by_name = {slice_["metadata"]["name"]: slice_ for slice_ in build_endpoint_slices(service, pods)}
    for slice_ in _list_owned_slices(service["metadata"]["uid"], context.cache):
        if slice_["metadata"]["name"] not in slices_by_name:
            await delete_object(slice_, context.cluster)
            is_changed = True
    for name, slice_ in slices_by_name.items():
        current_slice = context.cache.get(build_key(ENDPOINT_SLICE, namespace, name))
        is_changed |= await _write_if_changed(current_slice, slice_, ("endpoints", "ports"), context)
    return is_changed


async def _write_if_changed(
    current: Manifest | None, desired: Manifest, fields: Iterable[str], context: ControllerContext
) -> bool:
    if current is None:
        return await create_if_absent(desired, context.cluster)
    labels = desired["metadata"]["labels"]
    patch: dict[str, Any] = {
        name: desired[name] for name in fields if not equals_ignoring_empty(current.get(name), desired[name])
    }
    if not _contains_labels(current["metadata"].get("labels") or {}, labels) or not get_annotation(current, SIMULATED):
        patch["metadata"] = {"labels": labels, "annotations": desired["metadata"]["annotations"]}
    if not patch:
        return False
    await patch_object(current, patch, context.cluster)
    return True


async def _delete_endpoints(key: ResourceKey, service: Manifest | None, context: ControllerContext) -> None:
    """Delete the Endpoints of a deleted Service; slices are deleted with their owner, Endpoints have none."""
    endpoints = context.cache.get(build_key(ENDPOINTS, key.namespace, key.name))
    if service is None and endpoints is not None and get_annotation(endpoints, SIMULATED):
        await delete_object(endpoints, context.cluster)


def _list_selected_pods(service: Manifest, cache: InformerCache) -> list[Manifest]:
    """List the selected Pods, starting from the label that the fewest Pods have."""
    selector, namespace = service["spec"]["selector"], service["metadata"]["namespace"]
    candidates = min((cache.find(POD_LABEL_INDEX, (namespace, *item)) for item in selector.items()), key=len)
    return [pod for pod in candidates if selector.items() <= (pod["metadata"].get("labels") or {}).items()]


def _list_owned_slices(service_uid: str, cache: InformerCache) -> list[Manifest]:
    owned = (slice_ for slice_ in cache.list_owned(service_uid) if slice_["kind"] == "EndpointSlice")
    return [slice_ for slice_ in owned if (find_controller_reference(slice_) or {}).get("uid") == service_uid]


def _index_by_selector(manifest: Manifest) -> Iterator[Hashable]:
    """Index a Service by one label of its selector; the caller checks the others."""
    if manifest["kind"] == "Service" and (selector := manifest["spec"].get("selector")):
        yield (manifest["metadata"]["namespace"], *min(selector.items()))


def _index_by_label(manifest: Manifest) -> Iterator[Hashable]:
    if manifest["kind"] == "Pod":
        for item in (manifest["metadata"].get("labels") or {}).items():
            yield (manifest["metadata"]["namespace"], *item)


def _enqueue_service_of_endpoints(endpoints: Manifest) -> Iterator[ResourceKey]:
    if get_annotation(endpoints, SIMULATED):
        yield build_key(SERVICE, endpoints["metadata"]["namespace"], endpoints["metadata"]["name"])


def _enqueue_service_of_slice(endpoint_slice: Manifest) -> Iterator[ResourceKey]:
    if get_annotation(endpoint_slice, SIMULATED) and (
        name := (endpoint_slice["metadata"].get("labels") or {}).get(SERVICE_NAME_LABEL)
    ):
        yield build_key(SERVICE, endpoint_slice["metadata"]["namespace"], name)


def _contains_labels(current: Mapping[str, str], desired: Mapping[str, str]) -> bool:
    return all(current.get(name) == value for name, value in desired.items())
