"""Refreshes Applications after a change of settings, waits for it, and shows their state.

In: a cluster, a namespace, kinds. Out: names and a table. Never: waits longer than the timeout.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import ClusterError, Forbidden
from argosy.gitops.coexistence.multi_step_command_output import TextTable
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.controller.object_condition_wait import ManifestsByName, wait_for_objects
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

REFRESH: Final = "argocd.argoproj.io/refresh"
ENVIRONMENT_ORDER: Final = ("dev", "staging", "production", "prod")  # in promotion order
HEADINGS: Final = ("NAME", "SYNC STATUS", "HEALTH STATUS")


@dataclass(frozen=True)
class RefreshResult:
    requested: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()  # deleted in the meantime
    forbidden: tuple[str, ...] = ()


async def list_applications(cluster: ClusterReader, namespace: str) -> Sequence[Manifest]:
    """List Applications; empty if the kind is not served."""
    try:
        return (await cluster.list(APPLICATION, namespace=namespace)).items
    except ClusterError as error:
        if error.code == 404:
            return ()
        raise


async def list_applications_to_show(cluster: ClusterReader, namespace: str) -> Sequence[Manifest]:
    """List Applications in display order; empty if they may not be read, because earlier steps are already done."""
    try:
        return sorted(await list_applications(cluster, namespace), key=_display_order)
    except Forbidden:
        return ()


def _display_order(application: Manifest) -> tuple[str, int, str]:
    """Sort by product, then by environment, from the end of the name."""
    name = str(application["metadata"]["name"])
    product, _, suffix = name.rpartition("-")
    return (
        (product, ENVIRONMENT_ORDER.index(suffix), name)
        if product and suffix in ENVIRONMENT_ORDER
        else (name, -1, name)
    )


def build_status_table(apps: Sequence[Manifest]) -> TextTable:
    return TextTable(HEADINGS, [[app["metadata"]["name"], *read_statuses(app)] for app in apps])


def read_statuses(application: Manifest) -> tuple[str, str]:
    """Return sync and health status; a dash if unknown."""
    status = application.get("status") or {}
    return (status.get("sync") or {}).get("status") or "-", (status.get("health") or {}).get("status") or "-"


def is_status_current(application: Manifest) -> bool:
    """True if the status was compared with the current sources, or if there is no comparison yet."""
    compared = ((application.get("status") or {}).get("sync") or {}).get("comparedTo")
    return not compared or _read_sources(compared) == _read_sources(application.get("spec") or {})


def _read_sources(holder: Manifest) -> list[tuple[str, ...]]:
    sources = holder.get("sources") or [holder.get("source") or {}]
    fields = ("repoURL", "path", "chart", "targetRevision")
    return [tuple(str(source.get(name) or "") for name in fields) for source in sources]


def select_affected(apps: Sequence[Manifest], kinds: Collection[GroupKind]) -> list[Manifest]:
    """List Applications that have one of these kinds, and those without listed resources."""
    return [app for app in apps if not (resources := _read_resource_kinds(app)) or resources & set(kinds)]


def _read_resource_kinds(application: Manifest) -> set[GroupKind]:
    resources = (application.get("status") or {}).get("resources") or ()
    return {GroupKind(resource.get("group") or "", resource.get("kind") or "") for resource in resources}


async def request_refreshes(cluster: Cluster, apps: Sequence[Manifest]) -> RefreshResult:
    """Request a hard refresh of each Application from Argo CD."""
    requested, gone, forbidden = [], [], []
    for app in apps:
        name = app["metadata"]["name"]
        key = ResourceKey(*APPLICATION, app["metadata"]["namespace"], name)
        try:
            await cluster.patch(key, {"metadata": {"annotations": {REFRESH: "hard"}}})
            requested.append(name)
        except Forbidden:
            forbidden.append(name)
        except ClusterError as error:
            if error.code != 404:
                raise
            gone.append(name)
    return RefreshResult(tuple(requested), tuple(gone), tuple(forbidden))


async def wait_until_refreshed(
    cluster: ClusterReader, namespace: str, names: Sequence[str], timeout_seconds: float
) -> bool:
    """Return True if Argo CD took up every refresh in time: it then removes the annotation."""

    def is_refreshed(apps_by_name: ManifestsByName) -> bool:
        return not any(name in apps_by_name and get_annotation(apps_by_name[name], REFRESH) for name in names)

    return not names or await wait_for_objects(cluster, APPLICATION, namespace, is_refreshed, timeout_seconds)
