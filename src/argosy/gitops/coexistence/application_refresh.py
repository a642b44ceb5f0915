"""Refreshes Applications after a change of settings, waits for it, and shows their state.

In: a cluster, a namespace, kinds. Out: names and a table. Never: waits longer than the timeout.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import ClusterError, Forbidden
from argosy.gitops.coexistence.argocd_settings import APPLICATION
from argosy.gitops.coexistence.step_messages import Table
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.controller.wait import Named, until_all
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, annotation

REFRESH: Final = "argocd.argoproj.io/refresh"
ENVIRONMENTS: Final = ("dev", "staging", "production", "prod")  # in promotion order
HEADINGS: Final = ("NAME", "SYNC STATUS", "HEALTH STATUS")


@dataclass(frozen=True)
class Refreshed:
    asked: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()  # deleted in the meantime
    forbidden: tuple[str, ...] = ()


async def applications(cluster: ClusterReader, namespace: str) -> Sequence[Manifest]:
    """List Applications; empty if the kind is not served."""
    try:
        return (await cluster.list(APPLICATION, namespace=namespace)).items
    except ClusterError as error:
        if error.code == 404:
            return ()
        raise


async def applications_to_show(cluster: ClusterReader, namespace: str) -> Sequence[Manifest]:
    """List Applications in display order; empty if they may not be read, because earlier steps are already done."""
    try:
        return sorted(await applications(cluster, namespace), key=_place)
    except Forbidden:
        return ()


def _place(application: Manifest) -> tuple[str, int, str]:
    """Sort by product, then by environment, from the end of the name."""
    name = str(application["metadata"]["name"])
    product, _, end = name.rpartition("-")
    return (product, ENVIRONMENTS.index(end), name) if product and end in ENVIRONMENTS else (name, -1, name)


def table_of(found: Sequence[Manifest]) -> Table:
    return Table(HEADINGS, [[each["metadata"]["name"], *statuses(each)] for each in found])


def statuses(application: Manifest) -> tuple[str, str]:
    """Return sync and health status; a dash if unknown."""
    status = application.get("status") or {}
    return (status.get("sync") or {}).get("status") or "-", (status.get("health") or {}).get("status") or "-"


def is_status_of_its_sources(application: Manifest) -> bool:
    """True if the status was compared with the current sources, or if there is no comparison yet."""
    compared = ((application.get("status") or {}).get("sync") or {}).get("comparedTo")
    return not compared or _sources(compared) == _sources(application.get("spec") or {})


def _sources(holder: Manifest) -> list[tuple[str, ...]]:
    listed = holder.get("sources") or [holder.get("source") or {}]
    fields = ("repoURL", "path", "chart", "targetRevision")
    return [tuple(str(each.get(name) or "") for name in fields) for each in listed]


def affected(found: Sequence[Manifest], kinds: Collection[GroupKind]) -> list[Manifest]:
    """List Applications that have one of these kinds, and those without listed resources."""
    return [each for each in found if not (resources := _resources(each)) or resources & set(kinds)]


def _resources(application: Manifest) -> set[GroupKind]:
    listed = (application.get("status") or {}).get("resources") or ()
    return {GroupKind(each.get("group") or "", each.get("kind") or "") for each in listed}


async def refresh(cluster: Cluster, found: Sequence[Manifest]) -> Refreshed:
    """Request a hard refresh of each Application from Argo CD."""
    asked, gone, forbidden = [], [], []
    for each in found:
        name = each["metadata"]["name"]
        key = ResourceKey(*APPLICATION, each["metadata"]["namespace"], name)
        try:
            await cluster.patch(key, {"metadata": {"annotations": {REFRESH: "hard"}}})
            asked.append(name)
        except Forbidden:
            forbidden.append(name)
        except ClusterError as error:
            if error.code != 404:
                raise
            gone.append(name)
    return Refreshed(tuple(asked), tuple(gone), tuple(forbidden))


async def settle(cluster: ClusterReader, namespace: str, names: Sequence[str], seconds: float) -> bool:
    """Return True if Argo CD took up every refresh in time: it then removes the annotation."""

    def taken_up(found: Named) -> bool:
        return not any(name in found and annotation(found[name], REFRESH) for name in names)

    return not names or await until_all(cluster, APPLICATION, namespace, taken_up, seconds)
