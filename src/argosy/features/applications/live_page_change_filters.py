"""Live parts of the Application pages, and the changes that update them.

In: changed objects, the caches of the list. Out: live pages. Never: renders for a change of an
unrelated object if a cheap check can rule it out.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from argosy.features.applications.diff.page import render_diff_head_parts
from argosy.features.applications.events.page import render_events_parts
from argosy.features.applications.list.page import ListCaches, render_list_parts
from argosy.features.applications.objects.page import render_resource_status_parts
from argosy.features.applications.page_parts.shared_page_values import render_head_parts
from argosy.features.applications.rollback.page import render_history_parts
from argosy.features.applications.sync.operation_page import render_operation_parts
from argosy.features.applications.tree.object_table_page import render_resources_parts
from argosy.features.applications.tree.page import render_tree_parts
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.web.live_updates.live_page_definitions import Fragments, LivePage
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.route import FilteredList, RequiresPermission

LISTED_KINDS = ("Application", "AppProject")


def matches_every_change(before: Manifest | None, after: Manifest | None) -> bool:
    return True


def affects_list(before: Manifest | None, after: Manifest | None) -> bool:
    return _kind(before, after) in LISTED_KINDS


def is_application_change(before: Manifest | None, after: Manifest | None) -> bool:
    return bool(_kind(before, after) == "Application")


def is_own_change(request: RequestContext, before: Manifest | None, after: Manifest | None) -> bool:
    """True if the changed object is the Application of the page."""
    app: Application = request.subject
    metadata = _metadata(before, after)
    return bool(metadata.get("namespace") == app.namespace and metadata.get("name") == app.name)


def affects_application(request: RequestContext, before: Manifest | None, after: Manifest | None) -> bool:
    """True for the Application, for objects in its namespaces, and for cluster-scoped objects that it manages."""
    if _kind(before, after) == "Application":
        return is_own_change(request, before, after)
    metadata = _metadata(before, after)
    namespaces, cluster_scoped_keys = _list_namespaces_and_keys(request.subject, _resource_version(request.subject))
    if namespace := metadata.get("namespace"):
        return namespace in namespaces
    return bool(cluster_scoped_keys) and key_of(after or before or {}) in cluster_scoped_keys


def _kind(before: Manifest | None, after: Manifest | None) -> Any:
    return (after or before or {}).get("kind")


def _metadata(before: Manifest | None, after: Manifest | None) -> Manifest:
    metadata: Manifest = (after or before or {}).get("metadata") or {}
    return metadata


def _resource_version(app: Application) -> str:
    return str((app.wire.get("metadata") or {}).get("resourceVersion") or "")


class _VersionedApplication:
    """Cache key of an Application by its resourceVersion, because every change in the cluster looks up its scope."""

    def __init__(self, app: Application, version: str) -> None:
        self.app, self._key = app, (app.namespace, app.name, version)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _VersionedApplication) and other._key == self._key


ObjectScope = tuple[frozenset[str], frozenset[ResourceKey]]  # namespaces; keys of cluster-scoped objects


def _list_namespaces_and_keys(app: Application, version: str) -> ObjectScope:
    return _list_namespaces_and_keys_cached(_VersionedApplication(app, version))


@lru_cache(maxsize=256)
def _list_namespaces_and_keys_cached(versioned: _VersionedApplication) -> ObjectScope:
    app = versioned.app
    keys = [row.key for row in status_summary.list_rows(app)]
    namespaces = {key.namespace for key in keys} | {app.destination.namespace, app.namespace}
    return frozenset(namespaces - {""}), frozenset(key for key in keys if not key.namespace)


READ_PERMISSION = RequiresPermission("applications", "get", resolve_application)
APPLICATION_PATH = "/apps/{ns}/{name}"


def _build_object_live_page(tab: str, parts: Fragments) -> LivePage:
    return LivePage(f"{APPLICATION_PATH}{tab}", READ_PERMISSION, parts, matches_every_change, affects_application)


def _build_application_live_page(tab: str, parts: Fragments) -> LivePage:
    return LivePage(f"{APPLICATION_PATH}{tab}", READ_PERMISSION, parts, is_application_change, is_own_change)


def build_live_pages(list_caches: ListCaches) -> tuple[LivePage, ...]:
    return (
        LivePage("/apps", FilteredList("applications", "get"), partial(render_list_parts, list_caches), affects_list),
        _build_object_live_page("", render_tree_parts),
        _build_object_live_page("/tree", render_tree_parts),
        _build_object_live_page("/resources", render_resources_parts),
        _build_object_live_page("/operation", render_operation_parts),
        _build_object_live_page("/events", render_events_parts),
        _build_object_live_page("/r/{group}/{kind}/{rns}/{rname}", render_resource_status_parts),
        _build_application_live_page("/diff", render_diff_head_parts),
        _build_application_live_page("/history", render_history_parts),
        _build_application_live_page("/logs", render_head_parts),
        _build_application_live_page("/parameters", render_head_parts),
        _build_application_live_page("/manifest", render_head_parts),
        _build_application_live_page("/settings", render_head_parts),
    )
