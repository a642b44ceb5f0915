"""Applications after a change of settings: which must look again, whether they did, how they fare.

In: a cluster, a namespace, kinds. Out: names and a table. Never: waits for an application that nobody refreshes longer
than it was told.
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
ENVIRONMENTS: Final = ("dev", "staging", "production", "prod")  # in the order in which a change goes through them
HEADINGS: Final = ("NAME", "SYNC STATUS", "HEALTH STATUS")


@dataclass(frozen=True)
class Refreshed:
    asked: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()  # deleted meanwhile
    forbidden: tuple[str, ...] = ()


async def applications(cluster: ClusterReader, namespace: str) -> Sequence[Manifest]:
    """Nothing where the kind is not served."""
    try:
        return (await cluster.list(APPLICATION, namespace=namespace)).items
    except ClusterError as error:
        if error.code == 404:
            return ()
        raise


async def applications_to_show(cluster: ClusterReader, namespace: str) -> Sequence[Manifest]:
    """In the order that people read them in; nothing where they may not be seen: what was done before stays done."""
    try:
        return sorted(await applications(cluster, namespace), key=_place)
    except Forbidden:
        return ()


def _place(application: Manifest) -> tuple[str, int, str]:
    """By product, then by environment, as the end of the name says it."""
    name = str(application["metadata"]["name"])
    product, _, end = name.rpartition("-")
    return (product, ENVIRONMENTS.index(end), name) if product and end in ENVIRONMENTS else (name, -1, name)


def table_of(found: Sequence[Manifest]) -> Table:
    return Table(HEADINGS, [[each["metadata"]["name"], *statuses(each)] for each in found])


def statuses(application: Manifest) -> tuple[str, str]:
    """Sync and health; a dash for what is not known yet."""
    status = application.get("status") or {}
    return (status.get("sync") or {}).get("status") or "-", (status.get("health") or {}).get("status") or "-"


def is_status_of_its_sources(application: Manifest) -> bool:
    """Whether what is told was compared with the sources that it names now; True where nothing is told yet."""
    compared = ((application.get("status") or {}).get("sync") or {}).get("comparedTo")
    return not compared or _sources(compared) == _sources(application.get("spec") or {})


def _sources(holder: Manifest) -> list[tuple[str, ...]]:
    listed = holder.get("sources") or [holder.get("source") or {}]
    fields = ("repoURL", "path", "chart", "targetRevision")
    return [tuple(str(each.get(name) or "") for name in fields) for each in listed]


def affected(found: Sequence[Manifest], kinds: Collection[GroupKind]) -> list[Manifest]:
    """Those that have one of these kinds, and those of which nobody knows yet what they have."""
    return [each for each in found if not (resources := _resources(each)) or resources & set(kinds)]


def _resources(application: Manifest) -> set[GroupKind]:
    listed = (application.get("status") or {}).get("resources") or ()
    return {GroupKind(each.get("group") or "", each.get("kind") or "") for each in listed}


async def refresh(cluster: Cluster, found: Sequence[Manifest]) -> Refreshed:
    """Ask Argo CD to read and judge each of them anew."""
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
    """Whether Argo CD took up every refresh in time: it removes the annotation when it does."""

    def taken_up(found: Named) -> bool:
        return not any(name in found and annotation(found[name], REFRESH) for name in names)

    return not names or await until_all(cluster, APPLICATION, namespace, taken_up, seconds)
