"""Strategic merge patch, as k8s.io/apimachinery applies it.

In: a document, a patch with directives, the document's shape. Out: a new document. Never: mutates its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.strategic_list_order import (
    DIRECTIVE,
    build_missing_merge_key_error,
    build_type_error,
    build_unknown_directive_error,
    check_element_order,
    element_identity,
    find_element_type,
    interleave,
    live_order_after_changes,
    remove_duplicates,
    remove_elements,
    split_by_identity,
)

RETAIN_KEYS: Final = "$retainKeys"
SET_ORDER: Final = "$setElementOrder"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
_DIRECTIVE_PREFIXES: Final = (RETAIN_KEYS, SET_ORDER + "/", DELETE_FROM + "/")

RETAIN_KEYS_FORMAT_ERROR: Final = "invalid patch format of retainKeys"
ORDER_FORMAT_ERROR: Final = "invalid patch format of setElementOrder list"
DELETION_FORMAT_ERROR: Final = "invalid patch format of primitive list"


def apply(document: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Merge the patch into the document; raise PatchError if a directive or merge key is wrong."""
    return merge_maps(document, patch, shape, is_final=True)


def merge_maps(
    original: Mapping[str, Any] | None, patch: Mapping[str, Any], shape: Shape | None, *, is_final: bool
) -> dict[str, Any]:
    """Merge a patch into a document (`is_final`), or into another patch: then nulls and directives are kept."""
    if DIRECTIVE in patch:
        return _apply_map_directive(patch)
    merged = dict(original or {})
    remaining_patch = dict(patch)
    if RETAIN_KEYS in remaining_patch:
        _apply_retain_keys(merged, remaining_patch, is_final)
    for key in [patch_key for patch_key in remaining_patch if patch_key.startswith(SET_ORDER)]:
        _merge_list_with_order(merged, remaining_patch, key, shape, is_final)
    deletions: list[tuple[str, Any]] = []
    for key, value in remaining_patch.items():
        if not key.startswith(DELETE_FROM):
            _merge_field(merged, key, value, shape, is_final)
        elif is_final:
            deletions.append((_directive_list_name(key, DELETE_FROM, DELETION_FORMAT_ERROR), value))
        else:
            merged[key] = value
    for name, value in deletions:
        _delete_from_primitive_list(merged, name, value)
    return merged


def read_patch_strategy(shape: Shape | None) -> tuple[bool, str]:
    """Return whether the field has the `retainKeys` strategy, and its other strategy: `merge`, `replace` or ""."""
    if shape is None or not shape.strategies:
        return False, ""
    other_strategies = [strategy for strategy in shape.strategies if strategy != "retainKeys"]
    retains_keys = len(other_strategies) < len(shape.strategies)
    if len(other_strategies) > 1:
        raise PatchError(f"unexpected patch strategy: [{' '.join(shape.strategies)}]")
    return retains_keys, other_strategies[0] if other_strategies else ""


def find_field_shape(shape: Shape | None, name: str) -> Shape | None:
    """Return the shape of a field. None means free-form JSON: maps merge and lists are replaced."""
    if shape is None or shape.kind == "untyped":
        return None
    field = shape.field(name)
    if field is None and shape.kind == "struct":
        raise PatchError(f'unable to find api field "{name}"')
    return field


def item_shape(shape: Shape | None) -> Shape | None:
    return shape.items() if shape is not None and shape.kind == "list" else None


def get_merge_key(shape: Shape | None) -> str:
    return shape.merge_key if shape is not None else ""


def _apply_map_directive(patch: Mapping[str, Any]) -> dict[str, Any]:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
    raise build_unknown_directive_error(patch[DIRECTIVE], patch)


def _apply_retain_keys(merged: dict[str, Any], patch: dict[str, Any], is_final: bool) -> None:
    keys = patch.pop(RETAIN_KEYS)
    if not is_final:
        if merged.setdefault(RETAIN_KEYS, keys) != keys:
            raise PatchError(
                f"{merged[RETAIN_KEYS]} and {keys} are not deep equal: "
                "this may happen when calculating the 3-way diff patch"
            )
        return
    if not isinstance(keys, list):
        raise PatchError(RETAIN_KEYS_FORMAT_ERROR)
    for key, value in patch.items():
        if value is not None and key not in keys and not key.startswith((DELETE_FROM, SET_ORDER)):
            raise PatchError(RETAIN_KEYS_FORMAT_ERROR)
    for key in [merged_key for merged_key in merged if merged_key not in keys]:
        del merged[key]


def _directive_list_name(key: str, prefix: str, error_message: str) -> str:
    head, slash, name = key.partition("/")
    if not slash or head != prefix:
        raise PatchError(error_message)
    return name


def _merge_list_with_order(
    merged: dict[str, Any], patch: dict[str, Any], key: str, shape: Shape | None, is_final: bool
) -> None:
    """Merge one list and its `$setElementOrder`, and remove both from the patch so that no later step sees them."""
    order = patch.pop(key)
    if not is_final and merged.setdefault(key, order) != order:
        raise PatchError(ORDER_FORMAT_ERROR)
    if not isinstance(order, list):
        raise build_type_error("[]interface {}", order)
    name = _directive_list_name(key, SET_ORDER, ORDER_FORMAT_ERROR)
    live, changes = merged.get(name), patch.get(name)
    for elements, is_present in ((live, name in merged), (changes, name in patch)):
        if is_present and not isinstance(elements, list):
            raise build_type_error("[]interface {}", elements)
    field = find_field_shape(shape, name)
    merge_key = get_merge_key(field)
    check_element_order(changes or [], order, merge_key)
    match name in merged, name in patch:
        case True, True:
            merged_list = _merge_list(live or [], changes or [], field, read_patch_strategy(field)[1], is_final)
        case True, False:
            merged_list = live or []
        case False, True:
            merged_list = [
                _drop_directives(elements, is_final) for elements in _drop_nulls_and_directives(changes, is_final=False)
            ]
        case _:
            return
    has_maps = find_element_type(live or [], changes or []) is dict
    live_order = live_order_after_changes(live or [], changes or [], merge_key) if has_maps else live or []
    patched, unpatched = split_by_identity(merged_list, order, merge_key)
    merged[name] = interleave(patched, unpatched, order, live_order, merge_key)
    patch.pop(name, None)


def _merge_field(merged: dict[str, Any], key: str, value: Any, shape: Shape | None, is_final: bool) -> None:
    if value is None:
        merged.pop(key, None)
        if not is_final:
            merged[key] = None
        return
    current = merged.get(key)
    if isinstance(current, dict) and isinstance(value, dict):
        field = find_field_shape(shape, key)
        replaces = read_patch_strategy(field)[1] == "replace"
        merged[key] = value if replaces else merge_maps(current, value, field, is_final=is_final)
    elif isinstance(current, list) and isinstance(value, list):
        field = find_field_shape(shape, key)
        merged[key] = _merge_list(current, value, field, read_patch_strategy(field)[1], is_final)
    elif isinstance(value, dict) and DIRECTIVE in value:
        merged.pop(key, None)
    else:
        merged[key] = _drop_nulls_and_directives(value, is_final)


def _drop_nulls_and_directives(value: Any, is_final: bool) -> Any:
    """Drop nulls and directives from a patch value that has no counterpart in the document."""
    if isinstance(value, dict):
        return {
            key: _drop_nulls_and_directives(child, is_final)
            for key, child in value.items()
            if not _has_directive(child) and not (is_final and (child is None or key.startswith(_DIRECTIVE_PREFIXES)))
        }
    if isinstance(value, list):
        return [_drop_nulls_and_directives(child, is_final) for child in value if not _has_directive(child)]
    return value


def _drop_directives(value: Any, is_final: bool) -> Any:
    """Drop directives from a new element. k8s: nulls stay; a struct ignores them."""
    if not is_final:
        return value
    if isinstance(value, dict):
        return {
            key: _drop_directives(child, is_final)
            for key, child in value.items()
            if key != DIRECTIVE and not key.startswith(_DIRECTIVE_PREFIXES)
        }
    return [_drop_directives(child, is_final) for child in value] if isinstance(value, list) else value


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _delete_from_primitive_list(merged: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        merged.pop(name, None)
    elif isinstance(merged.get(name), list) and isinstance(value, list):
        if merged[name] or value:
            find_element_type(merged[name], value)
        merged[name] = remove_elements(merged[name], value)


def _merge_list(
    original: Sequence[Any], patch: Sequence[Any], field: Shape | None, strategy: str, is_final: bool
) -> list[Any]:
    if strategy != "merge":
        return list(patch)
    if not original and not patch:
        return list(original)
    if find_element_type(original, patch) is not dict:
        merged = remove_duplicates([*original, *patch])
        patched, untouched = split_by_identity(merged, patch, "")
        return interleave(patched, untouched, patch, original, "")
    merge_key = get_merge_key(field)
    if not merge_key:
        raise PatchError("cannot merge lists without merge key")
    live, changes = _apply_element_directives(original, patch, merge_key)
    merged = _merge_elements(live, changes, merge_key, item_shape(field), is_final)
    patched, untouched = split_by_identity(merged, changes, merge_key)
    return interleave(patched, untouched, changes, live, merge_key)


def _apply_element_directives(
    original: Sequence[Any], patch: Sequence[Any], merge_key: str
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Apply the elements with a `$patch` directive, and return the remaining elements of both lists."""
    plain_elements: list[Any] = []
    deleted_identities: set[Any] = set()
    replaces = False
    for element in patch:
        if DIRECTIVE not in element:
            plain_elements.append(element)
            continue
        match element[DIRECTIVE]:
            case "delete":
                if merge_key not in element:
                    raise build_missing_merge_key_error(element, merge_key)
                deleted_identities.add(element_identity(element, merge_key))
            case "replace":
                replaces = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case directive:
                raise build_unknown_directive_error(directive, element)
    if replaces:
        return plain_elements, []
    return [
        original_element
        for original_element in original
        if element_identity(original_element, merge_key) not in deleted_identities
    ] if deleted_identities else original, plain_elements


def _merge_elements(
    original: Sequence[Any], patch: Sequence[Any], merge_key: str, shape: Shape | None, is_final: bool
) -> list[Any]:
    merged = list(original)
    index_by_identity: dict[Any, int] = {}
    for index, element in enumerate(merged):
        index_by_identity.setdefault(element_identity(element, merge_key), index)
    for element in patch:
        if merge_key not in element:
            raise build_missing_merge_key_error(element, merge_key)
        key = element_identity(element, merge_key)
        if key in index_by_identity:
            merged[index_by_identity[key]] = merge_maps(
                merged[index_by_identity[key]], element, shape, is_final=is_final
            )
        else:
            index_by_identity[key] = len(merged)
            merged.append(_drop_directives(element, is_final))
    return merged
