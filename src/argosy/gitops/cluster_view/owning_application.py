"""Finds the Application that owns a live object.

In: a manifest, a cache. Out: the Application's manifest, or None. Never: trusts the tracking mark alone: the
Application must list the object, or anyone could claim to belong to another Application.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.live.tracking import Tracking, owner
from argosy.gitops.status.wire_format import mapping
from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

APPLICATION: Final = GroupKind("argoproj.io", "Application")


def owner_of(manifest: Manifest, cache: Cache, tracking: Tracking, control: str) -> Manifest | None:
    """argo: outside of the control namespace an instance is named NAMESPACE_NAME."""
    instance = owner(manifest, tracking)
    if not instance:
        return None
    namespace, mark, name = instance.partition("_")
    app = cache.get(ResourceKey(*APPLICATION, *((namespace, name) if mark else (control, instance))))
    return app if app is not None and key_of(manifest) in keys_of(app) else None


def keys_of(app: Manifest) -> set[ResourceKey]:
    """List the keys of all objects in the Application's status."""
    found = set()
    for each in mapping(app.get("status")).get("resources") or ():
        row = mapping(each)
        found.add(ResourceKey(*(str(row.get(field) or "") for field in ("group", "kind", "namespace", "name"))))
    return found
