"""Live parts of the Application pages, and the changes that update them.

In: changed objects. Out: LIVE. Never: renders for a change of an unrelated object if a cheap check can rule it out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from argosy.features.applications.diff.page import diff_parts
from argosy.features.applications.events.page import events_parts
from argosy.features.applications.list.page import list_parts
from argosy.features.applications.objects.page import resource_parts
from argosy.features.applications.page_parts.frame import head_parts
from argosy.features.applications.rollback.page import history_parts
from argosy.features.applications.sync.operation_page import operation_parts
from argosy.features.applications.tree.page import tree_parts
from argosy.features.applications.tree.resources_page import resources_parts
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.web.live_updates.live_parts import Fragments, Live
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.route import Filtered, May

LISTED = ("Application", "AppProject")


def anything(before: Manifest | None, after: Manifest | None) -> bool:
    return True


def of_lists(before: Manifest | None, after: Manifest | None) -> bool:
    return _kind(before, after) in LISTED


def of_applications(before: Manifest | None, after: Manifest | None) -> bool:
    return bool(_kind(before, after) == "Application")


def its_own(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """True if the changed object is the Application of the page."""
    app: Application = asked.subject
    metadata = _metadata(before, after)
    return bool(metadata.get("namespace") == app.namespace and metadata.get("name") == app.name)


def near(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """True for the Application, for objects in its namespaces, and for cluster-scoped objects that it manages."""
    if _kind(before, after) == "Application":
        return its_own(asked, before, after)
    metadata = _metadata(before, after)
    namespaces, others = _places(asked.subject, _version(asked.subject))
    if namespace := metadata.get("namespace"):
        return namespace in namespaces
    return bool(others) and key_of(after or before or {}) in others


def _kind(before: Manifest | None, after: Manifest | None) -> Any:
    return (after or before or {}).get("kind")


def _metadata(before: Manifest | None, after: Manifest | None) -> Manifest:
    found: Manifest = (after or before or {}).get("metadata") or {}
    return found


def _version(app: Application) -> str:
    return str((app.wire.get("metadata") or {}).get("resourceVersion") or "")


class _Known:
    """Cache key of an Application by its resourceVersion, because every change in the cluster looks up its scope."""

    def __init__(self, app: Application, version: str) -> None:
        self.app, self._key = app, (app.namespace, app.name, version)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other._key == self._key


Places = tuple[frozenset[str], frozenset[ResourceKey]]  # namespaces; keys of cluster-scoped objects


def _places(app: Application, version: str) -> Places:
    return _places_of(_Known(app, version))


@lru_cache(maxsize=256)
def _places_of(known: _Known) -> Places:
    app = known.app
    keys = [row.key for row in summary.rows(app)]
    namespaces = {key.namespace for key in keys} | {app.destination.namespace, app.namespace}
    return frozenset(namespaces - {""}), frozenset(key for key in keys if not key.namespace)


NEEDS = May("applications", "get", application)
PLACE = "/apps/{ns}/{name}"


def _of_objects(tab: str, parts: Fragments) -> Live:
    return Live(f"{PLACE}{tab}", NEEDS, parts, anything, near)


def _of_app(tab: str, parts: Fragments) -> Live:
    return Live(f"{PLACE}{tab}", NEEDS, parts, of_applications, its_own)


LIVE = (
    Live("/apps", Filtered("applications", "get"), list_parts, of_lists),
    _of_objects("", tree_parts),
    _of_objects("/tree", tree_parts),
    _of_objects("/resources", resources_parts),
    _of_objects("/operation", operation_parts),
    _of_objects("/events", events_parts),
    _of_objects("/r/{group}/{kind}/{rns}/{rname}", resource_parts),
    _of_app("/diff", diff_parts),
    _of_app("/history", history_parts),
    _of_app("/logs", head_parts),
    _of_app("/parameters", head_parts),
    _of_app("/manifest", head_parts),
    _of_app("/settings", head_parts),
)
