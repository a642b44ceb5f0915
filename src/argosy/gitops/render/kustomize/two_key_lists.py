"""Merges lists with two merge keys, such as ports. In: a list and the patch for it. Out: the merged list.

Never: merges two elements itself; the caller does.

k8s: an element that lacks a key matches any other with an equal value of the other key, and replaces it. This is
kustomize's behavior: of port 53 with TCP and port 53 without a protocol, the latter stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.gitops.render.kustomize.resource import scalar_to_text

Element = dict[str, Any]
MergeElements = Callable[[Element | None, Element | None], Element | None]
"""Merges an existing element with that of a patch; None if nothing is left."""


def merge_two_key_list(
    target: list[Element], patch: list[Element], keys: Sequence[str], merge: MergeElements
) -> list[Element]:
    """Merge the lists; elements that only the patch has come first."""
    values = list(
        dict.fromkeys(tuple(scalar_to_text(key_values.get(key)) for key in keys) for key_values in (*patch, *target))
    )
    values = _complete_keys(values)
    used_indexes = [i for i in range(len(keys)) if any(key_values[i] for key_values in values)] or list(
        range(len(keys))
    )
    names = [keys[i] for i in used_indexes]
    remaining: list[Element] = list(target)
    result: list[Element] = []
    for key_values in values:
        wanted_values = [key_values[i] for i in used_indexes]
        present_pairs = [pair for pair in zip(names, wanted_values) if pair[1]] or list(zip(names, wanted_values))
        merged = merge(_find_first(remaining, present_pairs), _find_first(patch, present_pairs))
        if not merged:
            remaining = [
                element for element in remaining if element and not _matches_keys(element, names, wanted_values)
            ]
            continue
        for key, value in present_pairs:
            merged.setdefault(key, value)
        result = _replace_or_append(result, names, wanted_values, merged)
    for element in remaining:
        result = _append_element(result, names, element)
    return result


def _complete_keys(values: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Fill in missing keys from elements that may be the same."""
    values = list(values)
    for index in range(len(values)):
        key_values = values[index]
        for other_index, other_values in enumerate(values):
            pairs = list(zip(key_values, other_values))
            if any(a == b for a, b in pairs) and all(a == b or not a or not b for a, b in pairs):
                values[index] = values[other_index] = tuple(a or b for a, b in pairs)
    return values


def _append_element(elements: list[Element], names: Sequence[str], element: Element) -> list[Element]:
    """Append an element, and remove those that it matches."""
    wanted_values = [scalar_to_text(element[name]) for name in names if name in element]
    if not wanted_values:
        return [element]
    if len(names) == 1:
        return _replace_or_append(elements, names, wanted_values, element)
    elements = [existing for existing in elements if existing and not _matches_keys(existing, names, wanted_values)]
    if len(wanted_values) < len(names) and _matches_keys(element, names, wanted_values):
        return [*elements, element]
    return [*elements, *([element] * (len(names) - len(wanted_values))), element]


def _replace_or_append(
    elements: list[Element], names: Sequence[str], wanted_values: Sequence[str], element: Element
) -> list[Element]:
    matches = [_matches_keys(existing, names, wanted_values) for existing in elements]
    changed = [element if is_match else existing for existing, is_match in zip(elements, matches) if existing]
    return changed if any(matches) else [*changed, element]


def _find_first(elements: list[Element], pairs: list[tuple[str, str]]) -> Element | None:
    names, wanted_values = zip(*pairs)
    return next((element for element in elements if _matches_keys(element, names, wanted_values)), None)


def _matches_keys(element: Element, names: Sequence[str], wanted_values: Sequence[str]) -> bool:
    """k8s: an empty text matches any present value; if there are fewer values than names, they belong to the first
    names.
    """
    return all(
        element.get(name) is not None and (not value or scalar_to_text(element[name]) == value)
        for name, value in zip(names, wanted_values)
    )
