"""Removes list elements with duplicate merge keys. In: a manifest and a strategic merge patch. Out: both, deduplicated.

Never: changes a list without merge keys, or one with an element that lacks them.

k8s: any strategic merge patch leaves one element per key in every such list of the manifest: the last one, at the
position of the first or, with two merge keys, at its own. A patch of a duplicate element changes nothing, unless it
deletes it. Of duplicate elements in the patch, the first counts. Elements that only the patch has are merged with
themselves.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.render.kustomize.merge_keys import MergeSchema
from argosy.gitops.render.kustomize.two_key_lists import merge_two_key_list

_MergeKey = tuple[str, ...]


def remove_duplicate_elements(manifest: Any, patch: Any, schema: MergeSchema | None) -> None:
    """Change both in place, so that merging them gives the same result as kustomize."""
    if schema is None or type(manifest) is not dict:
        return
    patch_fields = patch if type(patch) is dict else {}
    for key, value in manifest.items():
        _deduplicate_value(value, patch_fields.get(key), schema.get_field(key))
    for key, value in patch_fields.items():
        if manifest.get(key) is None:
            _deduplicate_value(value, None, schema.get_field(key))


def _deduplicate_value(value: Any, patch: Any, schema: MergeSchema | None) -> None:
    if schema is not None and type(value) is dict:
        remove_duplicate_elements(value, patch, schema)
    elif schema is not None and schema.merge_keys and type(value) is list:
        _deduplicate_list(value, patch, schema)


def _deduplicate_list(target: list[Any], patch: Any, schema: MergeSchema) -> None:
    patch_elements = patch if type(patch) is list else []
    all_elements = [*target, *patch_elements]
    if not all(type(element) is dict for element in all_elements):
        return
    keys = [key for key in schema.merge_keys if any(element.get(key) is not None for element in all_elements)]
    if not keys:
        return
    if any(element.keys() == {"$patch"} for element in target):
        return  # a new list from the patch, with a directive for the whole list
    if len(keys) > 1 and not patch_elements and not all(_read_merge_key(element, keys) for element in target):
        target[:] = merge_two_key_list(target, [], schema.merge_keys, lambda old, _: old)
        return
    duplicates = _keep_last_elements(target, keys)
    patch_by_key = _keep_first_elements(patch_elements, keys, duplicates)
    for element in target:
        merge_key = _read_merge_key(element, keys)
        if merge_key not in duplicates:
            remove_duplicate_elements(element, patch_by_key.pop(merge_key, None), schema)
    for merge_key, element in patch_by_key.items():
        if merge_key not in duplicates:
            remove_duplicate_elements(element, None, schema)


def _keep_last_elements(target: list[Any], keys: list[str]) -> set[_MergeKey]:
    """Keep the last element per key, and return the duplicate keys."""
    by_key: dict[_MergeKey, Any] = {}
    duplicates: set[_MergeKey] = set()
    for element in target:
        merge_key = _read_merge_key(element, keys)
        if not merge_key:
            return set()
        if merge_key in by_key:
            duplicates.add(merge_key)
            if len(keys) > 1:
                del by_key[merge_key]
        by_key[merge_key] = element
    if duplicates:
        target[:] = by_key.values()
    return duplicates


def _keep_first_elements(patch: list[Any], keys: list[str], duplicates: set[_MergeKey]) -> dict[_MergeKey, Any]:
    by_key: dict[_MergeKey, Any] = {}
    for element in patch:
        merge_key = _read_merge_key(element, keys)
        if not merge_key:
            return by_key
        if merge_key not in by_key:
            by_key[merge_key] = element
    if len(by_key) < len(patch):
        patch[:] = by_key.values()
    for merge_key in duplicates & by_key.keys():
        if by_key[merge_key].get("$patch") != "delete":
            for key in by_key[merge_key].keys() - keys:
                del by_key[merge_key][key]
    return by_key


def _read_merge_key(element: dict[str, Any], keys: list[str]) -> _MergeKey:
    """Return the values of the merge keys; empty if the element lacks one."""
    values = tuple(str(element[key]) for key in keys if element.get(key) is not None)
    return values if len(values) == len(keys) else ()
