"""Field specs of transformers, and the walk to their fields. In: specs and a manifest. Out: visited fields.

Never: creates a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.gvk import Gvk, build_order_key

FieldVisitor = Callable[[dict[str, Any], str], None]
_MISSING_VALUE = object()


class FieldSpec(NamedTuple):
    path: str
    gvk: Gvk = Gvk()
    create: bool = False


def read_field_spec(fields: dict[str, Any]) -> FieldSpec:
    gvk = Gvk(fields.get("group") or "", fields.get("version") or "", fields.get("kind") or "")
    return FieldSpec(fields.get("path") or "", gvk, bool(fields.get("create")))


def merge_field_specs(old: Iterable[FieldSpec], new: Iterable[FieldSpec]) -> list[FieldSpec]:
    """k8s: a new spec is dropped if an old one has its path and a kind that the new one selects."""
    specs = list(old)
    for spec in new:
        existing = next(
            (old_spec for old_spec in specs if old_spec.path == spec.path and old_spec.gvk.is_selected_by(spec.gvk)),
            None,
        )
        if existing is None:
            specs.append(spec)
        elif existing.create != spec.create:
            raise RenderError(f"two specs of the field {spec.path} differ in `create`: make them equal")
    return specs


def sort_field_specs(specs: Iterable[FieldSpec]) -> list[FieldSpec]:
    return sorted(specs, key=lambda spec: build_order_key(spec.gvk))


@lru_cache(4096)
def split_field_path(path: str) -> tuple[tuple[str, bool], ...]:
    """Split a path into names, each with True if it must be a list."""
    # k8s: a leading slash is ignored.
    parts = [part.replace("\0", "/") for part in path.removeprefix("/").replace("\\/", "\0").split("/")]
    if "*" in parts:
        raise RenderError(f"the field path {path!r} has a `*`: remove it, lists are traversed without it")
    if "" in parts or "[]" in parts:
        raise RenderError(f"the field path {path!r} has an empty field name: correct it")
    return tuple((part.removesuffix("[]"), part.endswith("[]")) for part in parts)


def check_is_scalar(holder: dict[str, Any], name: str) -> None:
    """k8s: a transformer of names, numbers or images rejects a map or a list."""
    if isinstance(holder.get(name), dict | list):
        raise RenderError(f"{name} is a map or a list, not a single value: correct the field specs")


def visit_fields(
    manifest: dict[str, Any], path: str, visitor: FieldVisitor, create: Callable[[], Any] | None = None
) -> None:
    """Call `visitor(holder, name)` for each field at the path; `create` returns the value of a missing field."""
    _visit_node(manifest, split_field_path(path), 0, visitor, create)


def _visit_node(
    node: Any, steps: tuple[tuple[str, bool], ...], depth: int, visitor: FieldVisitor, create: Callable[[], Any] | None
) -> None:
    if type(node) is list:
        for element in node:
            _visit_node(element, steps, depth, visitor, create)
        return
    if node is None:
        return
    name, is_list = steps[depth]
    if type(node) is not dict:
        raise RenderError(f"{'/'.join(step for step, _ in steps[:depth])} is {str(node)[:40]!r}, not a map with {name}")
    is_last = depth == len(steps) - 1
    value = node.get(name, _MISSING_VALUE)
    if value is _MISSING_VALUE or value is None:
        if create is None or is_list:
            if value is _MISSING_VALUE or not is_last:
                return
        else:
            value = node[name] = create() if is_last else {}
    if is_last:
        visitor(node, name)
    else:
        _visit_node(value, steps, depth + 1, visitor, create)
