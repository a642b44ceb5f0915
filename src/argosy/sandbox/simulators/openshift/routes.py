"""Simulates the API server and the router for Routes: generates hosts and admits one Route per host and path.

In: the key of a Route. Out: its host and its Admitted condition. Never: routes a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from argosy.kube.client import AdmissionHandler
from argosy.kube.controller import ControllerContext, InformerCache, Watch
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import ROUTE
from argosy.sandbox.simulators.conditional_writes import patch_object, requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import DEFAULT_DOMAIN, SERVER_FIELD_MANAGER
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)

HOST_GENERATED_ANNOTATION = "openshift.io/host.generated"
ROUTER_NAME = "default"
INSECURE_POLICY_FIELD = "insecureEdgeTerminationPolicy"


def set_default_host(route: Manifest, domain: str = DEFAULT_DOMAIN) -> Manifest:
    """Generate a host of the cluster's domain for a new Route that requests none."""
    metadata, spec = route["metadata"], route.get("spec") or {}
    if spec.get("host") or is_simulated_by_other_addon(route):
        return route
    first_label = spec.get("subdomain") or f"{metadata['name']}-{metadata.get('namespace') or 'default'}"
    annotated_metadata = {
        **metadata,
        "annotations": {**(metadata.get("annotations") or {}), HOST_GENERATED_ANNOTATION: "true"},
    }
    return {**route, "metadata": annotated_metadata, "spec": {**spec, "host": f"{first_label}.{domain}"}}


def normalize_empty_insecure_policy(route: Manifest) -> Manifest:
    """Store an empty insecureEdgeTerminationPolicy as None, which is what it means."""
    spec = route.get("spec") or {}
    tls = spec.get("tls") or {}
    if tls.get(INSECURE_POLICY_FIELD) != "" or is_simulated_by_other_addon(route):
        return route
    return {**route, "spec": {**spec, "tls": {**tls, INSECURE_POLICY_FIELD: "None"}}}


def build_admission_handler(domain: str = DEFAULT_DOMAIN) -> AdmissionHandler:
    def admit(new: Manifest, old: Manifest | None) -> Manifest:
        if old is not None and not (new.get("spec") or {}).get("host"):
            spec = {**(new.get("spec") or {}), "host": (old.get("spec") or {}).get("host") or ""}
            new = {**new, "spec": spec}  # a generated host is kept when the Route is applied again
        return normalize_empty_insecure_policy(set_default_host(new, domain))

    return AdmissionHandler(ROUTE, "route-host.openshift.io", SERVER_FIELD_MANAGER, admit)


class RouteController:
    name = "simulated-routes"

    def __init__(self, domain: str = DEFAULT_DOMAIN) -> None:
        self._domain = domain
        self._rejected: set[ResourceKey] = set()
        self.watches = (Watch(ROUTE, enqueue_if_unmarked), Watch(ROUTE, self._enqueue_rejected))

    def _enqueue_rejected(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._rejected)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        self._rejected.discard(key)
        route = context.cache.get(key)
        if route is None or is_being_deleted(route) or is_simulated_by_other_addon(route):
            return
        with_default_host = set_default_host(route, self._domain)
        if with_default_host is not route:  # the API server called no admission handlers
            patch = {
                "metadata": {"annotations": {HOST_GENERATED_ANNOTATION: "true"}},
                "spec": {"host": with_default_host["spec"]["host"]},
            }
            await patch_object(route, patch, context.cluster)
            return
        owner = find_conflicting_route(route, context.cache)
        if owner is not None:
            self._rejected.add(key)
        await update_status_if_changed(
            route, build_route_status(route, owner, self._domain, context.clock.now()), context.cluster
        )


def find_conflicting_route(route: Manifest, cache: InformerCache) -> Manifest | None:
    """Find the older Route that has the same host and path."""
    own_address = _read_host_and_path(route)
    same_address = (
        other
        for other in cache.list(ROUTE)
        if _read_host_and_path(other) == own_address and not is_being_deleted(other)
    )
    return min(
        (other for other in same_address if _age_sort_key(other) < _age_sort_key(route)),
        key=_age_sort_key,
        default=None,
    )


def _read_host_and_path(route: Manifest) -> tuple[str, str]:
    return str(route["spec"].get("host") or ""), str(route["spec"].get("path") or "")


def _age_sort_key(route: Manifest) -> tuple[str, bool, str]:
    """Sort key: creation time; of two Routes created in the same second, the admitted one is older."""
    is_admitted = any(
        condition["type"] == "Admitted" and condition["status"] == "True" for condition in _list_conditions(route)
    )
    return str(route["metadata"]["creationTimestamp"]), not is_admitted, str(route["metadata"]["uid"])


def _list_conditions(route: Manifest) -> list[Any]:
    entries = (route.get("status") or {}).get("ingress") or ()
    return [condition for entry in entries for condition in entry.get("conditions") or ()]


def build_route_status(route: Manifest, owner: Manifest | None, domain: str, now: datetime) -> Manifest:
    admitted: dict[str, Any] = {"type": "Admitted", "status": "True", "message": SIMULATED_NOTE}
    if owner is not None:
        host, name = route["spec"]["host"], owner["metadata"]["name"]
        message = f"route {name} already exposes {host} and is older ({SIMULATED_NOTE})"
        admitted = {"type": "Admitted", "status": "False", "reason": "HostAlreadyClaimed", "message": message}
    previous: dict[str, Any] = next(
        (condition for condition in _list_conditions(route) if condition["type"] == "Admitted"), {}
    )
    is_unchanged = previous.get("status") == admitted["status"]
    transitioned_at = previous.get("lastTransitionTime") if is_unchanged else None
    entry = {
        "host": route["spec"]["host"],
        "routerName": ROUTER_NAME,
        "routerCanonicalHostname": f"router-{ROUTER_NAME}.{domain}",
        "wildcardPolicy": route["spec"].get("wildcardPolicy") or "None",
        "conditions": [{**admitted, "lastTransitionTime": transitioned_at or format_timestamp(now)}],
    }
    return {"ingress": [entry]}
