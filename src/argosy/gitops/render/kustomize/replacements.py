"""Copies values from one field to others (`replacements`). In: replacements. Out: changed resources.

Never: picks one of several possible sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from argosy.errors import LimitError, RenderError
from argosy.gitops.render.kustomize.error_lines import prepend_path
from argosy.gitops.render.kustomize.gvk import Gvk, parse_gvk
from argosy.gitops.render.kustomize.resource import KustomizeResource, ResourceId
from argosy.gitops.render.kustomize.resource_map import KustomizeResources, matches_selectors
from argosy.kube.objects import YamlDialect
from argosy.kube.objects.yaml_scalars import resolve_scalar

_PATH_STEP = re.compile(r"((?:\\\.|\[[^\]]*\]|[^.\[])+)(?:\.|$)|(\[[^\]]*\])\.?")
_ELEMENT_FILTER = re.compile(r"\[([^=\]]*)=(.*)\]", re.DOTALL)
_NEW_FIELD: Final = object()
_MAX_VALUE_BYTES: Final = 1024 * 1024


def apply_replacement_values(resources: KustomizeResources, replacement: dict[str, Any], where: str) -> None:
    try:
        value = _read_source_value(resources, replacement, where)
        if isinstance(value, dict | list):
            value = _copy_within_limit(value, where)  # else a target inside the source would change it
    except RenderError as error:
        raise prepend_path(error, "source") from None
    targets = replacement.get("targets")
    if not targets:
        raise RenderError("a replacement has no targets: add them", where=where)
    for number, target in enumerate(targets):
        try:
            if not target or target.get("select") is None:
                raise RenderError("a target of a replacement has no `select`: add it", where=where)
            _apply_to_target(resources, target, value, where)
        except RenderError as error:
            raise prepend_path(error, "targets", number) from None


def _read_source_value(resources: KustomizeResources, replacement: dict[str, Any], where: str) -> Any:
    if replacement.get("sourceValue") is not None and not replacement.get("source"):
        return replacement["sourceValue"]
    source = replacement.get("source")
    if not source:
        raise RenderError("a replacement has no source: add it", where=where)
    matching = [resource for resource in resources.items if _is_selected(resource, source)]
    source_text = ", ".join(f"{name} {source[name]}" for name in ("kind", "name", "namespace") if source.get(name))
    if len(matching) != 1:
        count_text = "no resource matches" if not matching else f"{len(matching)} resources match"
        raise RenderError(f"replacements: {count_text} the source {source_text}; correct it", where=where)
    path = source.get("fieldPath") or "metadata.name"
    manifest = (
        {"metadata": {"annotations": matching[0].get_metadata_strings("annotations")}}
        if _is_annotation_path(path)
        else matching[0].manifest
    )
    if "*" in _split_path(path):
        raise RenderError(
            f"replacements: {path} of the source {source_text} has a `*`: use a path of one field", where=where
        )
    try:
        values = [holder[key] for holder, key in _find_fields(manifest, _split_path(path), None)]
    except RenderError as error:
        raise RenderError(f"replacements: {path} of the source {source_text}: {error.message}", where=where) from None
    value = values[0] if values else None
    if value is None or value == {} or value == []:
        raise RenderError(
            f"replacements: {path} of the source {source_text} is missing; correct fieldPath", where=where
        )
    return _select_part(value, source.get("options") or {}, path, where)


def _is_annotation_path(path: str) -> bool:
    return path.startswith("metadata.annotations.")


def _select_part(value: Any, options: dict[str, Any], path: str, where: str) -> Any:
    delimiter = options.get("delimiter")
    if not delimiter:
        return value
    if isinstance(value, dict | list):
        raise RenderError(f"replacements: {path} is not a string, so it has no delimiter", where=where)
    parts = _scalar_to_text(value).split(delimiter)
    index = options.get("index") or 0
    if not 0 <= index < len(parts):
        raise RenderError(f"replacements: {path} has {len(parts)} parts, so index {index} is out of range", where=where)
    return parts[index]


def _scalar_to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _read_selector_gvk(selector: dict[str, Any]) -> Gvk:
    if selector.get("apiVersion"):
        return parse_gvk(selector["apiVersion"], selector.get("kind") or "")
    return Gvk(selector.get("group") or "", selector.get("version") or "", selector.get("kind") or "")


def _is_selected(resource: KustomizeResource, selector: dict[str, Any]) -> bool:
    gvk, name, namespace = _read_selector_gvk(selector), selector.get("name"), selector.get("namespace")

    def matches(id: ResourceId) -> bool:
        return (
            (not name or id.name == name)
            and (
                not namespace
                or id.namespace == namespace
                or (namespace == "default" and id.effective_namespace == namespace)
            )
            and id.gvk.is_selected_by(gvk)
        )

    return any(map(matches, resource.list_ids()))


def _apply_to_target(resources: KustomizeResources, target: dict[str, Any], value: Any, where: str) -> None:
    select = target["select"]
    options = target.get("options") or {}
    for resource in resources.items:
        if not _is_selected(resource, select) or not matches_selectors(resource, select, where):
            continue
        if any(_is_rejected(resource, selector, where) for selector in target.get("reject") or ()):
            continue
        for number, path in enumerate(target.get("fieldPaths") or ["metadata.name"]):
            try:
                _set_field(resource, path, value, options, where)
            except RenderError as error:
                raise prepend_path(error, "fieldPaths", number) from None


def _is_rejected(resource: KustomizeResource, selector: dict[str, Any], where: str) -> bool:
    if not any(selector.values()):
        return False
    return _is_selected(resource, selector) and matches_selectors(resource, selector, where)


def _set_field(resource: KustomizeResource, path: str, value: Any, options: dict[str, Any], where: str) -> None:
    create: Callable[[], Any] | None = (lambda: _NEW_FIELD) if options.get("create") else None
    try:
        fields = list(_find_fields(resource.manifest, _split_path(path), create))
    except RenderError as error:
        raise RenderError(f"replacements: {path} of {resource.id}: {error.message}", where=where) from None
    if not fields:
        if create is None:
            message = f"replacements: {resource.id} has no field {path}; correct it or set options.create"
            raise RenderError(message, where=where)
        return
    for holder, key in fields:
        holder[key] = _compute_new_value(holder[key], value, options, path, where)


def _compute_new_value(current: Any, value: Any, options: dict[str, Any], path: str, where: str) -> Any:
    if isinstance(value, dict | list) and isinstance(current, str | int | float):
        value = ""  # k8s: a scalar takes the text of the new value, and a map or a list has none
    delimiter = options.get("delimiter")
    if delimiter:
        if isinstance(current, dict | list):
            raise RenderError(f"replacements: {path} is not a string, so it has no delimiter", where=where)
        parts = [""] if current is _NEW_FIELD else _scalar_to_text(current).split(delimiter)
        index = options.get("index") or 0
        if index < 0:
            parts.insert(0, _scalar_to_text(value))
        elif index >= len(parts):
            parts.append(_scalar_to_text(value))
        else:
            parts[index] = _scalar_to_text(value)
        value = delimiter.join(parts)
    if isinstance(value, dict | list):
        return _copy_within_limit(value, where)
    if isinstance(current, dict | list):
        return value
    # k8s: an existing field keeps its type; a new field gets the type that the text looks like.
    if isinstance(current, str):
        return _scalar_to_text(value)
    typed_value = resolve_scalar(_scalar_to_text(value), YamlDialect.KUSTOMIZE)
    if current is not _NEW_FIELD and not _has_compatible_type(typed_value, current):
        current_text = _scalar_to_text(current) or "null"
        raise RenderError(
            f"replacements: {path} is {current_text}, which {_scalar_to_text(value)[:40]!r} cannot replace", where=where
        )
    return typed_value


def _copy_within_limit(value: Any, where: str) -> Any:
    data = orjson.dumps(value)
    if len(data) > _MAX_VALUE_BYTES:
        raise LimitError(f"replacements: a value exceeds {_MAX_VALUE_BYTES} bytes: use a smaller value", where=where)
    return orjson.loads(data)


def _has_compatible_type(value: Any, current: Any) -> bool:
    return type(value) is type(current) or (type(current) is float and type(value) is int)


def _split_path(path: str) -> list[str]:
    steps = []
    if ".." in path.replace("\\.", "") or path.endswith("."):
        raise RenderError("the path has an empty field name: correct it")
    for match in _PATH_STEP.finditer(path):
        text = match[1] if match[1] is not None else match[2]
        if text:
            steps.append(_field_name(text.replace("\\.", ".")))
    return steps


def _field_name(step: str) -> str:
    """`[a.b]` is the field `a.b`; brackets without a dot select list elements."""
    unbracketed = step[1:-1] if step.startswith("[") and step.endswith("]") else ""
    return unbracketed if "." in unbracketed and "=" not in unbracketed else step


def _find_fields(node: Any, steps: list[str], create: Callable[[], Any] | None) -> Iterator[tuple[Any, Any]]:
    """Yield the holder and key of each field at a path."""
    if not steps:
        raise RenderError("the path of a field is empty: correct it")
    step, remaining_steps = steps[0], steps[1:]
    for key in _list_keys(node, step, remaining_steps, create):
        if not remaining_steps:
            yield node, key
        else:
            yield from _find_fields(node[key], remaining_steps, create)


def _list_keys(node: Any, step: str, remaining_steps: list[str], create: Callable[[], Any] | None) -> list[Any]:
    if step == "*":
        if isinstance(node, dict):
            raise RenderError("* selects list elements, but the field is a map: use a field name")
        return list(range(len(node))) if isinstance(node, list) else []
    if isinstance(node, list):
        return _list_indexes(node, step, remaining_steps, create)
    if not isinstance(node, dict):
        if node is None or node is _NEW_FIELD:
            return []
        raise RenderError(f"{str(node)[:40]!r} has no field {step}")
    if step.startswith("[") and step.endswith("]"):
        raise RenderError(f"{step} selects a list element, but the field is a map: use a field name without brackets")
    if node.get(step) is None and (create is not None) and (step not in node or remaining_steps):
        node[step] = create() if not remaining_steps else [] if _is_list_step(remaining_steps[0]) else {}
    return [step] if step in node else []


def _is_list_step(step: str) -> bool:
    return bool(_ELEMENT_FILTER.fullmatch(step)) or step.isdigit()


def _list_indexes(
    node: list[Any], step: str, remaining_steps: list[str], create: Callable[[], Any] | None
) -> list[int]:
    if re.fullmatch(r"\[?-?\d+\]?", step):
        index = int(step.strip("[]"))
        if index >= len(node) or index < 0:
            if create is not None and index == len(node):
                node.append(create() if not remaining_steps else {})
                return [index]
            raise RenderError(f"index {index} is out of range: the list has {len(node)} elements")
        return [index]
    match = _ELEMENT_FILTER.fullmatch(step)
    if match is None:
        raise RenderError(f"{step} does not select a list element: use an index, [key=value] or *")
    key, wanted_text = match.groups()
    if not key:
        indexes = [
            i
            for i, element in enumerate(node)
            if not isinstance(element, dict | list) and _scalar_to_text(element) == wanted_text
        ]
    else:
        indexes = [
            i
            for i, element in enumerate(node)
            # k8s: an empty value matches any.
            if isinstance(element, dict)
            and key in element
            and (not wanted_text or _scalar_to_text(element[key]) == wanted_text)
        ]
    if not indexes and create is not None:
        new_value = resolve_scalar(wanted_text, YamlDialect.KUSTOMIZE)
        node.append({key: new_value} if key else new_value)
        return [len(node) - 1]
    return indexes
