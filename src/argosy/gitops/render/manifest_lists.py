"""Flattens lists of manifests and validates manifests. In: manifests, some of them Lists. Out: the objects in them.

Never: returns a List.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.errors import RenderError
from argosy.kube.objects import Manifest

_DEEPEST = 20


def flattened(manifests: Iterable[Manifest], depth: int = 0) -> Iterator[Manifest]:
    """argo: an object with a list in `items` is a List, whatever its kind."""
    for manifest in manifests:
        items = manifest.get("items")
        if isinstance(items, list):
            if depth > _DEEPEST:
                raise RenderError(f"nests lists more than {_DEEPEST} levels deep: flatten them")
            yield from flattened((_item(each, place, manifest) for place, each in enumerate(items)), depth + 1)
        elif not _is_null_list(manifest):
            yield manifest


def fault_of(value: Any) -> str:
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


def _item(item: Any, place: int, listing: Manifest) -> Manifest:
    kind = str(listing.get("kind") or "")
    if isinstance(item, dict) and not item.get("kind") and kind.endswith("List") and kind != "List":
        # k8s: an item of a ConfigMapList without a kind is a ConfigMap.
        named = {"apiVersion": item.get("apiVersion") or listing.get("apiVersion"), "kind": kind.removesuffix("List")}
        item = {**item, **named}
    if fault := fault_of(item):
        raise RenderError(f"contains a {kind or 'list'} whose items[{place}] {fault}")
    found: Manifest = item
    return found


def _is_null_list(manifest: Manifest) -> bool:
    return "items" in manifest and manifest["items"] is None and not manifest.keys() & {"spec", "status"}
