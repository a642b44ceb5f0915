"""What a client-side apply would send. Pure.

In: a desired and a live manifest. Out: what to create, or a patch; empty where nothing is to be done. Raises
ClusterError for what no server would take. Never: sends anything.
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
    """In the namespace that its key says; what has no namespace must not name one."""
    metadata = {**manifest["metadata"], "namespace": key.namespace}
    if not key.namespace:
        del metadata["namespace"]
    if metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]  # argo: what generators leave behind asks for nothing
    return {**manifest, "metadata": metadata}


def with_last_applied(manifest: Manifest) -> Manifest:
    """k8s: as `kubectl apply` sends it, so that the next apply knows what this one asked for."""
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
    """k8s: the patch of `kubectl apply`: strategic for built-in kinds, else merge. Both are of one apiVersion."""
    if holds(live, modified):
        return {}  # all of it, what was applied last included: there is nothing to change, and nothing to take away
    original = last_applied(live)
    shape = shape_of(modified)
    if shape is None:
        return three_way.merge(original, modified, live)
    patch = three_way.strategic(original, modified, live, shape)
    return {} if patch and _says_nothing_new(patch, live, shape) else patch


def _says_nothing_new(patch: dict[str, Any], live: Manifest, shape: Type) -> bool:
    """Whether a server would keep what it has: amounts in another spelling, values that it fills in itself.

    k8s: kubectl sends those, and some servers write them: they mark a StatefulSet as changed each time.
    """
    kind, api_version = str(live["kind"]), str(live["apiVersion"])
    group, version = split_api_version(api_version)
    try:
        made, unknown = decode(shape, strategic_merge.apply(live, patch, shape), kind=kind, api_version=api_version)
        kept = defaults.apply(GroupKind(group, kind), version, made)
        return not unknown and kept == decode(shape, live, kind=kind, api_version=api_version).manifest
    except (ManifestError, PatchError):
        return False  # for the server to say what is wrong with it


def shape_of(manifest: Manifest) -> Type | None:
    group, version = split_api_version(str(manifest.get("apiVersion") or ""))
    return type_of(group, version, str(manifest.get("kind") or ""))


def check(manifest: Manifest) -> None:
    """k8s: the strict decoding that kubectl asks for; kinds that are not built in are left to the server."""
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
    """Whether everything that is desired is in live, as it is."""
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(holds(live.get(name), value) for name, value in desired.items())
    if isinstance(desired, list):
        return isinstance(live, list) and len(live) == len(desired) and all(map(holds, live, desired))
    return bool(live == desired)
