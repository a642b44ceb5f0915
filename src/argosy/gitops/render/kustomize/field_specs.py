"""Field specs of transformers, and the walk to their fields. In: specs and a manifest. Out: visited fields.

Never: creates a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.gvk import Gvk, order_key

Visit = Callable[[dict[str, Any], str], None]
_MISSING = object()


class FieldSpec(NamedTuple):
    path: str
    gvk: Gvk = Gvk()
    create: bool = False


def spec_of(given: dict[str, Any]) -> FieldSpec:
    gvk = Gvk(given.get("group") or "", given.get("version") or "", given.get("kind") or "")
    return FieldSpec(given.get("path") or "", gvk, bool(given.get("create")))


def merged(old: Iterable[FieldSpec], new: Iterable[FieldSpec]) -> list[FieldSpec]:
    """k8s: a new spec is dropped if an old one has its path and a kind that the new one selects."""
    found = list(old)
    for spec in new:
        same = next((each for each in found if each.path == spec.path and each.gvk.is_selected_by(spec.gvk)), None)
        if same is None:
            found.append(spec)
        elif same.create != spec.create:
            raise RenderError(f"two specs of the field {spec.path} differ in `create`: make them equal")
    return found


def ordered(specs: Iterable[FieldSpec]) -> list[FieldSpec]:
    return sorted(specs, key=lambda spec: order_key(spec.gvk))


@lru_cache(4096)
def steps_of(path: str) -> tuple[tuple[str, bool], ...]:
    """Split a path into names, each with True if it must be a list."""
    # k8s: a leading slash is ignored.
    parts = [part.replace("\0", "/") for part in path.removeprefix("/").replace("\\/", "\0").split("/")]
    if "*" in parts:
        raise RenderError(f"the field path {path!r} has a `*`: remove it, lists are traversed without it")
    if "" in parts or "[]" in parts:
        raise RenderError(f"the field path {path!r} has an empty field name: correct it")
    return tuple((part.removesuffix("[]"), part.endswith("[]")) for part in parts)


def check_single(holder: dict[str, Any], name: str) -> None:
    """k8s: a transformer of names, numbers or images rejects a map or a list."""
    if isinstance(holder.get(name), dict | list):
        raise RenderError(f"{name} is a map or a list, not a single value: correct the field specs")


def visit(manifest: dict[str, Any], path: str, found: Visit, create: Callable[[], Any] | None = None) -> None:
    """Call `visitor(holder, name)` for each field at the path; `create` returns the value of a missing field."""
    _visit(manifest, steps_of(path), 0, found, create)


def _visit(
    node: Any, steps: tuple[tuple[str, bool], ...], at: int, found: Visit, create: Callable[[], Any] | None
) -> None:
    if type(node) is list:
        for each in node:
            _visit(each, steps, at, found, create)
        return
    if node is None:
        return
    name, is_list = steps[at]
    if type(node) is not dict:
        raise RenderError(f"{'/'.join(step for step, _ in steps[:at])} is {str(node)[:40]!r}, not a map with {name}")
    last = at == len(steps) - 1
    value = node.get(name, _MISSING)
    if value is _MISSING or value is None:
        if create is None or is_list:
            if value is _MISSING or not last:
                return
        else:
            value = node[name] = create() if last else {}
    if last:
        found(node, name)
    else:
        _visit(value, steps, at + 1, found, create)
