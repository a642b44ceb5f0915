"""Determines the namespaces whose Applications an Argo CD delivers, besides its own.

In: a cluster, workloads labelled as application controllers. Out: DeliveryEngines. Never: changes anything; trusts a
controller for a namespace whose Applications it may not write, because any Pod can have these labels and flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from argosy.errors import ClusterError, Forbidden
from argosy.gitops.policy.application_delivery_engine_detection import (
    NAMESPACES_PARAMETER,
    PARAMETERS_CONFIG_MAP,
    DeliveryEngines,
    build_engines,
    list_running_controllers,
    matches_namespace,
    read_configured_namespaces,
    read_service_account,
    split_patterns,
)
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import AUTHORIZATION_API_VERSION, CONFIG_MAP, NAMESPACE

MAX_CHECKED_NAMESPACES: Final = 200  # namespaces that are checked for write access one by one


class AccessReviewReader(ClusterReader, Protocol):
    """A reader that can also create access reviews, which change nothing."""

    async def create(self, manifest: Manifest) -> Manifest: ...


def build_parameters_key(namespace: str) -> ResourceKey:
    return ResourceKey(*CONFIG_MAP, namespace, PARAMETERS_CONFIG_MAP)


def read_namespaces(workload: Manifest, find_object: Callable[[ResourceKey], Manifest | None]) -> tuple[str, ...]:
    """Return the namespaces from its own configuration, else from the ConfigMap in its namespace."""
    configured = read_configured_namespaces(workload)
    if configured is not None:
        return configured
    return _read_namespaces_parameter(find_object(build_parameters_key(workload["metadata"].get("namespace") or "")))


def _read_namespaces_parameter(config_map: Manifest | None) -> tuple[str, ...]:
    return split_patterns(((config_map or {}).get("data") or {}).get(NAMESPACES_PARAMETER))


async def resolve_engines(cluster: AccessReviewReader, workloads: Iterable[Manifest]) -> DeliveryEngines:
    workloads = tuple(workloads)
    scopes = {
        key_of(workload): await _resolve_watched_namespaces(cluster, workload)
        for workload in list_running_controllers(workloads)
    }
    return build_engines(workloads, lambda workload: scopes.get(key_of(workload), ()))


async def _resolve_watched_namespaces(cluster: AccessReviewReader, workload: Manifest) -> tuple[str, ...]:
    namespace = str(workload["metadata"].get("namespace") or "")
    claimed_patterns = read_configured_namespaces(workload)
    if claimed_patterns is None:
        claimed_patterns = _read_namespaces_parameter(await _fetch_parameters(cluster, namespace))
    claimed_patterns = tuple(name for name in claimed_patterns if name != namespace)
    if not claimed_patterns or await _may_write_applications(cluster, namespace, read_service_account(workload), ""):
        return claimed_patterns
    candidates = [name for name in await _list_matching_namespaces(cluster, claimed_patterns) if name != namespace][
        :MAX_CHECKED_NAMESPACES
    ]
    return tuple(
        [
            name
            for name in candidates
            if await _may_write_applications(cluster, namespace, read_service_account(workload), name)
        ]
    )


async def _fetch_parameters(cluster: AccessReviewReader, namespace: str) -> Manifest | None:
    """argo: without the ConfigMap, or if it may not be read, only its own namespace counts."""
    try:
        return await cluster.get(build_parameters_key(namespace))
    except Forbidden:
        return None


async def _list_matching_namespaces(cluster: AccessReviewReader, name_patterns: Iterable[str]) -> list[str]:
    try:
        listing = await cluster.list(NAMESPACE, metadata_only=True)
    except Forbidden:
        return list(name_patterns)  # the patterns that are plain names; for others no access is found
    names = [str(item["metadata"]["name"]) for item in listing.items]
    return [item for item in names if any(matches_namespace(pattern, item) for pattern in name_patterns)]


async def _may_write_applications(
    cluster: AccessReviewReader, namespace: str, name: str, target_namespace: str
) -> bool:
    """True if the ServiceAccount may write Applications there, or everywhere; also if the review is forbidden."""
    attributes = {"verb": "patch", "group": "argoproj.io", "resource": "applications"}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {
        "apiVersion": AUTHORIZATION_API_VERSION, "kind": "SubjectAccessReview", "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{name}",
            "groups": groups,
            "resourceAttributes": {**attributes, **({"namespace": target_namespace} if target_namespace else {})},
        },
    }  # fmt: skip
    try:
        reviewed = await cluster.create(review)
    except ClusterError as error:
        if error.code in (403, 404, 405):
            return True
        raise
    return bool((reviewed.get("status") or {}).get("allowed"))


__all__ = ["AccessReviewReader", "build_parameters_key", "read_namespaces", "resolve_engines"]
