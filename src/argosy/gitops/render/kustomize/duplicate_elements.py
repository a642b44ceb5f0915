"""Removes list elements with duplicate merge keys. In: a manifest and a strategic merge patch. Out: both, deduplicated.

Never: changes a list without merge keys, or one with an element that lacks them.

k8s: any strategic merge patch leaves one element per key in every such list of the manifest: the last one, at the
position of the first or, with two merge keys, at its own. A patch of a duplicate element changes nothing, unless it
deletes it. Of duplicate elements in the patch, the first counts. Elements that only the patch has are merged with
themselves.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.render.kustomize.merge_keys import Node
from argosy.gitops.render.kustomize.two_key_lists import walked

_Name = tuple[str, ...]


def without_doubles(manifest: Any, patch: Any, schema: Node | None) -> None:
    """Change both in place, so that merging them gives the same result as kustomize."""
    if schema is None or type(manifest) is not dict:
        return
    given = patch if type(patch) is dict else {}
    for key, value in manifest.items():
        _value(value, given.get(key), schema.field(key))
    for key, value in given.items():
        if manifest.get(key) is None:
            _value(value, None, schema.field(key))


def _value(value: Any, patch: Any, schema: Node | None) -> None:
    if schema is not None and type(value) is dict:
        without_doubles(value, patch, schema)
    elif schema is not None and schema.keys and type(value) is list:
        _list(value, patch, schema)


def _list(target: list[Any], patch: Any, schema: Node) -> None:
    given = patch if type(patch) is list else []
    everyone = [*target, *given]
    if not all(type(each) is dict for each in everyone):
        return
    keys = [key for key in schema.keys if any(each.get(key) is not None for each in everyone)]
    if not keys:
        return
    if any(each.keys() == {"$patch"} for each in target):
        return  # a new list from the patch, with a directive for the whole list
    if len(keys) > 1 and not given and not all(_name(each, keys) for each in target):
        target[:] = walked(target, [], schema.keys, lambda old, _: old)
        return
    double = _only_last(target, keys)
    by_name = _only_first(given, keys, double)
    for each in target:
        name = _name(each, keys)
        if name not in double:
            without_doubles(each, by_name.pop(name, None), schema)
    for name, each in by_name.items():
        if name not in double:
            without_doubles(each, None, schema)


def _only_last(target: list[Any], keys: list[str]) -> set[_Name]:
    """Keep the last element per key, and return the duplicate keys."""
    found: dict[_Name, Any] = {}
    double: set[_Name] = set()
    for each in target:
        name = _name(each, keys)
        if not name:
            return set()
        if name in found:
            double.add(name)
            if len(keys) > 1:
                del found[name]
        found[name] = each
    if double:
        target[:] = found.values()
    return double


def _only_first(patch: list[Any], keys: list[str], double: set[_Name]) -> dict[_Name, Any]:
    found: dict[_Name, Any] = {}
    for each in patch:
        name = _name(each, keys)
        if not name:
            return found
        if name not in found:
            found[name] = each
    if len(found) < len(patch):
        patch[:] = found.values()
    for name in double & found.keys():
        if found[name].get("$patch") != "delete":
            for key in found[name].keys() - keys:
                del found[name][key]
    return found


def _name(element: dict[str, Any], keys: list[str]) -> _Name:
    """Return the values of the merge keys; empty if the element lacks one."""
    found = tuple(str(element[key]) for key in keys if element.get(key) is not None)
    return found if len(found) == len(keys) else ()
