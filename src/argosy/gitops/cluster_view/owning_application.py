"""Finds the Application that owns a live object.

In: a manifest, a cache. Out: the Application's manifest, or None. Never: trusts the tracking mark alone: the
Application must list the object, or anyone could claim to belong to another Application.
"""

from __future__ import annotations

from argosy.gitops.live.tracking import TrackingSettings, read_instance_name
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION


def owner_of(
    manifest: Manifest, cache: InformerCache, tracking: TrackingSettings, control_namespace: str
) -> Manifest | None:
    """argo: outside of the control namespace an instance is named NAMESPACE_NAME."""
    instance = read_instance_name(manifest, tracking)
    if not instance:
        return None
    namespace, separator, name = instance.partition("_")
    app = cache.get(ResourceKey(*APPLICATION, *((namespace, name) if separator else (control_namespace, instance))))
    return app if app is not None and key_of(manifest) in read_resource_keys(app) else None


def read_resource_keys(app: Manifest) -> set[ResourceKey]:
    """List the keys of all objects in the Application's status."""
    keys = set()
    for item in as_mapping(app.get("status")).get("resources") or ():
        row = as_mapping(item)
        keys.add(ResourceKey(*(str(row.get(field) or "") for field in ("group", "kind", "namespace", "name"))))
    return keys
