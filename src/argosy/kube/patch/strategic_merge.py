"""Strategic merge patch, as k8s.io/apimachinery applies it.

In: a document, a patch with directives, the document's shape. Out: a new document. Never: mutates its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.strategic_lists import (
    DIRECTIVE,
    bad_type,
    check_order,
    element_type,
    identity,
    no_merge_key,
    slots_after,
    split_by,
    unique,
    unknown_directive,
    weave,
    without,
)

RETAIN_KEYS: Final = "$retainKeys"
SET_ORDER: Final = "$setElementOrder"
DELETE_FROM: Final = "$deleteFromPrimitiveList"
_DIRECTIVES: Final = (RETAIN_KEYS, SET_ORDER + "/", DELETE_FROM + "/")

BAD_RETAIN_KEYS: Final = "invalid patch format of retainKeys"
BAD_ORDER: Final = "invalid patch format of setElementOrder list"
BAD_DELETION: Final = "invalid patch format of primitive list"


def apply(document: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Merge the patch into the document; raise PatchError if a directive or merge key is wrong."""
    return merge_maps(document, patch, shape, is_final=True)


def merge_maps(
    original: Mapping[str, Any] | None, patch: Mapping[str, Any], shape: Shape | None, *, is_final: bool
) -> dict[str, Any]:
    """Merge a patch into a document (`is_final`), or into another patch: then nulls and directives are kept."""
    if DIRECTIVE in patch:
        return _directed(patch)
    merged = dict(original or {})
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        _retain(merged, rest, is_final)
    for key in [each for each in rest if each.startswith(SET_ORDER)]:
        _ordered(merged, rest, key, shape, is_final)
    deletions: list[tuple[str, Any]] = []
    for key, value in rest.items():
        if not key.startswith(DELETE_FROM):
            _merge_field(merged, key, value, shape, is_final)
        elif is_final:
            deletions.append((_list_name(key, DELETE_FROM, BAD_DELETION), value))
        else:
            merged[key] = value
    for name, value in deletions:
        _delete_scalars(merged, name, value)
    return merged


def strategy_of(shape: Shape | None) -> tuple[bool, str]:
    """Return whether the field has the `retainKeys` strategy, and its other strategy: `merge`, `replace` or ""."""
    if shape is None or not shape.strategies:
        return False, ""
    others = [each for each in shape.strategies if each != "retainKeys"]
    retains = len(others) < len(shape.strategies)
    if len(others) > 1:
        raise PatchError(f"unexpected patch strategy: [{' '.join(shape.strategies)}]")
    return retains, others[0] if others else ""


def field_of(shape: Shape | None, name: str) -> Shape | None:
    """Return the shape of a field. None means free-form JSON: maps merge and lists are replaced."""
    if shape is None or shape.kind == "untyped":
        return None
    found = shape.field(name)
    if found is None and shape.kind == "struct":
        raise PatchError(f'unable to find api field "{name}"')
    return found


def items_of(shape: Shape | None) -> Shape | None:
    return shape.items() if shape is not None and shape.kind == "list" else None


def merge_key_of(shape: Shape | None) -> str:
    return shape.merge_key if shape is not None else ""


def _directed(patch: Mapping[str, Any]) -> dict[str, Any]:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
    raise unknown_directive(patch[DIRECTIVE], patch)


def _retain(merged: dict[str, Any], patch: dict[str, Any], is_final: bool) -> None:
    keys = patch.pop(RETAIN_KEYS)
    if not is_final:
        if merged.setdefault(RETAIN_KEYS, keys) != keys:
            raise PatchError(
                f"{merged[RETAIN_KEYS]} and {keys} are not deep equal: "
                "this may happen when calculating the 3-way diff patch"
            )
        return
    if not isinstance(keys, list):
        raise PatchError(BAD_RETAIN_KEYS)
    for key, value in patch.items():
        if value is not None and key not in keys and not key.startswith((DELETE_FROM, SET_ORDER)):
            raise PatchError(BAD_RETAIN_KEYS)
    for key in [each for each in merged if each not in keys]:
        del merged[key]


def _list_name(key: str, prefix: str, otherwise: str) -> str:
    head, slash, name = key.partition("/")
    if not slash or head != prefix:
        raise PatchError(otherwise)
    return name


def _ordered(merged: dict[str, Any], patch: dict[str, Any], key: str, shape: Shape | None, is_final: bool) -> None:
    """Merge one list and its `$setElementOrder`, and remove both from the patch so that no later step sees them."""
    order = patch.pop(key)
    if not is_final and merged.setdefault(key, order) != order:
        raise PatchError(BAD_ORDER)
    if not isinstance(order, list):
        raise bad_type("[]interface {}", order)
    name = _list_name(key, SET_ORDER, BAD_ORDER)
    live, changes = merged.get(name), patch.get(name)
    for each, found in ((live, name in merged), (changes, name in patch)):
        if found and not isinstance(each, list):
            raise bad_type("[]interface {}", each)
    field = field_of(shape, name)
    merge_key = merge_key_of(field)
    check_order(changes or [], order, merge_key)
    match name in merged, name in patch:
        case True, True:
            both = _merge_list(live or [], changes or [], field, strategy_of(field)[1], is_final)
        case True, False:
            both = live or []
        case False, True:
            both = [_plain(each, is_final) for each in _fresh(changes, is_final=False)]
        case _:
            return
    of_maps = element_type(live or [], changes or []) is dict
    live_order = slots_after(live or [], changes or [], merge_key) if of_maps else live or []
    patched, untouched = split_by(both, order, merge_key)
    merged[name] = weave(patched, untouched, order, live_order, merge_key)
    patch.pop(name, None)


def _merge_field(merged: dict[str, Any], key: str, value: Any, shape: Shape | None, is_final: bool) -> None:
    if value is None:
        merged.pop(key, None)
        if not is_final:
            merged[key] = None
        return
    present = merged.get(key)
    if isinstance(present, dict) and isinstance(value, dict):
        field = field_of(shape, key)
        replaces = strategy_of(field)[1] == "replace"
        merged[key] = value if replaces else merge_maps(present, value, field, is_final=is_final)
    elif isinstance(present, list) and isinstance(value, list):
        field = field_of(shape, key)
        merged[key] = _merge_list(present, value, field, strategy_of(field)[1], is_final)
    elif isinstance(value, dict) and DIRECTIVE in value:
        merged.pop(key, None)
    else:
        merged[key] = _fresh(value, is_final)


def _fresh(value: Any, is_final: bool) -> Any:
    """Drop nulls and directives from a patch value that has no counterpart in the document."""
    if isinstance(value, dict):
        return {
            key: _fresh(child, is_final)
            for key, child in value.items()
            if not _is_directed(child) and not (is_final and (child is None or key.startswith(_DIRECTIVES)))
        }
    if isinstance(value, list):
        return [_fresh(child, is_final) for child in value if not _is_directed(child)]
    return value


def _plain(value: Any, is_final: bool) -> Any:
    """Drop directives from a new element. k8s: nulls stay; a struct ignores them."""
    if not is_final:
        return value
    if isinstance(value, dict):
        return {
            key: _plain(child, is_final)
            for key, child in value.items()
            if key != DIRECTIVE and not key.startswith(_DIRECTIVES)
        }
    return [_plain(child, is_final) for child in value] if isinstance(value, list) else value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _delete_scalars(merged: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        merged.pop(name, None)
    elif isinstance(merged.get(name), list) and isinstance(value, list):
        if merged[name] or value:
            element_type(merged[name], value)
        merged[name] = without(merged[name], value)


def _merge_list(
    original: Sequence[Any], patch: Sequence[Any], field: Shape | None, strategy: str, is_final: bool
) -> list[Any]:
    if strategy != "merge":
        return list(patch)
    if not original and not patch:
        return list(original)
    if element_type(original, patch) is not dict:
        merged = unique([*original, *patch])
        patched, untouched = split_by(merged, patch, "")
        return weave(patched, untouched, patch, original, "")
    merge_key = merge_key_of(field)
    if not merge_key:
        raise PatchError("cannot merge lists without merge key")
    live, changes = _obey_elements(original, patch, merge_key)
    merged = _merge_elements(live, changes, merge_key, items_of(field), is_final)
    patched, untouched = split_by(merged, changes, merge_key)
    return weave(patched, untouched, changes, live, merge_key)


def _obey_elements(
    original: Sequence[Any], patch: Sequence[Any], merge_key: str
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Apply the elements with a `$patch` directive, and return the remaining elements of both lists."""
    plain: list[Any] = []
    gone: set[Any] = set()
    replaces = False
    for element in patch:
        if DIRECTIVE not in element:
            plain.append(element)
            continue
        match element[DIRECTIVE]:
            case "delete":
                if merge_key not in element:
                    raise no_merge_key(element, merge_key)
                gone.add(identity(element, merge_key))
            case "replace":
                replaces = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case directive:
                raise unknown_directive(directive, element)
    if replaces:
        return plain, []
    return [each for each in original if identity(each, merge_key) not in gone] if gone else original, plain


def _merge_elements(
    original: Sequence[Any], patch: Sequence[Any], merge_key: str, shape: Shape | None, is_final: bool
) -> list[Any]:
    merged = list(original)
    place: dict[Any, int] = {}
    for index, element in enumerate(merged):
        place.setdefault(identity(element, merge_key), index)
    for element in patch:
        if merge_key not in element:
            raise no_merge_key(element, merge_key)
        mark = identity(element, merge_key)
        if mark in place:
            merged[place[mark]] = merge_maps(merged[place[mark]], element, shape, is_final=is_final)
        else:
            place[mark] = len(merged)
            merged.append(_plain(element, is_final))
    return merged
