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
    """Return why the value is not a manifest, as the predicate of a sentence; empty if it is a manifest or a List."""
    if not isinstance(value, dict):
        return "is not a Kubernetes object: expected fields such as apiVersion and kind"
    for field in ("kind", "apiVersion"):
        if not isinstance(value.get(field), str) or not value[field]:
            return f"has no {field}: add it"
    if isinstance(value.get("items"), list) or _is_null_list(value):
        return ""
    metadata = value.get("metadata")
    name = isinstance(metadata, dict) and (metadata.get("name") or metadata.get("generateName"))
    if not isinstance(name, str) or not name:
        if value["apiVersion"].startswith("kustomize.config.k8s.io/"):
            return "is a kustomization, not a manifest: set the source's path to its folder"
        return f"is a {value['kind']} without metadata.name: add it"
    return ""


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
