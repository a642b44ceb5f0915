"""Creates a Build from a BuildRequest, as `oc start-build` does.

In: a BuildConfig and a BuildRequest. Out: the created Build. Never: waits for the Build.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.kube.client import Cluster, SubresourceExtension, SubresourceRequest
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import BUILD_CONFIG
from argosy.sandbox.simulators.openshift.build_configs import build_build_manifest, is_paused

MAX_ATTEMPTS: Final = 20
MANUAL_TRIGGER_MESSAGE: Final = "Manually triggered"


async def instantiate(subresource_request: SubresourceRequest, cluster: Cluster) -> Manifest:
    config, request = subresource_request.live, subresource_request.body
    name, namespace = config["metadata"]["name"], config["metadata"]["namespace"]
    if ((request.get("metadata") or {}).get("name") or name) != name:
        raise UserError(f"the BuildRequest names a BuildConfig other than {name}; use the same name in both")
    if is_paused(config):
        raise UserError(f"can't instantiate from BuildConfig {namespace}/{name}: BuildConfig is paused")
    number = int((config.get("status") or {}).get("lastVersion") or 0)
    for _ in range(MAX_ATTEMPTS):
        number += 1
        try:
            build = await cluster.create(
                _build_requested_manifest(config, number, request), dry_run=subresource_request.dry_run
            )
        except Conflict as error:
            if error.reason != "AlreadyExists":
                raise
            continue  # another request took this number
        if not subresource_request.dry_run:
            await _update_last_version(config, number, cluster)
        return build
    raise ClusterError(f"too many builds of {name} start at the same time; try again", code=409, reason="Conflict")


def _build_requested_manifest(config: Manifest, number: int, request: Manifest) -> Manifest:
    build = build_build_manifest(config, number, MANUAL_TRIGGER_MESSAGE)
    metadata, spec = build["metadata"], build["spec"]
    labels = {**metadata["labels"], **((request.get("metadata") or {}).get("labels") or {})}
    requested_fields = {field: request[field] for field in ("revision", "triggeredBy") if request.get(field)}
    strategy = _add_env(spec.get("strategy") or {}, request.get("env") or [])
    return {
        **build,
        "metadata": {**metadata, "labels": labels},
        "spec": {**spec, **requested_fields, "strategy": strategy},
    }


def _add_env(strategy: Manifest, env: list[Any]) -> Manifest:
    """Append environment variables; k8s: of two variables with one name, the later one wins."""
    strategy_field = next((name for name in strategy if name.endswith("Strategy")), "")
    if not env or not strategy_field:
        return strategy
    return {
        **strategy,
        strategy_field: {
            **(strategy[strategy_field] or {}),
            "env": [*((strategy[strategy_field] or {}).get("env") or ()), *env],
        },
    }


async def _update_last_version(config: Manifest, number: int, cluster: Cluster) -> None:
    """Update lastVersion at once for the next reader; if that fails, the controller does it later."""
    try:
        await cluster.patch(key_of(config), {"status": {"lastVersion": number}}, subresource="status")
    except ClusterError as error:
        if error.code not in (404, 409):
            raise


SUBRESOURCE_EXTENSION: Final = SubresourceExtension(BUILD_CONFIG, "instantiate", instantiate)
