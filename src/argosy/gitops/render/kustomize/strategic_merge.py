"""Kustomize's strategic merge. In: a manifest and a patch. Out: the manifest, changed in place.

Never: keeps a reference to a part of the patch, which a later patch could change.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.merge_keys import Node
from argosy.gitops.render.kustomize.resource import Nulls
from argosy.gitops.render.kustomize.two_key_lists import walked
from argosy.gitops.render.kustomize.yaml_marks import BLANK

_REMOVED: Final = object()


class Misfit(RenderError):
    """A part of a patch that does not match the manifest: its map in the patch, and its key there."""

    holder: Any = None
    key = ""


def path_of(value: Any, wanted: Any) -> tuple[str | int, ...] | None:
    """Return the path to a map within a value."""
    if value is wanted:
        return ()
    pairs: Any = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for step, each in pairs:
        found = path_of(each, wanted)
        if found is not None:
            return step, *found
    return None


_DIRECTIVE: Final = "$patch"


def merge(manifest: dict[str, Any], patch: dict[str, Any], schema: Node | None) -> dict[str, Any]:
    """Return the merged manifest; empty if the patch deletes it."""
    if patch.get(_DIRECTIVE) == "replace":
        return manifest  # k8s: as for list elements, `$patch: replace` leaves the manifest unchanged
    found = _map(manifest, patch, schema, "")
    return {} if found is _REMOVED else found


def without_blanks(node: Any, schema: Node | None, literal: Nulls | None) -> None:
    """k8s: a strategic merge patch removes every key without a value, in maps and in lists with merge keys.

    An explicit null stays; after a JSON patch every null is explicit (`explicit_nulls` is None).
    """
    if literal is None:
        return
    if type(node) is dict:
        kept = literal[id(node)][1] if id(node) in literal else ()
        for key in [key for key, value in node.items() if value is None and key not in kept]:
            del node[key]
        for key in [key[1:] for key in kept if key[0] == BLANK and node.get(key[1:]) == ""]:
            del node[key]
        for key, value in node.items():
            if type(value) is dict or type(value) is list:
                without_blanks(value, schema.field(key) if schema else None, literal)
    elif type(node) is list and schema and schema.keys:
        for each in node:
            if type(each) is dict:
                without_blanks(each, schema, literal)


def _map(target: dict[str, Any], patch: dict[str, Any], schema: Node | None, at: str) -> Any:
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return _REMOVED
    if directive == "replace":
        target = _itself(patch)
    elif directive not in (None, "merge"):
        raise _unknown(directive, at, patch)
    for key, value in patch.items():
        if key == _DIRECTIVE:
            target.pop(_DIRECTIVE, None)  # present if the patch is merged with itself
            continue
        if value is None:
            target.pop(key, None)
            continue
        below = f"{at}.{key}" if at else key
        try:
            merged = _value(target.get(key), value, schema.field(key) if schema else None, below)
        except Misfit as error:
            if error.holder is None:
                error.holder, error.key = patch, key
            raise
        if merged is _REMOVED:
            target.pop(key, None)
        else:
            target[key] = merged
    return target


def _value(target: Any, patch: Any, schema: Node | None, at: str) -> Any:
    if type(patch) is dict:
        if target is None:
            target = _itself(patch)
        if type(target) is not dict:
            raise _mismatch(at, target, patch)
        return _map(target, patch, schema, at)
    if type(patch) is list:
        if target is not None and type(target) is not list:
            raise _mismatch(at, target, patch)
        return _list(target, patch, schema, at)
    if type(target) is dict or type(target) is list:
        raise _mismatch(at, target, patch)
    return patch


def _unknown(directive: Any, at: str, holder: dict[str, Any]) -> Misfit:
    error = Misfit(f"{at or 'the patch'}: unknown directive $patch: {directive}; use delete, merge or replace")
    error.holder, error.key = holder, _DIRECTIVE
    return error


def _mismatch(at: str, target: Any, patch: Any) -> Misfit:
    names = ((dict, "a map"), (list, "a list"))
    was, given = (
        next((name for kind, name in names if type(each) is kind), "a single value") for each in (target, patch)
    )
    return Misfit(f"{at} is {was}, but the patch has {given}: use the same type in the patch")


def _list(target: list[Any] | None, patch: list[Any], schema: Node | None, at: str) -> Any:
    if schema is None or not (schema.keys or schema.is_set):
        return _plain(patch)  # k8s: in a list without merge keys, a directive is a plain element
    directives = [each[_DIRECTIVE] for each in patch if _is_directive(each)]
    if directives and target is None:
        return [{_DIRECTIVE: directives[-1]}]  # k8s: if there is no list yet, only the directive stays
    if directives:
        rest = [each for each in patch if not _is_directive(each)]
        if directives[-1] == "delete":
            return _REMOVED
        if directives[-1] == "replace":
            target = _plain(rest)  # k8s: the replacement is merged with itself
        patch, target = rest, [each for each in target or () if not _is_directive(each)]
    if not patch:
        return target or []
    if schema.is_set:
        return [*patch, *(each for each in target or () if each not in patch)]
    return _keyed(target, patch, schema, at)


def _is_directive(element: Any) -> bool:
    return type(element) is dict and element.keys() == {_DIRECTIVE}


def _plain(value: Any) -> Any:
    """Copy: one patch may have many targets."""
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    if type(value) is list:
        return [_plain(each) for each in value]
    return value


def _keyed(target: list[Any] | None, patch: list[Any], schema: Node, at: str) -> Any:
    everyone = [*(target or ()), *patch]
    if not all(type(each) is dict for each in everyone):
        return _plain(patch)
    keys = [key for key in schema.keys if any(each.get(key) is not None for each in everyone)]
    if not keys:
        return _plain(patch)
    if len(keys) > 1:
        return _keyed_by_many(target, patch, schema, at)
    if len(schema.keys) == 1 and not all(keys[0] in each for each in patch):
        return []  # k8s: elements without the merge key replace the whole list with nothing
    patch = [each for each in patch if keys[0] in each]
    left = list(target or ())
    found = []
    for element in patch:
        place = next((place for place, each in enumerate(left) if _is_same(each, element, keys)), None)
        old: dict[str, Any] = left.pop(place) if place is not None else _itself(element)
        old.pop(_DIRECTIVE, None)
        # k8s: `$patch: replace` in an element keeps the existing element.
        leaves = place is not None and element.get(_DIRECTIVE) == "replace"
        merged = old if leaves else _map(old, element, schema, at)
        if merged is not _REMOVED:
            found.append(merged)
    return [*found, *left]


def _itself(element: dict[str, Any]) -> dict[str, Any]:
    """k8s: a new element is merged with itself, so that directives in it apply."""
    return {key: _plain(each) for key, each in element.items() if key != _DIRECTIVE}


def _keyed_by_many(target: list[Any] | None, patch: list[Any], schema: Node, at: str) -> Any:
    def merge_two(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
        if new is None:
            return old
        old = _itself(new) if old is None or new.get(_DIRECTIVE) == "replace" else old
        merged = _map(old, new, schema, at)
        return None if merged is _REMOVED else merged

    for each in target or ():
        each.pop(_DIRECTIVE, None)  # present if the patch is merged with itself
    return walked([_itself(each) for each in patch] if target is None else target, patch, schema.keys, merge_two)


def _is_same(one: dict[str, Any], other: dict[str, Any], keys: list[str]) -> bool:
    """k8s: a key that one element lacks matches anything, if another key is equal."""
    equal = False
    for key in keys:
        mine, theirs = one.get(key), other.get(key)
        if mine is None or theirs is None:
            continue
        if str(mine) != str(theirs):
            return False
        equal = True
    return equal
