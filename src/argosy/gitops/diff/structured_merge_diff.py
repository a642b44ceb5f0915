"""Compares by field ownership, for objects that are applied server-side.

In: both sides, normalized, and live's managedFields. Out: what live would become, and live, in the same form. Never:
asks a server; its dry-run response is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.errors import PatchError
from argosy.gitops.diff.typed_manifests import kept
from argosy.kube.objects import Manifest
from argosy.kube.patch import server_side_apply
from argosy.kube.patch.field_comparison import EMPTIED, compare, field_shape, is_keyed_list
from argosy.kube.patch.field_sets import Tree, intersection, is_member, union
from argosy.kube.patch.managed_fields import bare, managers_of
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.path_elements import ElementError, element_of
from argosy.kube.patch.typed_merge import merge, remove, swept


def predict(desired: Manifest, live: Manifest, controller: str, shape: Shape) -> tuple[Manifest, Manifest]:
    """Predict a server-side apply by the controller. Raises PatchError or ManifestError."""
    metadata = {name: value for name, value in desired["metadata"].items() if name != "managedFields"}
    merged = server_side_apply.apply(
        live,
        {**desired, "metadata": metadata},
        manager=controller,
        force=True,
        api_version=desired["apiVersion"],
        now="",
        shape=shape,
    )
    return kept(bare(merged), shape), kept(bare(live), shape)


def without_trusted(
    desired: Manifest, live: Manifest, trusted: Iterable[str], shape: Shape
) -> tuple[Manifest, Manifest]:
    """Remove from both sides the fields that differ and belong to a trusted manager."""
    names = frozenset(trusted)
    try:
        owned = [each.fields.tree for each in managers_of(live) if each.name in names]
        if not owned:
            return desired, live
        changed = compare(live, desired, shape).changed
        for tree in owned:
            both = intersection(tree, changed)
            desired, live = _removed(desired, both, shape), _removed(live, both, shape)
    except PatchError:
        pass  # unreadable managedFields are ignored
    return desired, live


def _removed(manifest: Manifest, tree: Tree, shape: Shape) -> Manifest:
    if not tree:
        return manifest
    rest: Any = remove(manifest, tree, shape)
    made: Manifest = {} if rest is EMPTIED else swept(rest)
    return made


def without_mutations(predicted: Manifest, live: Manifest, controller: str, shape: Shape) -> Manifest:
    """Remove changes by webhooks from a dry-run response.

    argo: fields that the controller owns keep their new value, removed fields stay removed, and all others are as in
    live.
    """
    changed, removed = compare(bare(live), bare(predicted), shape)
    wanted = _within(changed, _owned(predicted, controller))
    made = _removed(bare(live), removed, shape)
    merged: Manifest = merge(made, _extracted(bare(predicted), wanted, shape), shape) if wanted else made
    return merged


def _owned(manifest: Manifest, controller: str) -> Tree:
    found: Tree = {}
    for each in managers_of(manifest):
        if each.name == controller:
            found = union(found, each.fields.tree)
    return found


def _within(changed: Tree, owned: Tree) -> Tree:
    """Return the changes in or around owned fields: a list may be one field here and many there."""
    part: Tree = {}
    for element, node in changed.items():
        other = owned.get(element)
        if other is None:
            continue
        if not node or not other:
            part[element] = node
        elif below := _within(node, other):
            part[element] = below
    return part


def _extracted(value: Any, tree: Tree, shape: Shape | None) -> Any:
    """Extract the members of the tree, with the keys of list elements on the path."""
    if isinstance(value, dict):
        made: dict[str, Any] = {}
        for name, item in value.items():
            node = tree.get("f:" + name)
            if node is not None:
                made[name] = (
                    item
                    if not node or not isinstance(item, dict | list)
                    else _extracted(item, node, field_shape(shape, name))
                )
        return made
    if isinstance(value, list) and shape is not None and is_keyed_list(shape):
        return [made for item in value if (made := _element(item, tree, shape)) is not None]
    return value


def _element(item: Any, tree: Tree, shape: Shape) -> Any:
    try:
        node = tree.get(element_of(item, shape))
    except ElementError:
        return None
    if node is None:
        return None
    if not node or (is_member(node) and not isinstance(item, dict)) or not isinstance(item, dict):
        return item
    keys = {name: item[name] for name in shape.map_keys if name in item}
    return {**keys, **_extracted(item, node, shape.items())}
