"""Determines the namespaces whose Applications an Argo CD delivers, besides its own.

In: a cluster, workloads labelled as application controllers. Out: DeliveryEngines. Never: changes anything; trusts a
controller for a namespace whose Applications it may not write, because any Pod can have these labels and flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from argosy.errors import ClusterError, Forbidden
from argosy.gitops.policy.delivery_engine import (
    PARAMETER,
    PARAMETERS,
    Engines,
    account,
    claimed,
    engines_of,
    fits,
    patterns,
    running,
)
from argosy.kube.client import ClusterReader
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

CONFIG_MAP, NAMESPACE = GroupKind("", "ConfigMap"), GroupKind("", "Namespace")
REVIEW: Final = "authorization.k8s.io/v1"
MOST: Final = 200  # namespaces that are checked for write access one by one


class Asked(ClusterReader, Protocol):
    """A reader that can also create access reviews, which change nothing."""

    async def create(self, manifest: Manifest) -> Manifest: ...


def parameters_key(namespace: str) -> ResourceKey:
    return ResourceKey(*CONFIG_MAP, namespace, PARAMETERS)


def claims(found: Manifest, read: Callable[[ResourceKey], Manifest | None]) -> tuple[str, ...]:
    """Return the namespaces from its own configuration, else from the ConfigMap in its namespace."""
    own = claimed(found)
    if own is not None:
        return own
    return _said(read(parameters_key(found["metadata"].get("namespace") or "")))


def _said(settings: Manifest | None) -> tuple[str, ...]:
    return patterns(((settings or {}).get("data") or {}).get(PARAMETER))


async def reached(cluster: Asked, found: Iterable[Manifest]) -> Engines:
    found = tuple(found)
    reach = {key_of(each): await _reach(cluster, each) for each in running(found)}
    return engines_of(found, lambda each: reach.get(key_of(each), ()))


async def _reach(cluster: Asked, found: Manifest) -> tuple[str, ...]:
    namespace = str(found["metadata"].get("namespace") or "")
    wide = claimed(found)
    if wide is None:
        wide = _said(await _settings(cluster, namespace))
    wide = tuple(each for each in wide if each != namespace)
    if not wide or await _may_write(cluster, namespace, account(found), ""):
        return wide
    places = [each for each in await _namespaces(cluster, wide) if each != namespace][:MOST]
    return tuple([each for each in places if await _may_write(cluster, namespace, account(found), each)])


async def _settings(cluster: Asked, namespace: str) -> Manifest | None:
    """argo: without the ConfigMap, or if it may not be read, only its own namespace counts."""
    try:
        return await cluster.get(parameters_key(namespace))
    except Forbidden:
        return None


async def _namespaces(cluster: Asked, wide: Iterable[str]) -> list[str]:
    try:
        there = await cluster.list(NAMESPACE, metadata_only=True)
    except Forbidden:
        return list(wide)  # the patterns that are plain names; for others no access is found
    names = [str(each["metadata"]["name"]) for each in there.items]
    return [each for each in names if any(fits(pattern, each) for pattern in wide)]


async def _may_write(cluster: Asked, namespace: str, name: str, where: str) -> bool:
    """True if the ServiceAccount may write Applications there, or everywhere; also if the review is forbidden."""
    wish = {"verb": "patch", "group": "argoproj.io", "resource": "applications"}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {
        "apiVersion": REVIEW, "kind": "SubjectAccessReview", "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{name}",
            "groups": groups,
            "resourceAttributes": {**wish, **({"namespace": where} if where else {})},
        },
    }  # fmt: skip
    try:
        answer = await cluster.create(review)
    except ClusterError as error:
        if error.code in (403, 404, 405):
            return True
        raise
    return bool((answer.get("status") or {}).get("allowed"))


__all__ = ["Asked", "claims", "parameters_key", "reached"]
