"""Finds the control namespace: where settings and Applications of an installation are.

In: a cluster. Out: a namespace. Never: creates a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from argosy.errors import ClusterError, Forbidden
from argosy.gitops.application.argosy_component_labels import (
    CONTROL_NAMESPACE_LABEL,
    DEFAULT_INSTALL_NAMESPACE,
    is_control_namespace,
)
from argosy.kube.client import ClusterReader
from argosy.kube.controller.sharding.member_lease_format import MEMBER_SELECTOR
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import ARGOCD, LEASE, NAMESPACE

DEFAULT_NAMESPACE: Final = "argocd"
LEADER_LEASE_NAME: Final = "argosy-application-controller"  # Lease of the engine's leader


async def find_control_namespace(cluster: ClusterReader, candidates: Sequence[str] = ()) -> str:
    """Return the namespace where argosy is installed, else the one of an ArgoCD resource, else `argocd`.

    `candidates`: namespaces to try if listing in all namespaces is forbidden.
    """
    candidates = list(dict.fromkeys(candidates))
    labelled = await _list_if_permitted(cluster, NAMESPACE, labels=f"{CONTROL_NAMESPACE_LABEL}=true")
    if labelled is None:
        labelled = [
            namespace
            for name in (*candidates, DEFAULT_INSTALL_NAMESPACE)
            if (namespace := await _get_if_control_namespace(cluster, name))
        ]
    if labelled:  # argosy's engine reads settings there, even if an ArgoCD resource is elsewhere
        return await _choose_namespace_with_engine(
            cluster, [str(namespace["metadata"]["name"]) for namespace in labelled]
        )
    for candidate in ("", *candidates):
        argocds = await _list_if_permitted(cluster, ARGOCD, namespace=candidate)
        if argocds:
            return str(argocds[0]["metadata"]["namespace"])
        if argocds is not None:
            break
    return DEFAULT_NAMESPACE


async def _list_if_permitted(
    cluster: ClusterReader, kind: GroupKind, *, namespace: str = "", labels: str = ""
) -> Sequence[Manifest] | None:
    """List objects: empty if the kind is not served, None if forbidden; raises ClusterError for other errors."""
    try:
        return (await cluster.list(kind, namespace=namespace, labels=labels)).items
    except ClusterError as error:
        if error.code == 404:
            return ()
        if error.code == 403:
            return None
        message = f"cannot find the control namespace: {error.message}"
        raise ClusterError(message, code=error.code, key=error.key, reason=error.reason) from error


async def _choose_namespace_with_engine(cluster: ClusterReader, names: Sequence[str]) -> str:
    """Return the first namespace with a running engine: an uninstalled one keeps its settings and label."""
    for name in names if len(names) > 1 else ():
        with suppress(Forbidden):
            if await has_engine(cluster, name):
                return name
    return names[0]


async def _get_if_control_namespace(cluster: ClusterReader, name: str) -> Manifest | None:
    """k8s: users who may not list namespaces can often get the namespaces they have roles in."""
    try:
        manifest = await cluster.get(ResourceKey(*NAMESPACE, "", name))
    except Forbidden:
        return None
    return manifest if manifest and is_control_namespace(manifest) else None


async def has_engine(cluster: ClusterReader, namespace: str) -> bool:
    """True if an argosy engine holds the leader Lease or a member Lease there."""
    lease = await cluster.get(ResourceKey(*LEASE, namespace, LEADER_LEASE_NAME))
    return bool(keep_held_leases((lease,))) or bool(await list_member_leases(cluster, namespace))


async def list_member_leases(cluster: ClusterReader, namespace: str) -> list[Manifest]:
    """List the held Leases of sharded engines; empty if they cannot be read."""
    try:
        return keep_held_leases((await cluster.list(LEASE, namespace=namespace, labels=MEMBER_SELECTOR)).items)
    except ClusterError:
        return []


def keep_held_leases(leases: Iterable[Manifest | None]) -> list[Manifest]:
    """Keep Leases with a holder: an engine that stops releases its Lease and leaves it there."""
    return [lease for lease in leases if lease and (lease.get("spec") or {}).get("holderIdentity")]
