"""Compares by field ownership, for objects that are applied server-side.

In: both sides, normalized, and live's managedFields. Out: what live would become, and live, in the same form. Never:
asks a server; its dry-run response is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.errors import PatchError
from argosy.gitops.diff.go_type_round_trip import as_stored
from argosy.kube.objects import Manifest
from argosy.kube.patch import server_side_apply
from argosy.kube.patch.changed_field_path_trees import EMPTIED, compare, field_shape, is_keyed_list
from argosy.kube.patch.field_sets import Tree, intersection, is_member, union
from argosy.kube.patch.fields_v1_path_elements import ElementError, item_path_element
from argosy.kube.patch.managed_fields import read_managers, without_managed_fields
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.typed_merge import drop_emptied, merge, remove


def predict_server_side(
    desired: Manifest, live: Manifest, field_manager: str, shape: Shape
) -> tuple[Manifest, Manifest]:
    """Predict a server-side apply by the controller. Raises PatchError or ManifestError."""
    metadata = {name: value for name, value in desired["metadata"].items() if name != "managedFields"}
    merged = server_side_apply.apply(
        live,
        {**desired, "metadata": metadata},
        manager=field_manager,
        force=True,
        api_version=desired["apiVersion"],
        now="",
        shape=shape,
    )
    return as_stored(without_managed_fields(merged), shape), as_stored(without_managed_fields(live), shape)


def remove_trusted_fields(
    desired: Manifest, live: Manifest, managers: Iterable[str], shape: Shape
) -> tuple[Manifest, Manifest]:
    """Remove from both sides the fields that differ and belong to a trusted manager."""
    names = frozenset(managers)
    try:
        owned = [manager.fields.tree for manager in read_managers(live) if manager.name in names]
        if not owned:
            return desired, live
        changed = compare(live, desired, shape).changed
        for tree in owned:
            trusted_changes = intersection(tree, changed)
            desired, live = (
                _remove_fields(desired, trusted_changes, shape),
                _remove_fields(live, trusted_changes, shape),
            )
    except PatchError:
        pass  # unreadable managedFields are ignored
    return desired, live


def _remove_fields(manifest: Manifest, tree: Tree, shape: Shape) -> Manifest:
    if not tree:
        return manifest
    remaining: Any = remove(manifest, tree, shape)
    reduced: Manifest = {} if remaining is EMPTIED else drop_emptied(remaining)
    return reduced


def remove_mutations(predicted: Manifest, live: Manifest, field_manager: str, shape: Shape) -> Manifest:
    """Remove changes by webhooks from a dry-run response.

    argo: fields that the controller owns keep their new value, removed fields stay removed, and all others are as in
    live.
    """
    changed, removed = compare(without_managed_fields(live), without_managed_fields(predicted), shape)
    owned_changes = _intersect_changes(changed, _list_owned_fields(predicted, field_manager))
    reduced_live = _remove_fields(without_managed_fields(live), removed, shape)
    merged: Manifest = (
        merge(reduced_live, _extract_fields(without_managed_fields(predicted), owned_changes, shape), shape)
        if owned_changes
        else reduced_live
    )
    return merged


def _list_owned_fields(manifest: Manifest, field_manager: str) -> Tree:
    owned: Tree = {}
    for manager in read_managers(manifest):
        if manager.name == field_manager:
            owned = union(owned, manager.fields.tree)
    return owned


def _intersect_changes(changed: Tree, owned: Tree) -> Tree:
    """Return the changes in or around owned fields: a list may be one field here and many there."""
    part: Tree = {}
    for element, node in changed.items():
        owned_node = owned.get(element)
        if owned_node is None:
            continue
        if not node or not owned_node:
            part[element] = node
        elif below := _intersect_changes(node, owned_node):
            part[element] = below
    return part


def _extract_fields(value: Any, tree: Tree, shape: Shape | None) -> Any:
    """Extract the members of the tree, with the keys of list elements on the path."""
    if isinstance(value, dict):
        extracted: dict[str, Any] = {}
        for name, item in value.items():
            node = tree.get("f:" + name)
            if node is not None:
                extracted[name] = (
                    item
                    if not node or not isinstance(item, dict | list)
                    else _extract_fields(item, node, field_shape(shape, name))
                )
        return extracted
    if isinstance(value, list) and shape is not None and is_keyed_list(shape):
        return [extracted for item in value if (extracted := _extract_element(item, tree, shape)) is not None]
    return value


def _extract_element(item: Any, tree: Tree, shape: Shape) -> Any:
    try:
        node = tree.get(item_path_element(item, shape))
    except ElementError:
        return None
    if node is None:
        return None
    if not node or (is_member(node) and not isinstance(item, dict)) or not isinstance(item, dict):
        return item
    keys = {name: item[name] for name in shape.map_keys if name in item}
    return {**keys, **_extract_fields(item, node, shape.items())}
