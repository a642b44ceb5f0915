"""Kustomize's strategic merge. In: a manifest and a patch. Out: the manifest, changed in place.

Never: keeps a reference to a part of the patch, which a later patch could change.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.explicit_nulls_and_scalar_texts import BLANK_KEY_PREFIX
from argosy.gitops.render.kustomize.merge_keys import MergeSchema
from argosy.gitops.render.kustomize.resource import ExplicitNulls
from argosy.gitops.render.kustomize.two_key_lists import merge_two_key_list

_REMOVED_VALUE: Final = object()


class PatchMismatch(RenderError):
    """A part of a patch that does not match the manifest: its map in the patch, and its key there."""

    holder: Any = None
    key = ""


def find_path(value: Any, searched: Any) -> tuple[str | int, ...] | None:
    """Return the path to a map within a value."""
    if value is searched:
        return ()
    pairs: Any = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    for step, item in pairs:
        sub_path = find_path(item, searched)
        if sub_path is not None:
            return step, *sub_path
    return None


_PATCH_DIRECTIVE: Final = "$patch"


def merge_patch(manifest: dict[str, Any], patch: dict[str, Any], schema: MergeSchema | None) -> dict[str, Any]:
    """Return the merged manifest; empty if the patch deletes it."""
    if patch.get(_PATCH_DIRECTIVE) == "replace":
        return manifest  # k8s: as for list elements, `$patch: replace` leaves the manifest unchanged
    merged = _merge_map(manifest, patch, schema, "")
    return {} if merged is _REMOVED_VALUE else merged


def remove_blank_values(node: Any, schema: MergeSchema | None, explicit_nulls: ExplicitNulls | None) -> None:
    """k8s: a strategic merge patch removes every key without a value, in maps and in lists with merge keys.

    An explicit null stays; after a JSON patch every null is explicit (`explicit_nulls` is None).
    """
    if explicit_nulls is None:
        return
    if type(node) is dict:
        kept_keys = explicit_nulls[id(node)][1] if id(node) in explicit_nulls else ()
        for key in [key for key, value in node.items() if value is None and key not in kept_keys]:
            del node[key]
        for key in [key[1:] for key in kept_keys if key[0] == BLANK_KEY_PREFIX and node.get(key[1:]) == ""]:
            del node[key]
        for key, value in node.items():
            if type(value) is dict or type(value) is list:
                remove_blank_values(value, schema.get_field(key) if schema else None, explicit_nulls)
    elif type(node) is list and schema and schema.merge_keys:
        for element in node:
            if type(element) is dict:
                remove_blank_values(element, schema, explicit_nulls)


def _merge_map(target: dict[str, Any], patch: dict[str, Any], schema: MergeSchema | None, path: str) -> Any:
    directive = patch.get(_PATCH_DIRECTIVE)
    if directive == "delete":
        return _REMOVED_VALUE
    if directive == "replace":
        target = _copy_without_directive(patch)
    elif directive not in (None, "merge"):
        raise _build_directive_error(directive, path, patch)
    for key, value in patch.items():
        if key == _PATCH_DIRECTIVE:
            target.pop(_PATCH_DIRECTIVE, None)  # present if the patch is merged with itself
            continue
        if value is None:
            target.pop(key, None)
            continue
        child_path = f"{path}.{key}" if path else key
        try:
            merged = _merge_value(target.get(key), value, schema.get_field(key) if schema else None, child_path)
        except PatchMismatch as error:
            if error.holder is None:
                error.holder, error.key = patch, key
            raise
        if merged is _REMOVED_VALUE:
            target.pop(key, None)
        else:
            target[key] = merged
    return target


def _merge_value(target: Any, patch: Any, schema: MergeSchema | None, path: str) -> Any:
    if type(patch) is dict:
        if target is None:
            target = _copy_without_directive(patch)
        if type(target) is not dict:
            raise _build_type_error(path, target, patch)
        return _merge_map(target, patch, schema, path)
    if type(patch) is list:
        if target is not None and type(target) is not list:
            raise _build_type_error(path, target, patch)
        return _merge_list(target, patch, schema, path)
    if type(target) is dict or type(target) is list:
        raise _build_type_error(path, target, patch)
    return patch


def _build_directive_error(directive: Any, path: str, holder: dict[str, Any]) -> PatchMismatch:
    error = PatchMismatch(f"{path or 'the patch'}: unknown directive $patch: {directive}; use delete, merge or replace")
    error.holder, error.key = holder, _PATCH_DIRECTIVE
    return error


def _build_type_error(path: str, target: Any, patch: Any) -> PatchMismatch:
    names = ((dict, "a map"), (list, "a list"))
    old_type, patch_type = (
        next((name for kind, name in names if type(item) is kind), "a single value") for item in (target, patch)
    )
    return PatchMismatch(f"{path} is {old_type}, but the patch has {patch_type}: use the same type in the patch")


def _merge_list(target: list[Any] | None, patch: list[Any], schema: MergeSchema | None, path: str) -> Any:
    if schema is None or not (schema.merge_keys or schema.is_set):
        return _copy_value(patch)  # k8s: in a list without merge keys, a directive is a plain element
    directives = [element[_PATCH_DIRECTIVE] for element in patch if _is_directive(element)]
    if directives and target is None:
        return [{_PATCH_DIRECTIVE: directives[-1]}]  # k8s: if there is no list yet, only the directive stays
    if directives:
        plain_elements = [element for element in patch if not _is_directive(element)]
        if directives[-1] == "delete":
            return _REMOVED_VALUE
        if directives[-1] == "replace":
            target = _copy_value(plain_elements)  # k8s: the replacement is merged with itself
        patch, target = plain_elements, [element for element in target or () if not _is_directive(element)]
    if not patch:
        return target or []
    if schema.is_set:
        return [*patch, *(element for element in target or () if element not in patch)]
    return _merge_keyed_list(target, patch, schema, path)


def _is_directive(element: Any) -> bool:
    return type(element) is dict and element.keys() == {_PATCH_DIRECTIVE}


def _copy_value(value: Any) -> Any:
    """Copy: one patch may have many targets."""
    if type(value) is dict:
        return {key: _copy_value(item) for key, item in value.items()}
    if type(value) is list:
        return [_copy_value(item) for item in value]
    return value


def _merge_keyed_list(target: list[Any] | None, patch: list[Any], schema: MergeSchema, path: str) -> Any:
    all_elements = [*(target or ()), *patch]
    if not all(type(candidate) is dict for candidate in all_elements):
        return _copy_value(patch)
    keys = [key for key in schema.merge_keys if any(candidate.get(key) is not None for candidate in all_elements)]
    if not keys:
        return _copy_value(patch)
    if len(keys) > 1:
        return _merge_two_key_list(target, patch, schema, path)
    if len(schema.merge_keys) == 1 and not all(keys[0] in candidate for candidate in patch):
        return []  # k8s: elements without the merge key replace the whole list with nothing
    patch = [candidate for candidate in patch if keys[0] in candidate]
    remaining = list(target or ())
    result = []
    for element in patch:
        index = next(
            (index for index, candidate in enumerate(remaining) if _has_same_keys(candidate, element, keys)), None
        )
        old_element: dict[str, Any] = remaining.pop(index) if index is not None else _copy_without_directive(element)
        old_element.pop(_PATCH_DIRECTIVE, None)
        # k8s: `$patch: replace` in an element keeps the existing element.
        keeps_old = index is not None and element.get(_PATCH_DIRECTIVE) == "replace"
        merged = old_element if keeps_old else _merge_map(old_element, element, schema, path)
        if merged is not _REMOVED_VALUE:
            result.append(merged)
    return [*result, *remaining]


def _copy_without_directive(element: dict[str, Any]) -> dict[str, Any]:
    """k8s: a new element is merged with itself, so that directives in it apply."""
    return {key: _copy_value(value) for key, value in element.items() if key != _PATCH_DIRECTIVE}


def _merge_two_key_list(target: list[Any] | None, patch: list[Any], schema: MergeSchema, path: str) -> Any:
    def merge_two(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
        if new is None:
            return old
        old = _copy_without_directive(new) if old is None or new.get(_PATCH_DIRECTIVE) == "replace" else old
        merged = _merge_map(old, new, schema, path)
        return None if merged is _REMOVED_VALUE else merged

    for element in target or ():
        element.pop(_PATCH_DIRECTIVE, None)  # present if the patch is merged with itself
    return merge_two_key_list(
        [_copy_without_directive(element) for element in patch] if target is None else target,
        patch,
        schema.merge_keys,
        merge_two,
    )


def _has_same_keys(first: dict[str, Any], second: dict[str, Any], keys: list[str]) -> bool:
    """k8s: a key that one element lacks matches anything, if another key is equal."""
    has_equal_key = False
    for key in keys:
        first_value, second_value = first.get(key), second.get(key)
        if first_value is None or second_value is None:
            continue
        if str(first_value) != str(second_value):
            return False
        has_equal_key = True
    return has_equal_key
