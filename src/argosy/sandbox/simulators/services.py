"""Simulates the Service controllers: Endpoints and EndpointSlices of the selected Pods, and load balancer addresses.

In: the key of a Service. Out: its endpoints and its status. Never: touches Endpoints that others wrote.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, annotation, key_of
from argosy.sandbox.simulators.constants import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    POD,
    SERVICE,
    is_dying,
    is_played_by_others,
    own_key,
    owner_of,
    told,
    unmarked,
)
from argosy.sandbox.simulators.endpoints import SERVICE_NAME, endpoints_for, is_served, slices_for
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.load_balancers import address_of, when_given
from argosy.sandbox.simulators.requeue_interval import Pace
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import change, create_once, keep_status, patient, remove, same

SAYING_SO: Final = "sandbox.argosy.dev/Simulated"
SELECTING, LABELLED = "simulators-selecting", "simulators-labelled"


class Services:
    name = "simulated-services"

    def __init__(self) -> None:
        self._cache: Cache | None = None
        self._pace = Pace(0.2, 0.002)
        self._events = Recorder("service-controller")
        self.watches = (
            Watch(SERVICE, unmarked),
            Watch(POD, self._leading_to),
            Watch(ENDPOINTS, _of_endpoints),
            Watch(ENDPOINT_SLICE, _of_slice),
        )

    def _leading_to(self, pod: Manifest) -> Iterable[ResourceKey]:
        if self._cache is None:
            return
        labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
        for item in labels.items():
            for service in self._cache.find(SELECTING, (namespace, *item)):
                if service["spec"]["selector"].items() <= labels.items():
                    yield key_of(service)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._open(context.cache)
        service = context.cache.get(key)
        if service is None or is_dying(service) or is_played_by_others(service):
            self._pace.forget(key)
            await _forget(key, service, context)
            return None
        wait = await self._balance(service, context)
        if not is_served(service):
            return Requeue(wait) if wait else None
        if (pause := self._pace.wait(key, context.clock)) > 0:
            return Requeue(pause)
        pods = _selected(service, context.cache)
        if await _lead(service, pods, context):
            self._pace.looked(key, len(pods), context.clock)
        return Requeue(wait) if wait else None

    def _open(self, cache: Cache) -> None:
        if self._cache is not cache:
            cache.index(SELECTING, _selecting)
            cache.index(LABELLED, _labelled)
            self._cache = cache

    async def _balance(self, service: Manifest, context: Context) -> float | None:
        """Set the load balancer address; return the seconds until it is due if a delay or fault was requested."""
        known = service.get("status") or {}
        if service["spec"].get("type") != "LoadBalancer":
            if (known.get("loadBalancer") or {}).get("ingress"):
                await keep_status(service, {"loadBalancer": None, "conditions": None}, context.cluster)
            return None
        wait = when_given(service, context.clock.now())
        if wait is None or wait > 0:
            return wait
        address = service["spec"].get("loadBalancerIP") or address_of(service)
        given = {"ingress": [{"ip": address, "ipMode": "VIP"}]}
        wanted = {"loadBalancer": given, "conditions": _said(service, stamp(context.clock.now()))}
        if await keep_status(service, wanted, context.cluster):
            await self._events.tell(service, [Happening("EnsuredLoadBalancer", "Ensured load balancer")], context)
        return None


def _said(service: Manifest, now: str) -> list[dict[str, Any]]:
    """Build the condition that says no load balancer exists."""
    conditions = (service.get("status") or {}).get("conditions") or ()
    since = next((each.get("lastTransitionTime") for each in conditions if each["type"] == SAYING_SO), None) or now
    message = told("no load balancer serves this address")
    said = {"type": SAYING_SO, "status": "True", "reason": "Simulated", "message": message}
    others = [each for each in conditions if each["type"] != SAYING_SO]
    return [*others, {**said, "lastTransitionTime": since}]


async def _lead(service: Manifest, pods: list[Manifest], context: Context) -> bool:
    """Write Endpoints and EndpointSlices; return True if something was written."""
    place = service["metadata"]["namespace"]
    known = context.cache.get(own_key(ENDPOINTS, place, service["metadata"]["name"]))
    is_changed = await _keep(known, endpoints_for(service, pods), ("subsets",), context)
    wanted = {each["metadata"]["name"]: each for each in slices_for(service, pods)}
    for each in _slices(service["metadata"]["uid"], context.cache):
        if each["metadata"]["name"] not in wanted:
            await remove(each, context.cluster)
            is_changed = True
    for name, each in wanted.items():
        found = context.cache.get(own_key(ENDPOINT_SLICE, place, name))
        is_changed |= await _keep(found, each, ("endpoints", "ports"), context)
    return is_changed


async def _keep(known: Manifest | None, wanted: Manifest, fields: Iterable[str], context: Context) -> bool:
    if known is None:
        return await create_once(wanted, context.cluster)
    labels = wanted["metadata"]["labels"]
    patch: dict[str, Any] = {name: wanted[name] for name in fields if not same(known.get(name), wanted[name])}
    if not _carries(known["metadata"].get("labels") or {}, labels) or not annotation(known, SIMULATED):
        patch["metadata"] = {"labels": labels, "annotations": wanted["metadata"]["annotations"]}
    if not patch:
        return False
    await change(known, patch, context.cluster)
    return True


async def _forget(key: ResourceKey, service: Manifest | None, context: Context) -> None:
    """Delete the Endpoints of a deleted Service; slices are deleted with their owner, Endpoints have none."""
    found = context.cache.get(own_key(ENDPOINTS, key.namespace, key.name))
    if service is None and found is not None and annotation(found, SIMULATED):
        await remove(found, context.cluster)


def _selected(service: Manifest, cache: Cache) -> list[Manifest]:
    """List the selected Pods, starting from the label that the fewest Pods have."""
    selector, place = service["spec"]["selector"], service["metadata"]["namespace"]
    found = min((cache.find(LABELLED, (place, *item)) for item in selector.items()), key=len)
    return [each for each in found if selector.items() <= (each["metadata"].get("labels") or {}).items()]


def _slices(uid: str, cache: Cache) -> list[Manifest]:
    owned = (each for each in cache.owned(uid) if each["kind"] == "EndpointSlice")
    return [each for each in owned if (owner_of(each) or {}).get("uid") == uid]


def _selecting(manifest: Manifest) -> Iterator[Hashable]:
    """Index a Service by one label of its selector; the caller checks the others."""
    if manifest["kind"] == "Service" and (selector := manifest["spec"].get("selector")):
        yield (manifest["metadata"]["namespace"], *min(selector.items()))


def _labelled(manifest: Manifest) -> Iterator[Hashable]:
    if manifest["kind"] == "Pod":
        for item in (manifest["metadata"].get("labels") or {}).items():
            yield (manifest["metadata"]["namespace"], *item)


def _of_endpoints(endpoints: Manifest) -> Iterator[ResourceKey]:
    if annotation(endpoints, SIMULATED):
        yield own_key(SERVICE, endpoints["metadata"]["namespace"], endpoints["metadata"]["name"])


def _of_slice(found: Manifest) -> Iterator[ResourceKey]:
    if annotation(found, SIMULATED) and (name := (found["metadata"].get("labels") or {}).get(SERVICE_NAME)):
        yield own_key(SERVICE, found["metadata"]["namespace"], name)


def _carries(known: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(known.get(name) == value for name, value in wanted.items())
