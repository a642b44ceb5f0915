"""Copies values from one field to others (`replacements`). In: replacements. Out: changed resources.

Never: picks one of several possible sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.kustomize.error_lines import within
from argosy.gitops.render.kustomize.gvk import Gvk, gvk_of
from argosy.gitops.render.kustomize.resource import Id, Resource
from argosy.gitops.render.kustomize.resources import Resources, carries
from argosy.kube.objects import Profile
from argosy.kube.objects.yaml_scalars import resolve

_STEP = re.compile(r"((?:\\\.|\[[^\]]*\]|[^.\[])+)(?:\.|$)|(\[[^\]]*\])\.?")
_FILTER = re.compile(r"\[([^=\]]*)=(.*)\]", re.DOTALL)
_NEW: Final = object()
_LARGEST: Final = 1024 * 1024


def replace(resources: Resources, given: dict[str, Any], where: str) -> None:
    try:
        value = _source(resources, given, where)
        if isinstance(value, dict | list):
            value = _copied(value, where)  # else a target inside the source would change it
    except RenderError as error:
        raise within(error, "source") from None
    targets = given.get("targets")
    if not targets:
        raise RenderError("a replacement has no targets: add them", where=where)
    for number, target in enumerate(targets):
        try:
            if not target or target.get("select") is None:
                raise RenderError("a target of a replacement has no `select`: add it", where=where)
            _into(resources, target, value, where)
        except RenderError as error:
            raise within(error, "targets", number) from None


def _source(resources: Resources, given: dict[str, Any], where: str) -> Any:
    if given.get("sourceValue") is not None and not given.get("source"):
        return given["sourceValue"]
    source = given.get("source")
    if not source:
        raise RenderError("a replacement has no source: add it", where=where)
    found = [each for each in resources.listed if _chosen(each, source)]
    what = ", ".join(f"{name} {source[name]}" for name in ("kind", "name", "namespace") if source.get(name))
    if len(found) != 1:
        said = "no resource matches" if not found else f"{len(found)} resources match"
        raise RenderError(f"replacements: {said} the source {what}; correct it", where=where)
    path = source.get("fieldPath") or "metadata.name"
    manifest = {"metadata": {"annotations": found[0].texts("annotations")}} if _is_note(path) else found[0].manifest
    if "*" in _steps(path):
        raise RenderError(f"replacements: {path} of the source {what} has a `*`: use a path of one field", where=where)
    try:
        values = [holder[key] for holder, key in _find(manifest, _steps(path), None)]
    except RenderError as error:
        raise RenderError(f"replacements: {path} of the source {what}: {error.message}", where=where) from None
    value = values[0] if values else None
    if value is None or value == {} or value == []:
        raise RenderError(f"replacements: {path} of the source {what} is missing; correct fieldPath", where=where)
    return _piece(value, source.get("options") or {}, path, where)


def _is_note(path: str) -> bool:
    return path.startswith("metadata.annotations.")


def _piece(value: Any, options: dict[str, Any], path: str, where: str) -> Any:
    delimiter = options.get("delimiter")
    if not delimiter:
        return value
    if isinstance(value, dict | list):
        raise RenderError(f"replacements: {path} is not a string, so it has no delimiter", where=where)
    parts = _text(value).split(delimiter)
    index = options.get("index") or 0
    if not 0 <= index < len(parts):
        raise RenderError(f"replacements: {path} has {len(parts)} parts, so index {index} is out of range", where=where)
    return parts[index]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _gvk(selector: dict[str, Any]) -> Gvk:
    if selector.get("apiVersion"):
        return gvk_of(selector["apiVersion"], selector.get("kind") or "")
    return Gvk(selector.get("group") or "", selector.get("version") or "", selector.get("kind") or "")


def _chosen(resource: Resource, selector: dict[str, Any]) -> bool:
    gvk, name, space = _gvk(selector), selector.get("name"), selector.get("namespace")

    def fits(id: Id) -> bool:
        return (
            (not name or id.name == name)
            and (not space or id.namespace == space or (space == "default" and id.place == space))
            and id.gvk.is_selected_by(gvk)
        )

    return any(map(fits, resource.ids()))


def _into(resources: Resources, target: dict[str, Any], value: Any, where: str) -> None:
    select = target["select"]
    options = target.get("options") or {}
    for resource in resources.listed:
        if not _chosen(resource, select) or not carries(resource, select, where):
            continue
        if any(_rejected(resource, each, where) for each in target.get("reject") or ()):
            continue
        for number, path in enumerate(target.get("fieldPaths") or ["metadata.name"]):
            try:
                _put(resource, path, value, options, where)
            except RenderError as error:
                raise within(error, "fieldPaths", number) from None


def _rejected(resource: Resource, selector: dict[str, Any], where: str) -> bool:
    if not any(selector.values()):
        return False
    return _chosen(resource, selector) and carries(resource, selector, where)


def _put(resource: Resource, path: str, value: Any, options: dict[str, Any], where: str) -> None:
    create: Callable[[], Any] | None = (lambda: _NEW) if options.get("create") else None
    try:
        fields = list(_find(resource.manifest, _steps(path), create))
    except RenderError as error:
        raise RenderError(f"replacements: {path} of {resource.id}: {error.message}", where=where) from None
    if not fields:
        if create is None:
            message = f"replacements: {resource.id} has no field {path}; correct it or set options.create"
            raise RenderError(message, where=where)
        return
    for holder, key in fields:
        holder[key] = _changed(holder[key], value, options, path, where)


def _changed(current: Any, value: Any, options: dict[str, Any], path: str, where: str) -> Any:
    if isinstance(value, dict | list) and isinstance(current, str | int | float):
        value = ""  # k8s: a scalar takes the text of the new value, and a map or a list has none
    delimiter = options.get("delimiter")
    if delimiter:
        if isinstance(current, dict | list):
            raise RenderError(f"replacements: {path} is not a string, so it has no delimiter", where=where)
        parts = [""] if current is _NEW else _text(current).split(delimiter)
        index = options.get("index") or 0
        if index < 0:
            parts.insert(0, _text(value))
        elif index >= len(parts):
            parts.append(_text(value))
        else:
            parts[index] = _text(value)
        value = delimiter.join(parts)
    if isinstance(value, dict | list):
        return _copied(value, where)
    if isinstance(current, dict | list):
        return value
    # k8s: an existing field keeps its type; a new field gets the type that the text looks like.
    if isinstance(current, str):
        return _text(value)
    found = resolve(_text(value), Profile.KUSTOMIZE)
    if current is not _NEW and not _fits(found, current):
        was = _text(current) or "null"
        raise RenderError(f"replacements: {path} is {was}, which {_text(value)[:40]!r} cannot replace", where=where)
    return found


def _copied(value: Any, where: str) -> Any:
    data = orjson.dumps(value)
    if len(data) > _LARGEST:
        raise LimitError(f"replacements: a value exceeds {_LARGEST} bytes: use a smaller value", where=where)
    return orjson.loads(data)


def _fits(value: Any, current: Any) -> bool:
    return type(value) is type(current) or (type(current) is float and type(value) is int)


def _steps(path: str) -> list[str]:
    steps = []
    if ".." in path.replace("\\.", "") or path.endswith("."):
        raise RenderError("the path has an empty field name: correct it")
    for match in _STEP.finditer(path):
        text = match[1] if match[1] is not None else match[2]
        if text:
            steps.append(_field_name(text.replace("\\.", ".")))
    return steps


def _field_name(step: str) -> str:
    """`[a.b]` is the field `a.b`; brackets without a dot select list elements."""
    plain = step[1:-1] if step.startswith("[") and step.endswith("]") else ""
    return plain if "." in plain and "=" not in plain else step


def _find(node: Any, steps: list[str], create: Callable[[], Any] | None) -> Iterator[tuple[Any, Any]]:
    """Yield the holder and key of each field at a path."""
    if not steps:
        raise RenderError("the path of a field is empty: correct it")
    step, rest = steps[0], steps[1:]
    for key in _keys(node, step, rest, create):
        if not rest:
            yield node, key
        else:
            yield from _find(node[key], rest, create)


def _keys(node: Any, step: str, rest: list[str], create: Callable[[], Any] | None) -> list[Any]:
    if step == "*":
        if isinstance(node, dict):
            raise RenderError("* selects list elements, but the field is a map: use a field name")
        return list(range(len(node))) if isinstance(node, list) else []
    if isinstance(node, list):
        return _elements(node, step, rest, create)
    if not isinstance(node, dict):
        if node is None or node is _NEW:
            return []
        raise RenderError(f"{str(node)[:40]!r} has no field {step}")
    if step.startswith("[") and step.endswith("]"):
        raise RenderError(f"{step} selects a list element, but the field is a map: use a field name without brackets")
    if node.get(step) is None and (create is not None) and (step not in node or rest):
        node[step] = create() if not rest else [] if _is_list_step(rest[0]) else {}
    return [step] if step in node else []


def _is_list_step(step: str) -> bool:
    return bool(_FILTER.fullmatch(step)) or step.isdigit()


def _elements(node: list[Any], step: str, rest: list[str], create: Callable[[], Any] | None) -> list[int]:
    if re.fullmatch(r"\[?-?\d+\]?", step):
        index = int(step.strip("[]"))
        if index >= len(node) or index < 0:
            if create is not None and index == len(node):
                node.append(create() if not rest else {})
                return [index]
            raise RenderError(f"index {index} is out of range: the list has {len(node)} elements")
        return [index]
    match = _FILTER.fullmatch(step)
    if match is None:
        raise RenderError(f"{step} does not select a list element: use an index, [key=value] or *")
    key, wanted = match.groups()
    if not key:
        found = [at for at, each in enumerate(node) if not isinstance(each, dict | list) and _text(each) == wanted]
    else:
        found = [
            at
            for at, each in enumerate(node)
            # k8s: an empty value matches any.
            if isinstance(each, dict) and key in each and (not wanted or _text(each[key]) == wanted)
        ]
    if not found and create is not None:
        new = resolve(wanted, Profile.KUSTOMIZE)
        node.append({key: new} if key else new)
        return [len(node) - 1]
    return found
