"""Simulates the API server and the router for Routes: generates hosts and admits one Route per host and path.

In: the key of a Route. Out: its host and its Admitted condition. Never: routes a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from argosy.kube.client import Admitter
from argosy.kube.controller import Cache, Context, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY, is_dying, is_played_by_others, unmarked
from argosy.sandbox.simulators.openshift.constants import DOMAIN, ROUTE, SERVER
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import change, keep_status, patient

GENERATED = "openshift.io/host.generated"
ROUTER = "default"
INSECURE = "insecureEdgeTerminationPolicy"


def with_host(route: Manifest, domain: str = DOMAIN) -> Manifest:
    """Generate a host of the cluster's domain for a new Route that requests none."""
    metadata, spec = route["metadata"], route.get("spec") or {}
    if spec.get("host") or is_played_by_others(route):
        return route
    first = spec.get("subdomain") or f"{metadata['name']}-{metadata.get('namespace') or 'default'}"
    marked = {**metadata, "annotations": {**(metadata.get("annotations") or {}), GENERATED: "true"}}
    return {**route, "metadata": marked, "spec": {**spec, "host": f"{first}.{domain}"}}


def with_policy(route: Manifest) -> Manifest:
    """Store an empty insecureEdgeTerminationPolicy as None, which is what it means."""
    spec = route.get("spec") or {}
    tls = spec.get("tls") or {}
    if tls.get(INSECURE) != "" or is_played_by_others(route):
        return route
    return {**route, "spec": {**spec, "tls": {**tls, INSECURE: "None"}}}


def admitter(domain: str = DOMAIN) -> Admitter:
    def admit(new: Manifest, old: Manifest | None) -> Manifest:
        if old is not None and not (new.get("spec") or {}).get("host"):
            spec = {**(new.get("spec") or {}), "host": (old.get("spec") or {}).get("host") or ""}
            new = {**new, "spec": spec}  # a generated host is kept when the Route is applied again
        return with_policy(with_host(new, domain))

    return Admitter(ROUTE, "route-host.openshift.io", SERVER, admit)


class Routes:
    name = "simulated-routes"

    def __init__(self, domain: str = DOMAIN) -> None:
        self._domain = domain
        self._refused: set[ResourceKey] = set()
        self.watches = (Watch(ROUTE, unmarked), Watch(ROUTE, self._waiting))

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._refused)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        self._refused.discard(key)
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return
        wanted = with_host(live, self._domain)
        if wanted is not live:  # the API server called no admission handlers
            patch = {"metadata": {"annotations": {GENERATED: "true"}}, "spec": {"host": wanted["spec"]["host"]}}
            await change(live, patch, context.cluster)
            return
        owner = claimed_by(live, context.cache)
        if owner is not None:
            self._refused.add(key)
        await keep_status(live, status_of(live, owner, self._domain, context.clock.now()), context.cluster)


def claimed_by(route: Manifest, cache: Cache) -> Manifest | None:
    """Find the older Route that has the same host and path."""
    mine = _place(route)
    others = (each for each in cache.list(ROUTE) if _place(each) == mine and not is_dying(each))
    return min((each for each in others if _age(each) < _age(route)), key=_age, default=None)


def _place(route: Manifest) -> tuple[str, str]:
    return str(route["spec"].get("host") or ""), str(route["spec"].get("path") or "")


def _age(route: Manifest) -> tuple[str, bool, str]:
    """Sort key: creation time; of two Routes created in the same second, the admitted one is older."""
    is_admitted = any(each["type"] == "Admitted" and each["status"] == "True" for each in _conditions(route))
    return str(route["metadata"]["creationTimestamp"]), not is_admitted, str(route["metadata"]["uid"])


def _conditions(route: Manifest) -> list[Any]:
    entries = (route.get("status") or {}).get("ingress") or ()
    return [condition for entry in entries for condition in entry.get("conditions") or ()]


def status_of(route: Manifest, owner: Manifest | None, domain: str, now: datetime) -> Manifest:
    admitted: dict[str, Any] = {"type": "Admitted", "status": "True", "message": BY}
    if owner is not None:
        host, name = route["spec"]["host"], owner["metadata"]["name"]
        why = f"route {name} already exposes {host} and is older ({BY})"
        admitted = {"type": "Admitted", "status": "False", "reason": "HostAlreadyClaimed", "message": why}
    before: dict[str, Any] = next((each for each in _conditions(route) if each["type"] == "Admitted"), {})
    same = before.get("status") == admitted["status"]
    since = before.get("lastTransitionTime") if same else None
    entry = {
        "host": route["spec"]["host"],
        "routerName": ROUTER,
        "routerCanonicalHostname": f"router-{ROUTER}.{domain}",
        "wildcardPolicy": route["spec"].get("wildcardPolicy") or "None",
        "conditions": [{**admitted, "lastTransitionTime": since or stamp(now)}],
    }
    return {"ingress": [entry]}
