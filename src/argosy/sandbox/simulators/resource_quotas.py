"""Simulates the ResourceQuota controller: computes how much of a quota is used. The API server enforces the limit.

In: the key of a ResourceQuota. Out: its status. Never: rejects a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.pod_resources import NOTHING, Amounts, added
from argosy.kube.schema.resource_quota import is_about, shown, usage_of
from argosy.sandbox.simulators.constants import CLAIM, POD, QUOTA, SERVICE, is_dying, is_played_by_others, unmarked
from argosy.sandbox.simulators.requeue_interval import Pace
from argosy.sandbox.simulators.writes import keep_status, patient

WATCHED: Final = {POD: "pods", CLAIM: "persistentvolumeclaims", SERVICE: "services"}
LISTED: Final = ("configmaps", "secrets", "replicationcontrollers", "resourcequotas")
LOOK_AGAIN: Final = 5.0  # for kinds that are not watched


class Quotas:
    name = "simulated-quotas"

    def __init__(self) -> None:
        self._cache: Cache | None = None
        self._pace = Pace(0.2, 0.002)
        self.watches = (Watch(QUOTA, unmarked), *(Watch(kind, self._over) for kind in WATCHED))

    def _over(self, manifest: Manifest) -> Iterable[ResourceKey]:
        if self._cache is not None:
            for each in self._cache.list(QUOTA, namespace=manifest["metadata"]["namespace"]):
                yield key_of(each)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._cache = context.cache
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            self._pace.forget(key)
            return None
        if (pause := self._pace.wait(key, context.clock)) > 0:
            return Requeue(pause)
        hard = (live.get("spec") or {}).get("hard") or {}
        others = [each for each in hard if each in LISTED or each.startswith("count/")]
        total = added(_watched(live, context.cache), await _listed(live, others, context))
        used = {name: shown(total.get(name, NOTHING), much) for name, much in hard.items()}
        status: dict[str, Any] = {"hard": hard, "used": used}
        if await keep_status(live, _replacing(live, status), context.cluster):
            self._pace.looked(key, len(context.cache.list(POD, namespace=key.namespace)), context.clock)
        return Requeue(LOOK_AGAIN) if others else None


def _watched(live: Manifest, cache: Cache) -> Amounts:
    total: Amounts = {}
    for kind, plural in WATCHED.items():
        for each in cache.list(kind, namespace=live["metadata"]["namespace"]):
            if is_about(live, plural, each):
                total = added(total, usage_of("", plural, each))
    return total


async def _listed(live: Manifest, names: Iterable[str], context: Context) -> Amounts:
    """Count objects of kinds that are not watched."""
    total: Amounts = {}
    kinds: dict[tuple[str, str], GroupKind] = {}
    for name in names:
        plural, _, group = name.removeprefix("count/").partition(".")
        if not group and plural in WATCHED.values():
            continue
        kinds = kinds or {(it.group, about.plural): it for it, about in (await context.cluster.kinds()).items()}
        if kind := kinds.get((group, plural)):
            found = await context.cluster.list(kind, namespace=live["metadata"]["namespace"], metadata_only=True)
            total[name] = NOTHING + len(found.items)
    return total


def _replacing(live: Manifest, status: dict[str, Any]) -> dict[str, Any]:
    """Add null values for names that the quota no longer has, because a merge patch keeps them otherwise."""
    known = live.get("status") or {}
    return {field: {**dict.fromkeys(known.get(field) or {}), **wanted} for field, wanted in status.items()}
