"""Lists in a strategic merge: which elements are the same, and in which order they go.

In: lists, a merge key ("" for scalars). Out: new lists. Never: looks at a field other than the merge key and `$patch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.errors import PatchError
from argosy.kube.patch.go_format import show, type_name

DIRECTIVE: Final = "$patch"
Identity = tuple[type, Any]


def bad_type(expected: str, value: Any) -> PatchError:
    return PatchError(f"expected a {expected}, but received a {type_name(value)}")


def no_merge_key(element: Any, merge_key: str) -> PatchError:
    return PatchError(f"map: {show(element)} does not contain declared merge key: {merge_key}")


def unknown_directive(directive: Any, holder: Any) -> PatchError:
    return PatchError(f"unknown patch type: {show(directive)} in map: {show(holder)}")


def element_type(*lists: Sequence[Any]) -> type:
    """Return the type that all elements share; raise PatchError if they differ."""
    found: type | None = None
    for each in lists:
        for element in each:
            if found is None:
                found = type(element)
                if found is list:
                    raise PatchError("lists of lists are not supported")
            elif type(element) is not found:
                raise PatchError(f"list element types are not identical: {show([list(each) for each in lists])}")
    if found is None:
        raise PatchError("no elements in any of the given slices")
    return found


def identity(element: Any, merge_key: str) -> Identity:
    """Return the merge key's value (None if the map lacks it) or the scalar itself: equal identities merge."""
    if merge_key:
        if not isinstance(element, dict):
            raise bad_type("map[string]interface {}", element)
        element = element.get(merge_key)
    if isinstance(element, dict | list):
        raise PatchError(f"invalid merge key value {show(element)}: expected a scalar")
    return type(element), element


def require_merge_key(elements: Sequence[Any], merge_key: str) -> None:
    for element in elements:
        if not isinstance(element, dict):
            raise bad_type("map[string]interface {}", element)
        if merge_key not in element:
            raise no_merge_key(element, merge_key)


def positions(elements: Sequence[Any], merge_key: str) -> Mapping[Identity, int]:
    """Map each identity to its first position."""
    found: dict[Identity, int] = {}
    for index, element in enumerate(elements):
        found.setdefault(identity(element, merge_key), index)
    return found


def is_deletion(element: Any) -> bool:
    return isinstance(element, dict) and element.get(DIRECTIVE) == "delete"


def split_by(elements: Sequence[Any], chosen: Sequence[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Split into elements whose identity occurs in `selected`, and the others."""
    if merge_key:
        require_merge_key(elements, merge_key)
    known = positions(chosen, merge_key)
    inside: list[Any] = []
    outside: list[Any] = []
    for element in elements:
        (inside if identity(element, merge_key) in known else outside).append(element)
    return inside, outside


def sort_like(elements: Sequence[Any], order: Sequence[Any], merge_key: str) -> list[Any]:
    """Sort by first position in `order`; deletions come last."""
    if merge_key:
        require_merge_key(elements, merge_key)
        require_merge_key(order, merge_key)
    place = positions(order, merge_key)
    kept = [element for element in elements if not is_deletion(element)]
    kept.sort(key=lambda element: place.get(identity(element, merge_key), -1))
    return kept + [element for element in elements if is_deletion(element)]


def weave(
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
    right = sort_like(patched, patch_order, merge_key)
    left = sort_like(untouched, live_order, merge_key)
    place = positions(live_order, merge_key)
    woven: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        mine = place.get(identity(left[i], merge_key))
        theirs = place.get(identity(right[j], merge_key))
        if mine is not None and theirs is not None and mine < theirs:
            woven.append(left[i])
            i += 1
        else:
            woven.append(right[j])
            j += 1
    return [*woven, *left[i:], *right[j:]]


def slots_after(live: Sequence[Any], changes: Sequence[Any], merge_key: str) -> list[Any]:
    """Return the order of the live list that `interleave` uses after `changes` were merged.

    k8s: the server deletes and appends in the live list's backing array and reads the order from it afterwards, so new
    elements take the slots at its end that deletions freed.
    """
    slots = list(live)
    used = len(slots)
    for element in changes:
        if is_deletion(element):
            kept = [each for each in slots[:used] if identity(each, merge_key) != identity(element, merge_key)]
            slots[: len(kept)] = kept
            used = len(kept)
    if used == len(slots) or any(element.get(DIRECTIVE) == "replace" for element in changes):
        return slots
    known = set(positions(slots[:used], merge_key))
    for element in changes:
        if DIRECTIVE not in element and used < len(slots) and identity(element, merge_key) not in known:
            known.add(identity(element, merge_key))
            slots[used] = element
            used += 1
    return slots


def unique(elements: Sequence[Any]) -> list[Any]:
    seen: set[Identity] = set()
    kept: list[Any] = []
    for element in elements:
        mark = identity(element, "")
        if mark not in seen:
            seen.add(mark)
            kept.append(element)
    return kept


def without(elements: Sequence[Any], removed: Sequence[Any]) -> list[Any]:
    gone = positions(removed, "")
    return [element for element in elements if identity(element, "") not in gone]


def check_order(patch_list: Sequence[Any], order: Sequence[Any], merge_key: str) -> None:
    """Raise PatchError unless the `$setElementOrder` list contains the patch list's elements in the same order."""
    if not order or not patch_list:
        return
    wanted = [element for element in patch_list if not (merge_key and is_deletion(element))]
    at = 0
    for place in order:
        while at < len(wanted) and isinstance(wanted[at], dict) and DIRECTIVE in wanted[at]:
            at += 1
        if at == len(wanted):
            return
        if merge_key:
            require_merge_key([wanted[at], place], merge_key)
        if identity(wanted[at], merge_key) == identity(place, merge_key):
            at += 1
    if at < len(wanted):
        raise PatchError(
            f"The order in patch list:\n{show(list(patch_list))}\n"
            f" doesn't match $setElementOrder list:\n{show(list(order))}\n"
        )
