"""Quota admission: refuses an object that would exceed a ResourceQuota.

In: an object before it is stored, and every staged write. Out: Forbidden, or nothing. Never: writes; a simulated
controller keeps the status of quotas.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from argosy.kube.objects import Manifest
from argosy.kube.schema.pod_resources import NOTHING, Amounts
from argosy.kube.schema.resource_quota import is_about, refusal, usage_of
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Store

Place = tuple[str, str]  # a bucket and a namespace
BUCKET = "resourcequotas"


class Quotas:
    def __init__(self, store: Store) -> None:
        self._store = store
        # only for namespaces with a quota; loaded on first use
        self._known: dict[Place, dict[str, tuple[Manifest, Amounts]]] = {}
        store.on_refusal(self._known.clear)

    def check(self, served: Served, manifest: Manifest) -> None:
        resource, metadata = served.resource, manifest["metadata"]
        if not resource.namespaced:
            return
        place = (served.bucket, metadata["namespace"])
        entries = list(self._store.list(BUCKET, metadata["namespace"]))
        if not entries:
            self._known.pop(place, None)
            return
        asked = usage_of(resource.group, resource.plural, manifest)
        for quota in (orjson.loads(entry.body) for entry in entries):
            # k8s: only limits that the quota controller has copied into the status count
            taken_over = (quota.get("status") or {}).get("hard") or {}
            quota = {**quota, "spec": {**(quota.get("spec") or {}), "hard": taken_over}}
            names = asked.keys() & taken_over.keys()
            if names and is_about(quota, resource.plural, manifest):
                used = self._used(served, place, quota, names)
                if why := refusal(quota, manifest, asked, used):
                    raise status_errors.forbidden(resource, metadata["name"], why)

    def stored(self, served: Served, manifest: Manifest, *, gone: bool) -> None:
        """Must be called for every write when it is staged."""
        known = self._known.get((served.bucket, manifest["metadata"].get("namespace", "")))
        if known is not None:
            known.pop(manifest["metadata"]["name"], None)
            if not gone:
                known[manifest["metadata"]["name"]] = _counted(served, manifest)

    def _used(self, served: Served, place: Place, quota: Manifest, names: Iterable[str]) -> Amounts:
        if place not in self._known:
            read = (orjson.loads(entry.body) for entry in self._store.list(*place))
            self._known[place] = {each["metadata"]["name"]: _counted(served, each) for each in read}
        total: Amounts = dict.fromkeys(names, NOTHING)
        for manifest, usage in self._known[place].values():
            if is_about(quota, served.resource.plural, manifest):
                for name in total:
                    total[name] += usage.get(name, NOTHING)
        return total


def _counted(served: Served, manifest: Manifest) -> tuple[Manifest, Amounts]:
    return manifest, usage_of(served.resource.group, served.resource.plural, manifest)
