"""Lists every differing field of a pair, with the manager and time of the live value.

In: a pair that differs. Out: differences in the order of their paths. Never: shows a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from argosy.errors import PatchError
from argosy.gitops.application.step_results import FieldDifference, Pair
from argosy.gitops.diff.field_projection import is_same_json
from argosy.gitops.diff.go_type_round_trip import FindShape, find_manifest_shape, find_no_shape
from argosy.gitops.diff.secret_masks import mask_pair
from argosy.kube.objects import Manifest
from argosy.kube.patch.changed_field_path_trees import field_shape
from argosy.kube.patch.field_sets import is_member
from argosy.kube.patch.fields_v1_path_elements import SELF
from argosy.kube.patch.json_pointer import format_tokens, parse
from argosy.kube.patch.managed_fields import Manager, read_managers
from argosy.kube.patch.merge_schema_protocol import Shape

Token = str | int
FieldPath = tuple[Token, ...]


def list_differences(
    pair: Pair, *, masked_annotations: Collection[str] = (), find_shape: FindShape = find_no_shape
) -> list[FieldDifference]:
    """Return one difference per field; a single one for the whole object if a side is missing.

    Indices are those of live.
    """
    if not pair.differs:
        return []
    managers = _read_managers(pair.live)
    masked_sides = mask_pair(pair, masked_annotations)
    if masked_sides.desired is None or masked_sides.live is None:
        has_desired, has_live = masked_sides.desired is not None, masked_sides.live is not None
        return [FieldDifference("", masked_sides.desired, masked_sides.live, has_desired, has_live)]
    if masked_sides.predicted is None or masked_sides.compared is None:
        return []
    shape = find_manifest_shape(masked_sides.desired, find_shape)
    field_differences = _compare_maps(masked_sides.predicted, masked_sides.compared, shape, ())
    return [_add_owner(difference, masked_sides.compared, managers) for difference in field_differences]


class _FieldDifference(NamedTuple):
    tokens: FieldPath
    desired: Any
    live: Any
    has_desired: bool = True
    has_live: bool = True


def _compare_maps(
    desired: dict[str, Any], live: dict[str, Any], shape: Shape | None, path: FieldPath
) -> Iterator[_FieldDifference]:
    for name in sorted(desired.keys() | live.keys()):
        field_path = (*path, name)
        if name not in live:
            yield _FieldDifference(field_path, desired[name], None, has_live=False)
        elif name not in desired:
            yield _FieldDifference(field_path, None, live[name], has_desired=False)
        else:
            yield from _compare_values(desired[name], live[name], field_shape(shape, name), field_path)


def _compare_values(desired: Any, live: Any, shape: Shape | None, path: FieldPath) -> Iterator[_FieldDifference]:
    if is_same_json(desired, live):
        return
    if isinstance(desired, dict) and isinstance(live, dict):
        yield from _compare_maps(desired, live, shape, path)
    elif isinstance(desired, list) and isinstance(live, list):
        element_differences = list(_compare_lists(desired, live, shape, path))
        # The same elements in another order are one difference of the whole list.
        yield from element_differences or [_FieldDifference(path, desired, live)]
    else:
        yield _FieldDifference(path, desired, live)


def _compare_lists(
    desired: list[Any], live: list[Any], shape: Shape | None, path: FieldPath
) -> Iterator[_FieldDifference]:
    items = shape.items() if shape is not None and shape.kind == "list" else None
    names = find_element_keys(desired, live, shape)
    if not names:
        yield from _compare_by_index(desired, live, items, path)
        return
    desired_by_key = {element_identity(item, names, shape): item for item in desired}
    for index, item in enumerate(live):
        desired_item = desired_by_key.pop(element_identity(item, names, shape), None)
        if desired_item is None:
            yield _FieldDifference((*path, index), None, item, has_desired=False)
        else:
            yield from _compare_values(desired_item, item, items, (*path, index))
    for index, item in enumerate(desired_by_key.values(), start=len(live)):
        yield _FieldDifference((*path, index), item, None, has_live=False)


def _compare_by_index(
    desired: list[Any], live: list[Any], items: Shape | None, path: FieldPath
) -> Iterator[_FieldDifference]:
    are_all_scalars = not any(isinstance(item, dict | list) for item in (*desired, *live))
    if are_all_scalars:
        yield _FieldDifference(path, desired, live)
        return
    for index, (desired_item, live_item) in enumerate(zip(desired, live)):
        yield from _compare_values(desired_item, live_item, items, (*path, index))
    for index, item in enumerate(desired[len(live) :], start=len(live)):
        yield _FieldDifference((*path, index), item, None, has_live=False)
    for index, item in enumerate(live[len(desired) :], start=len(desired)):
        yield _FieldDifference((*path, index), None, item, has_desired=False)


def find_element_keys(left: Sequence[Any], right: Sequence[Any], shape: Shape | None) -> Sequence[str]:
    """Return the fields that identify list elements: the keys of the shape, else `name` if all have it, else none."""
    candidates: list[Sequence[str]] = []
    if shape is not None and shape.kind == "list":
        candidates = [keys for keys in (shape.map_keys, [shape.merge_key]) if keys and keys[0]]
    for names in (*candidates, ["name"]):
        if all(_are_unique(items, names, shape) for items in (left, right)):
            return names
    return ()


def _are_unique(items: Sequence[Any], names: Sequence[str], shape: Shape | None) -> bool:
    if not all(isinstance(item, dict) for item in items):
        return False
    identities = [element_identity(item, names, shape) for item in items]
    return len(set(identities)) == len(identities) and all(b"null" not in parts for parts in identities)


def element_identity(item: Any, names: Sequence[str], shape: Shape | None = None) -> tuple[bytes, ...]:
    def value(name: str) -> Any:
        if name in item or shape is None or shape.kind != "list":
            return item.get(name)
        return shape.key_default(name)

    return tuple(orjson.dumps(value(name)) for name in names)


def _read_managers(live: Manifest | None) -> list[Manager]:
    try:
        return read_managers(live) if live is not None else []
    except PatchError:
        return []


def _add_owner(difference: _FieldDifference, live: Manifest, managers: Sequence[Manager]) -> FieldDifference:
    pointer = format_tokens(difference.tokens)
    sides = difference.desired, difference.live, difference.has_desired, difference.has_live
    owner = find_owner(difference.tokens, live, managers) if difference.has_live else None
    return FieldDifference(pointer, *sides, owner.name, owner.time) if owner else FieldDifference(pointer, *sides)


def find_owner(tokens: Sequence[Token], live: Manifest, managers: Sequence[Manager]) -> Manager | None:
    """Return the manager of the field or of its nearest ancestor; the latest of several."""
    best: tuple[int, str] = (0, "")
    owner = None
    for manager in managers:
        try:
            depth = _owned_depth(manager.fields.tree, tokens, live)
        except PatchError:
            continue
        if depth and (depth, manager.time) > best:
            best, owner = (depth, manager.time), manager
    return owner


def _owned_depth(tree: dict[str, Any], tokens: Sequence[Token], value: Any) -> int:
    """Return how deep on the path to the field the tree has an owned node; owning parts of the field counts as owning
    it.
    """
    deepest = 0
    for depth, token in enumerate(tokens, start=1):
        if isinstance(token, int):
            value = value[token] if isinstance(value, list) and token < len(value) else None
            node = next((node for element, node in tree.items() if _matches_element(element, token, value)), None)
        else:
            value = value.get(token) if isinstance(value, dict) else None
            node = tree.get(f"f:{token}")
        if node is None:
            return deepest
        if is_member(node) or depth == len(tokens):
            deepest = depth
        tree = node
    return deepest


def _matches_element(element: str, index: int, item: Any) -> bool:
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
        return all(item.get(name, expected) == expected for name, expected in value.items())
    return kind == "v" and value == item


def format_pointer(pointer: str, manifest: Manifest) -> str:
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
