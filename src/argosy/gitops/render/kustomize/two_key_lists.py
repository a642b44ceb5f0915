"""Merges lists with two merge keys, such as ports. In: a list and the patch for it. Out: the merged list.

Never: merges two elements itself; the caller does.

k8s: an element that lacks a key matches any other with an equal value of the other key, and replaces it. This is
kustomize's behavior: of port 53 with TCP and port 53 without a protocol, the latter stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.gitops.render.kustomize.resource import plain_text

Element = dict[str, Any]
Merge = Callable[[Element | None, Element | None], Element | None]
"""Merges an existing element with that of a patch; None if nothing is left."""


def walked(target: list[Element], patch: list[Element], keys: Sequence[str], merge: Merge) -> list[Element]:
    """Merge the lists; elements that only the patch has come first."""
    values = list(dict.fromkeys(tuple(plain_text(each.get(key)) for key in keys) for each in (*patch, *target)))
    values = _completed(values)
    used = [at for at in range(len(keys)) if any(each[at] for each in values)] or list(range(len(keys)))
    names = [keys[at] for at in used]
    kept: list[Element] = list(target)
    found: list[Element] = []
    for each in values:
        wanted = [each[at] for at in used]
        known = [pair for pair in zip(names, wanted) if pair[1]] or list(zip(names, wanted))
        merged = merge(_first(kept, known), _first(patch, known))
        if not merged:
            kept = [one for one in kept if one and not _fits(one, names, wanted)]
            continue
        for key, value in known:
            merged.setdefault(key, value)
        found = _put(found, names, wanted, merged)
    for one in kept:
        found = _moved(found, names, one)
    return found


def _completed(values: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Fill in missing keys from elements that may be the same."""
    values = list(values)
    for place in range(len(values)):
        mine = values[place]
        for other, theirs in enumerate(values):
            pairs = list(zip(mine, theirs))
            if any(a == b for a, b in pairs) and all(a == b or not a or not b for a, b in pairs):
                values[place] = values[other] = tuple(a or b for a, b in pairs)
    return values


def _moved(found: list[Element], names: Sequence[str], element: Element) -> list[Element]:
    """Append an element, and remove those that it matches."""
    wanted = [plain_text(element[name]) for name in names if name in element]
    if not wanted:
        return [element]
    if len(names) == 1:
        return _put(found, names, wanted, element)
    found = [each for each in found if each and not _fits(each, names, wanted)]
    if len(wanted) < len(names) and _fits(element, names, wanted):
        return [*found, element]
    return [*found, *([element] * (len(names) - len(wanted))), element]


def _put(found: list[Element], names: Sequence[str], wanted: Sequence[str], element: Element) -> list[Element]:
    fitting = [_fits(each, names, wanted) for each in found]
    changed = [element if fits else each for each, fits in zip(found, fitting) if each]
    return changed if any(fitting) else [*changed, element]


def _first(elements: list[Element], known: list[tuple[str, str]]) -> Element | None:
    names, wanted = zip(*known)
    return next((each for each in elements if _fits(each, names, wanted)), None)


def _fits(element: Element, names: Sequence[str], wanted: Sequence[str]) -> bool:
    """k8s: an empty text matches any present value; if there are fewer values than names, they belong to the first
    names.
    """
    return all(
        element.get(name) is not None and (not value or plain_text(element[name]) == value)
        for name, value in zip(names, wanted)
    )
