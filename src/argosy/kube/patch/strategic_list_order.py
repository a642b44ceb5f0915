"""Lists in a strategic merge: which elements are the same, and in which order they go.

In: lists, a merge key ("" for scalars). Out: new lists. Never: looks at a field other than the merge key and `$patch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.kube.objects.go_format import format_value, get_go_type

DIRECTIVE: Final = "$patch"
ElementIdentity = tuple[type, Any]


def build_type_error(expected: str, value: Any) -> PatchError:
    return PatchError(f"expected a {expected}, but received a {get_go_type(value)}")


def build_missing_merge_key_error(element: Any, merge_key: str) -> PatchError:
    return PatchError(f"map: {format_value(element)} does not contain declared merge key: {merge_key}")


def build_unknown_directive_error(directive: Any, holder: Any) -> PatchError:
    return PatchError(f"unknown patch type: {format_value(directive)} in map: {format_value(holder)}")


def find_element_type(*lists: Sequence[Any]) -> type:
    """Return the type that all elements share; raise PatchError if they differ."""
    common_type: type | None = None
    for elements in lists:
        for element in elements:
            if common_type is None:
                common_type = type(element)
                if common_type is list:
                    raise PatchError("lists of lists are not supported")
            elif type(element) is not common_type:
                raise PatchError(
                    f"list element types are not identical: {format_value([list(elements) for elements in lists])}"
                )
    if common_type is None:
        raise PatchError("no elements in any of the given slices")
    return common_type


def element_identity(element: Any, merge_key: str) -> ElementIdentity:
    """Return the merge key's value (None if the map lacks it) or the scalar itself: equal identities merge."""
    if merge_key:
        if not isinstance(element, dict):
            raise build_type_error("map[string]interface {}", element)
        element = element.get(merge_key)
    if isinstance(element, dict | list):
        raise PatchError(f"invalid merge key value {format_value(element)}: expected a scalar")
    return type(element), element


def require_merge_key(elements: Sequence[Any], merge_key: str) -> None:
    for element in elements:
        if not isinstance(element, dict):
            raise build_type_error("map[string]interface {}", element)
        if merge_key not in element:
            raise build_missing_merge_key_error(element, merge_key)


def index_first_positions(elements: Sequence[Any], merge_key: str) -> Mapping[ElementIdentity, int]:
    """Map each identity to its first position."""
    first_positions: dict[ElementIdentity, int] = {}
    for index, element in enumerate(elements):
        first_positions.setdefault(element_identity(element, merge_key), index)
    return first_positions


def is_deletion(element: Any) -> bool:
    return isinstance(element, dict) and element.get(DIRECTIVE) == "delete"


def split_by_identity(elements: Sequence[Any], selected: Sequence[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Split into elements whose identity occurs in `selected`, and the others."""
    if merge_key:
        require_merge_key(elements, merge_key)
    selected_identities = index_first_positions(selected, merge_key)
    matching: list[Any] = []
    others: list[Any] = []
    for element in elements:
        (matching if element_identity(element, merge_key) in selected_identities else others).append(element)
    return matching, others


def sort_by_order(elements: Sequence[Any], order: Sequence[Any], merge_key: str) -> list[Any]:
    """Sort by first position in `order`; deletions come last."""
    if merge_key:
        require_merge_key(elements, merge_key)
        require_merge_key(order, merge_key)
    position_by_identity = index_first_positions(order, merge_key)
    kept = [element for element in elements if not is_deletion(element)]
    kept.sort(key=lambda element: position_by_identity.get(element_identity(element, merge_key), -1))
    return kept + [element for element in elements if is_deletion(element)]


def interleave(
    patched: Sequence[Any],
    untouched: Sequence[Any],
    patch_order: Sequence[Any],
    live_order: Sequence[Any],
    merge_key: str,
) -> list[Any]:
    """Merge both lists into one; each keeps its own order.

    k8s: an untouched element goes before the first patched element that followed it in the live list. No untouched
    element moves past a patched element that is new, so new elements come before the remaining untouched ones.
    """
    right = sort_by_order(patched, patch_order, merge_key)
    left = sort_by_order(untouched, live_order, merge_key)
    live_positions = index_first_positions(live_order, merge_key)
    merged: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        left_position = live_positions.get(element_identity(left[i], merge_key))
        right_position = live_positions.get(element_identity(right[j], merge_key))
        if left_position is not None and right_position is not None and left_position < right_position:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return [*merged, *left[i:], *right[j:]]


def live_order_after_changes(live: Sequence[Any], changes: Sequence[Any], merge_key: str) -> list[Any]:
    """Return the order of the live list that `interleave` uses after `changes` were merged.

    k8s: the server deletes and appends in the live list's backing array and reads the order from it afterwards, so new
    elements take the slots at its end that deletions freed.
    """
    slots = list(live)
    used_count = len(slots)
    for element in changes:
        if is_deletion(element):
            kept = [
                slot
                for slot in slots[:used_count]
                if element_identity(slot, merge_key) != element_identity(element, merge_key)
            ]
            slots[: len(kept)] = kept
            used_count = len(kept)
    if used_count == len(slots) or any(element.get(DIRECTIVE) == "replace" for element in changes):
        return slots
    known_identities = set(index_first_positions(slots[:used_count], merge_key))
    for element in changes:
        if (
            DIRECTIVE not in element
            and used_count < len(slots)
            and element_identity(element, merge_key) not in known_identities
        ):
            known_identities.add(element_identity(element, merge_key))
            slots[used_count] = element
            used_count += 1
    return slots


def remove_duplicates(elements: Sequence[Any]) -> list[Any]:
    seen: set[ElementIdentity] = set()
    kept: list[Any] = []
    for element in elements:
        key = element_identity(element, "")
        if key not in seen:
            seen.add(key)
            kept.append(element)
    return kept


def remove_elements(elements: Sequence[Any], removed: Sequence[Any]) -> list[Any]:
    removed_identities = index_first_positions(removed, "")
    return [element for element in elements if element_identity(element, "") not in removed_identities]


def check_element_order(patch_list: Sequence[Any], order: Sequence[Any], merge_key: str) -> None:
    """Raise PatchError unless the `$setElementOrder` list contains the patch list's elements in the same order."""
    if not order or not patch_list:
        return
    expected = [element for element in patch_list if not (merge_key and is_deletion(element))]
    index = 0
    for ordered_element in order:
        while index < len(expected) and isinstance(expected[index], dict) and DIRECTIVE in expected[index]:
            index += 1
        if index == len(expected):
            return
        if merge_key:
            require_merge_key([expected[index], ordered_element], merge_key)
        if element_identity(expected[index], merge_key) == element_identity(ordered_element, merge_key):
            index += 1
    if index < len(expected):
        raise PatchError(
            f"The order in patch list:\n{format_value(list(patch_list))}\n"
            f" doesn't match $setElementOrder list:\n{format_value(list(order))}\n"
        )
