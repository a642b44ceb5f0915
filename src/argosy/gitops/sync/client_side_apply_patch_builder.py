"""Computes what a client-side apply sends. Pure.

In: a desired and a live manifest. Out: the manifest to create, or a patch; empty if nothing changes. Raises
ClusterError for manifests that no server accepts. Never: sends anything.
"""

from __future__ import annotations

from typing import Any

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.errors import ManifestError, PatchError
from argosy.kube.objects import Manifest
from argosy.kube.patch import strategic_merge, three_way
from argosy.kube.patch.last_applied_annotation import format_last_applied
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version
from argosy.kube.schema import defaults
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type
from argosy.kube.schema.builtin_type_json_codec import decode


def set_namespace(manifest: Manifest, key: ResourceKey) -> Manifest:
    """Set the namespace of the key; cluster-scoped manifests get none."""
    metadata = {**manifest["metadata"], "namespace": key.namespace}
    if not key.namespace:
        del metadata["namespace"]
    if metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]  # argo: a null that generators leave behind has no meaning
    return {**manifest, "metadata": metadata}


def add_last_applied(manifest: Manifest) -> Manifest:
    """k8s: add the last-applied annotation as `kubectl apply` does, for the next three-way merge."""
    annotations = {**(manifest["metadata"].get("annotations") or {})}
    annotations.pop(LAST_APPLIED, None)
    bare = {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}
    new_annotations = {**annotations, LAST_APPLIED: format_last_applied(bare)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": new_annotations}}


def read_last_applied(live: Manifest) -> Manifest | None:
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        manifest = orjson.loads(text) if isinstance(text, str) and text else None
    except ValueError:
        return None
    return manifest if isinstance(manifest, dict) else None


def build_apply_patch(modified: Manifest, live: Manifest) -> dict[str, Any]:
    """k8s: build the patch of `kubectl apply`: strategic for built-in kinds, else merge. The apiVersions are equal."""
    if contains_desired(live, modified):
        return {}  # everything is up to date, including last-applied: nothing to change or remove
    original = read_last_applied(live)
    shape = find_manifest_type(modified)
    if shape is None:
        return three_way.build_three_way_merge_patch(original, modified, live)
    patch = three_way.build_three_way_strategic_patch(original, modified, live, shape)
    if "stringData" in patch:
        return patch  # k8s: the live Secret has no such field, so kubectl sends it with each apply
    return {} if patch and _changes_nothing(patch, live, shape) else patch


def _changes_nothing(patch: dict[str, Any], live: Manifest, shape: Type) -> bool:
    """True if the server would store the same object: quantities in another form, or defaults.

    k8s: kubectl sends such patches, and some servers write them: a StatefulSet then counts as changed each time.
    """
    kind, api_version = str(live["kind"]), str(live["apiVersion"])
    group, version = split_api_version(api_version)
    try:
        patched, unknown = decode(shape, strategic_merge.apply(live, patch, shape), kind=kind, api_version=api_version)
        defaulted = defaults.apply_defaults(GroupKind(group, kind), version, patched)
        return not unknown and defaulted == decode(shape, live, kind=kind, api_version=api_version).manifest
    except (ManifestError, PatchError):
        return False  # the server will report the error


def find_manifest_type(manifest: Manifest) -> Type | None:
    group, version = split_api_version(str(manifest.get("apiVersion") or ""))
    return find_builtin_type(group, version, str(manifest.get("kind") or ""))


def contains_desired(live: Any, desired: Any) -> bool:
    """True if all desired values are in live."""
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(
            contains_desired(live.get(name), value) for name, value in desired.items()
        )
    if isinstance(desired, list):
        return isinstance(live, list) and len(live) == len(desired) and all(map(contains_desired, live, desired))
    return bool(live == desired)
