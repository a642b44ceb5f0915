"""Computes what a client-side apply sends. Pure.

In: a desired and a live manifest. Out: the manifest to create, or a patch; empty if nothing changes. Raises
ClusterError for manifests that no server accepts. Never: sends anything.
"""

from __future__ import annotations

from typing import Any

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.errors import ClusterError, ManifestError, PatchError
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.patch import strategic_merge, three_way
from argosy.kube.patch.last_applied import encoded
from argosy.kube.schema import defaults
from argosy.kube.schema.builtin_types import Type, type_of
from argosy.kube.schema.typed_json import decode


def placed(manifest: Manifest, key: ResourceKey) -> Manifest:
    """Set the namespace of the key; cluster-scoped manifests get none."""
    metadata = {**manifest["metadata"], "namespace": key.namespace}
    if not key.namespace:
        del metadata["namespace"]
    if metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]  # argo: a null that generators leave behind has no meaning
    return {**manifest, "metadata": metadata}


def with_last_applied(manifest: Manifest) -> Manifest:
    """k8s: add the last-applied annotation as `kubectl apply` does, for the next three-way merge."""
    annotations = {**(manifest["metadata"].get("annotations") or {})}
    annotations.pop(LAST_APPLIED, None)
    bare = {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}
    kept = {**annotations, LAST_APPLIED: encoded(bare)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": kept}}


def last_applied(live: Manifest) -> Manifest | None:
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        found = orjson.loads(text) if isinstance(text, str) and text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def patch_of(modified: Manifest, live: Manifest) -> dict[str, Any]:
    """k8s: build the patch of `kubectl apply`: strategic for built-in kinds, else merge. The apiVersions are equal."""
    if holds(live, modified):
        return {}  # everything is up to date, including last-applied: nothing to change or remove
    original = last_applied(live)
    shape = shape_of(modified)
    if shape is None:
        return three_way.merge(original, modified, live)
    patch = three_way.strategic(original, modified, live, shape)
    return {} if patch and _says_nothing_new(patch, live, shape) else patch


def _says_nothing_new(patch: dict[str, Any], live: Manifest, shape: Type) -> bool:
    """True if the server would store the same object: quantities in another form, or defaults.

    k8s: kubectl sends such patches, and some servers write them: a StatefulSet then counts as changed each time.
    """
    kind, api_version = str(live["kind"]), str(live["apiVersion"])
    group, version = split_api_version(api_version)
    try:
        made, unknown = decode(shape, strategic_merge.apply(live, patch, shape), kind=kind, api_version=api_version)
        kept = defaults.apply(GroupKind(group, kind), version, made)
        return not unknown and kept == decode(shape, live, kind=kind, api_version=api_version).manifest
    except (ManifestError, PatchError):
        return False  # the server will report the error


def shape_of(manifest: Manifest) -> Type | None:
    group, version = split_api_version(str(manifest.get("apiVersion") or ""))
    return type_of(group, version, str(manifest.get("kind") or ""))


def check(manifest: Manifest) -> None:
    """k8s: strict decoding as in kubectl; kinds that are not built in are validated by the server."""
    shape = shape_of(manifest)
    if shape is None:
        return
    kind, api_version = str(manifest["kind"]), str(manifest["apiVersion"])
    said = f'{kind} in version "{split_api_version(api_version)[1]}" cannot be handled as a {kind}: '
    try:
        unknown = decode(shape, manifest, kind=kind, api_version=api_version).unknown
    except ManifestError as error:
        raise ClusterError(said + str(error), code=400, reason="BadRequest") from error
    if unknown:
        fields = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise ClusterError(f"{said}strict decoding error: {fields}", code=400, reason="BadRequest")


def holds(live: Any, desired: Any) -> bool:
    """True if all desired values are in live."""
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(holds(live.get(name), value) for name, value in desired.items())
    if isinstance(desired, list):
        return isinstance(live, list) and len(live) == len(desired) and all(map(holds, live, desired))
    return bool(live == desired)
