"""Flattens lists of manifests and validates manifests. In: manifests, some of them Lists. Out: the objects in them.

Never: returns a List.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.errors import RenderError
from argosy.kube.objects import Manifest

_MAX_LIST_DEPTH = 20


def flatten_lists(manifests: Iterable[Manifest], depth: int = 0) -> Iterator[Manifest]:
    """argo: an object with a list in `items` is a List, whatever its kind."""
    for manifest in manifests:
        items = manifest.get("items")
        if isinstance(items, list):
            if depth > _MAX_LIST_DEPTH:
                raise RenderError(f"nests lists more than {_MAX_LIST_DEPTH} levels deep: flatten them")
            yield from flatten_lists(
                (_read_list_item(item, index, manifest) for index, item in enumerate(items)), depth + 1
            )
        elif not _is_null_list(manifest):
            yield manifest


def describe_manifest_problem(value: Any) -> str:
    """Return why the value is not a manifest, as the predicate of a sentence; empty if it is a manifest or a List.

    argo: a manifest without a name is one, and a sync of it fails; see `describe_missing_name`.
    """
    if not isinstance(value, dict):
        return "is not a Kubernetes object: expected fields such as apiVersion and kind"
    for field in ("kind", "apiVersion"):
        if not isinstance(value.get(field), str) or not value[field]:
            return f"has no {field}: add it"
    if isinstance(value.get("items"), list) or _is_null_list(value):
        return ""
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return f"is a {value['kind']} whose metadata is not a mapping: correct it"
    for field in ("name", "generateName"):
        if not isinstance((metadata or {}).get(field) or "", str):
            return f"is a {value['kind']} whose metadata.{field} is not text: quote it"
    return ""


def describe_missing_name(manifest: Manifest) -> str:
    """Return what to do about a manifest that can be applied under no name, as a predicate; empty if it can be."""
    metadata = manifest.get("metadata") or {}
    if metadata.get("name") or metadata.get("generateName"):
        return ""
    from argosy.gitops.application.sync_annotations import is_hook  # late: `argosy render` rarely needs it

    if is_hook(with_metadata(manifest)):
        return ""  # argo: hooks get a name from the revision, the phase and the time
    if manifest["apiVersion"].startswith("kustomize.config.k8s.io/"):
        return "is a kustomization, not a manifest: set the source's path to its folder"
    return f"is a {manifest['kind']} without metadata.name: add it"


def with_metadata(manifest: Manifest) -> Manifest:
    """Return the manifest with metadata, which may be missing or null in a file."""
    return manifest if manifest.get("metadata") is not None else {**manifest, "metadata": {}}


def _read_list_item(item: Any, index: int, list_manifest: Manifest) -> Manifest:
    kind = str(list_manifest.get("kind") or "")
    if isinstance(item, dict) and not item.get("kind") and kind.endswith("List") and kind != "List":
        # k8s: an item of a ConfigMapList without a kind is a ConfigMap.
        type_fields = {
            "apiVersion": item.get("apiVersion") or list_manifest.get("apiVersion"),
            "kind": kind.removesuffix("List"),
        }
        item = {**item, **type_fields}
    if problem := describe_manifest_problem(item):
        raise RenderError(f"contains a {kind or 'list'} whose items[{index}] {problem}")
    manifest: Manifest = item
    return manifest


def _is_null_list(manifest: Manifest) -> bool:
    return "items" in manifest and manifest["items"] is None and not manifest.keys() & {"spec", "status"}
