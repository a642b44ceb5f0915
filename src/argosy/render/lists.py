"""Lists of manifests. In: manifests, lists among them. Out: what they hold. Never: a list within the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from argosy.model.errors import RenderError
from argosy.model.manifest import Manifest

_DEEPEST = 20


def flattened(manifests: Iterable[Manifest], depth: int = 0) -> Iterator[Manifest]:
    """argo: whatever has a list of items is a list, whatever its kind is called."""
    for manifest in manifests:
        items = manifest.get("items")
        if isinstance(items, list):
            if depth > _DEEPEST:
                raise RenderError(f"lists stand in lists more than {_DEEPEST} levels deep: flatten them")
            yield from flattened((_item(each, manifest) for each in items), depth + 1)
        elif not _is_null_list(manifest):
            yield manifest


def _item(item: Any, listing: Manifest) -> Manifest:
    kind = str(listing.get("kind") or "")
    if not isinstance(item, dict):
        raise RenderError(f"an item of a {kind or 'list'} is no Kubernetes object: expected fields such as kind")
    if not item.get("kind") and kind.endswith("List") and kind != "List":
        # k8s: an item of a ConfigMapList that does not say so is a ConfigMap.
        named = {"apiVersion": item.get("apiVersion") or listing.get("apiVersion"), "kind": kind.removesuffix("List")}
        return {**item, **named}
    return item


def _is_null_list(manifest: Manifest) -> bool:
    return "items" in manifest and manifest["items"] is None and not manifest.keys() & {"spec", "status"}
