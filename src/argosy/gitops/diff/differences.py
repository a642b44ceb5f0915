"""Lists every differing field of a pair, with the manager and time of the live value.

In: a pair that differs. Out: differences in the order of their paths. Never: shows a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from argosy.errors import PatchError
from argosy.gitops.application.step_results import Difference, Pair
from argosy.gitops.diff.field_subset import same
from argosy.gitops.diff.secret_masks import masked_pair
from argosy.gitops.diff.typed_manifests import ShapeOf, no_shape, shape_for
from argosy.kube.objects import Manifest
from argosy.kube.patch.field_comparison import field_shape
from argosy.kube.patch.field_sets import is_member
from argosy.kube.patch.json_pointer import format_tokens, parse
from argosy.kube.patch.managed_fields import Manager, managers_of
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.path_elements import SELF

Token = str | int
Place = tuple[Token, ...]


def differences(
    pair: Pair, *, masked_annotations: Collection[str] = (), shape_of: ShapeOf = no_shape
) -> list[Difference]:
    """Return one difference per field; a single one for the whole object if a side is missing.

    Indices are those of live.
    """
    if not pair.differs:
        return []
    managers = _managers(pair.live)
    shown = masked_pair(pair, masked_annotations)
    if shown.desired is None or shown.live is None:
        has_desired, has_live = shown.desired is not None, shown.live is not None
        return [Difference("", shown.desired, shown.live, has_desired, has_live)]
    if shown.predicted is None or shown.compared is None:
        return []
    shape = shape_for(shown.desired, shape_of)
    found = _maps(shown.predicted, shown.compared, shape, ())
    return [_owned(each, shown.compared, managers) for each in found]


class _Found(NamedTuple):
    tokens: Place
    desired: Any
    live: Any
    has_desired: bool = True
    has_live: bool = True


def _maps(desired: dict[str, Any], live: dict[str, Any], shape: Shape | None, at: Place) -> Iterator[_Found]:
    for name in sorted(desired.keys() | live.keys()):
        place = (*at, name)
        if name not in live:
            yield _Found(place, desired[name], None, has_live=False)
        elif name not in desired:
            yield _Found(place, None, live[name], has_desired=False)
        else:
            yield from _values(desired[name], live[name], field_shape(shape, name), place)


def _values(desired: Any, live: Any, shape: Shape | None, at: Place) -> Iterator[_Found]:
    if same(desired, live):
        return
    if isinstance(desired, dict) and isinstance(live, dict):
        yield from _maps(desired, live, shape, at)
    elif isinstance(desired, list) and isinstance(live, list):
        within = list(_lists(desired, live, shape, at))
        # The same elements in another order are one difference of the whole list.
        yield from within or [_Found(at, desired, live)]
    else:
        yield _Found(at, desired, live)


def _lists(desired: list[Any], live: list[Any], shape: Shape | None, at: Place) -> Iterator[_Found]:
    items = shape.items() if shape is not None and shape.kind == "list" else None
    names = keys_of(desired, live, shape)
    if not names:
        yield from _by_index(desired, live, items, at)
        return
    wanted = {identity(item, names, shape): item for item in desired}
    for index, item in enumerate(live):
        mine = wanted.pop(identity(item, names, shape), None)
        if mine is None:
            yield _Found((*at, index), None, item, has_desired=False)
        else:
            yield from _values(mine, item, items, (*at, index))
    for index, item in enumerate(wanted.values(), start=len(live)):
        yield _Found((*at, index), item, None, has_live=False)


def _by_index(desired: list[Any], live: list[Any], items: Shape | None, at: Place) -> Iterator[_Found]:
    scalars = not any(isinstance(item, dict | list) for item in (*desired, *live))
    if scalars:
        yield _Found(at, desired, live)
        return
    for index, (mine, theirs) in enumerate(zip(desired, live)):
        yield from _values(mine, theirs, items, (*at, index))
    for index, item in enumerate(desired[len(live) :], start=len(live)):
        yield _Found((*at, index), item, None, has_live=False)
    for index, item in enumerate(live[len(desired) :], start=len(desired)):
        yield _Found((*at, index), None, item, has_desired=False)


def keys_of(one: Sequence[Any], other: Sequence[Any], shape: Shape | None) -> Sequence[str]:
    """Return the fields that identify list elements: the keys of the shape, else `name` if all have it, else none."""
    known: list[Sequence[str]] = []
    if shape is not None and shape.kind == "list":
        known = [keys for keys in (shape.map_keys, [shape.merge_key]) if keys and keys[0]]
    for names in (*known, ["name"]):
        if all(_tells_apart(items, names, shape) for items in (one, other)):
            return names
    return ()


def _tells_apart(items: Sequence[Any], names: Sequence[str], shape: Shape | None) -> bool:
    if not all(isinstance(item, dict) for item in items):
        return False
    found = [identity(item, names, shape) for item in items]
    return len(set(found)) == len(found) and all(b"null" not in parts for parts in found)


def identity(item: Any, names: Sequence[str], shape: Shape | None = None) -> tuple[bytes, ...]:
    def value(name: str) -> Any:
        if name in item or shape is None or shape.kind != "list":
            return item.get(name)
        return shape.key_default(name)

    return tuple(orjson.dumps(value(name)) for name in names)


def _managers(live: Manifest | None) -> list[Manager]:
    try:
        return managers_of(live) if live is not None else []
    except PatchError:
        return []


def _owned(found: _Found, live: Manifest, managers: Sequence[Manager]) -> Difference:
    pointer = format_tokens(found.tokens)
    sides = found.desired, found.live, found.has_desired, found.has_live
    owner = owner_of(found.tokens, live, managers) if found.has_live else None
    return Difference(pointer, *sides, owner.name, owner.time) if owner else Difference(pointer, *sides)


def owner_of(tokens: Sequence[Token], live: Manifest, managers: Sequence[Manager]) -> Manager | None:
    """Return the manager of the field or of its nearest ancestor; the latest of several."""
    best: tuple[int, str] = (0, "")
    owner = None
    for each in managers:
        try:
            depth = _depth(each.fields.tree, tokens, live)
        except PatchError:
            continue
        if depth and (depth, each.time) > best:
            best, owner = (depth, each.time), each
    return owner


def _depth(tree: dict[str, Any], tokens: Sequence[Token], value: Any) -> int:
    """Return how deep on the path to the field the tree has an owned node; owning parts of the field counts as owning
    it.
    """
    deepest = 0
    for depth, token in enumerate(tokens, start=1):
        if isinstance(token, int):
            value = value[token] if isinstance(value, list) and token < len(value) else None
            node = next((node for element, node in tree.items() if _names(element, token, value)), None)
        else:
            value = value.get(token) if isinstance(value, dict) else None
            node = tree.get(f"f:{token}")
        if node is None:
            return deepest
        if is_member(node) or depth == len(tokens):
            deepest = depth
        tree = node
    return deepest


def _names(element: str, index: int, item: Any) -> bool:
    if element == SELF:
        return False
    kind, _, text = element.partition(":")
    if kind == "i":
        return text == str(index)
    try:
        value = orjson.loads(text)
    except ValueError:
        return False
    if kind == "k" and isinstance(value, dict) and isinstance(item, dict):
        # a server may default a key field
        return all(item.get(name, wanted) == wanted for name, wanted in value.items())
    return kind == "v" and value == item


def readable(pointer: str, manifest: Manifest) -> str:
    """Format a pointer as `.spec.containers[name="web"].image`; elements without a name get their index."""
    value: Any = manifest
    text = ""
    for token in parse(pointer):
        if isinstance(value, list):
            value = value[int(token)] if token.isdecimal() and int(token) < len(value) else None
            name = value.get("name") if isinstance(value, dict) else None
            text += f'[name="{name}"]' if isinstance(name, str) else f"[{token}]"
            continue
        value = value.get(token) if isinstance(value, dict) else None
        text += f".{token}" if token.replace("_", "").isalnum() else f'["{token}"]'
    return text
