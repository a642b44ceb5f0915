"""Creates a Build from a BuildRequest, as `oc start-build` does.

In: a BuildConfig and a BuildRequest. Out: the created Build. Never: waits for the Build.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.kube.client import Asked, Cluster, Performer
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.openshift.build_configs import build_from, is_paused
from argosy.sandbox.simulators.openshift.constants import BUILD_CONFIG

MOST_TRIES: Final = 20
MANUAL: Final = "Manually triggered"


async def instantiate(asked: Asked, cluster: Cluster) -> Manifest:
    live, request = asked.live, asked.sent
    name, place = live["metadata"]["name"], live["metadata"]["namespace"]
    if ((request.get("metadata") or {}).get("name") or name) != name:
        raise UserError(f"the BuildRequest names a BuildConfig other than {name}; use the same name in both")
    if is_paused(live):
        raise UserError(f"can't instantiate from BuildConfig {place}/{name}: BuildConfig is paused")
    number = int((live.get("status") or {}).get("lastVersion") or 0)
    for _ in range(MOST_TRIES):
        number += 1
        try:
            made = await cluster.create(_build(live, number, request), dry_run=asked.dry_run)
        except Conflict as error:
            if error.reason != "AlreadyExists":
                raise
            continue  # another request took this number
        if not asked.dry_run:
            await _count(live, number, cluster)
        return made
    raise ClusterError(f"too many builds of {name} start at the same time; try again", code=409, reason="Conflict")


def _build(live: Manifest, number: int, request: Manifest) -> Manifest:
    made = build_from(live, number, MANUAL)
    metadata, spec = made["metadata"], made["spec"]
    labels = {**metadata["labels"], **((request.get("metadata") or {}).get("labels") or {})}
    wished = {field: request[field] for field in ("revision", "triggeredBy") if request.get(field)}
    strategy = _with_env(spec.get("strategy") or {}, request.get("env") or [])
    return {**made, "metadata": {**metadata, "labels": labels}, "spec": {**spec, **wished, "strategy": strategy}}


def _with_env(strategy: Manifest, env: list[Any]) -> Manifest:
    """Append environment variables; k8s: of two variables with one name, the later one wins."""
    part = next((name for name in strategy if name.endswith("Strategy")), "")
    if not env or not part:
        return strategy
    return {**strategy, part: {**(strategy[part] or {}), "env": [*((strategy[part] or {}).get("env") or ()), *env]}}


async def _count(live: Manifest, number: int, cluster: Cluster) -> None:
    """Update lastVersion at once for the next reader; if that fails, the controller does it later."""
    try:
        await cluster.patch(key_of(live), {"status": {"lastVersion": number}}, subresource="status")
    except ClusterError as error:
        if error.code not in (404, 409):
            raise


PERFORMER: Final = Performer(BUILD_CONFIG, "instantiate", instantiate)
