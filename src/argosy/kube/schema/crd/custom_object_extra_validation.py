"""Validates custom objects beyond their schema: duplicate list keys, embedded objects, replica counts.

In: a manifest and its node. Out: errors. Never: repeats a check of `validation`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.kube.objects.go_format import GO_TYPE_NAMES, format_value, get_go_type
from argosy.kube.schema.crd.compiled_schema import SchemaNode
from argosy.kube.schema.field_error import FieldError, duplicate, format_invalid_value, invalid, required

_KIND_PATTERN = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MAX_REPLICAS = 2**31 - 1


def _child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def check_duplicate_list_items(value: Any, node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    """Report duplicate items of `set` and `map` lists."""
    if isinstance(value, list):
        if node.list_type != "atomic":
            _check_duplicate_items(value, node, path, errors)
        if node.item is not None and node.item.has_lists:
            for index, item in enumerate(value):
                check_duplicate_list_items(item, node.item, f"{path}[{index}]", errors)
    elif isinstance(value, dict):
        for name, child in node.properties.items():
            if child.has_lists and name in value:
                check_duplicate_list_items(value[name], child, _child_path(path, name), errors)
        if node.additional_properties is not None and node.additional_properties.has_lists:
            for name in sorted(value.keys() - node.properties.keys()):
                check_duplicate_list_items(value[name], node.additional_properties, f"{path}[{name}]", errors)


def _check_duplicate_items(value: list[Any], node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        if node.list_type == "map":
            if item is not None and not isinstance(item, dict):
                errors.append(
                    invalid(
                        f"{path}[{index}]",
                        format_invalid_value(item),
                        "must be an object for an array of list-type map",
                    )
                )
                return
            item = {name: item[name] for name in node.map_keys if name in item} if item else {}
        identity = json.dumps(item, sort_keys=True)
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            errors.append(duplicate(f"{path}[{index}]", format_invalid_value(item)))


def check_embedded_objects(value: Any, node: SchemaNode, path: str, errors: list[FieldError]) -> None:
    """Report embedded objects without a valid apiVersion and kind."""
    if isinstance(value, list) and node.item is not None:
        for index, item in enumerate(value):
            check_embedded_objects(item, node.item, f"{path}[{index}]", errors)
    elif isinstance(value, dict):
        if node.is_embedded_resource and path:
            _check_embedded_object(value, path, errors)
        for name, child in node.properties.items():
            if name in value and (child.is_embedded_resource or child.has_embedded):
                check_embedded_objects(value[name], child, _child_path(path, name), errors)
        additional = node.additional_properties
        if additional is not None and (additional.is_embedded_resource or additional.has_embedded):
            for name in sorted(value.keys() - node.properties.keys()):
                check_embedded_objects(value[name], additional, f"{path}[{name}]", errors)


def _check_embedded_object(value: dict[str, Any], path: str, errors: list[FieldError]) -> None:
    for name in ("apiVersion", "kind"):
        if name not in value:
            errors.append(required(f"{path}.{name}", "must not be empty"))
        elif not isinstance(value[name], str):
            errors.append(invalid(f"{path}.{name}", format_invalid_value(value[name]), "must be a string"))
        elif not value[name]:
            errors.append(invalid(f"{path}.{name}", '""', "must not be empty"))
    kind = value.get("kind")
    if isinstance(kind, str) and kind and not _KIND_PATTERN.fullmatch(kind.lower()):
        detail = (
            "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric "
            "characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. "
            "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        )
        errors.append(invalid(f"{path}.kind", format_invalid_value(kind), detail))


def check_replicas_and_selector(manifest: dict[str, Any], paths: tuple[str, str, str]) -> list[FieldError]:
    """Check replica counts and the selector. `paths` are those of the scale subresource: spec, status, selector."""
    errors: list[FieldError] = []
    for path in paths[:2]:
        value, problem = read_nested_value(manifest, path, int)
        count = value if isinstance(value, int) else 0
        if problem:
            errors.append(invalid(path, "0", problem))
        elif count < 0:
            errors.append(invalid(path, str(count), "should be a non-negative integer"))
        elif count > _MAX_REPLICAS:
            errors.append(invalid(path, str(count), f"should be less than or equal to {_MAX_REPLICAS}"))
    if paths[2]:
        _, problem = read_nested_value(manifest, paths[2], str)
        if problem:
            errors.append(invalid(paths[2], '""', problem))
    return errors


def read_nested_value(manifest: dict[str, Any], path: str, expected_type: type) -> tuple[Any, str]:
    """Return the value at a dotted path (None if absent), and Go's error message if it has the wrong type."""
    names = path.removeprefix(".").split(".")
    value: Any = manifest
    for depth, name in enumerate(names):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            parent_path = "." + ".".join(names[: depth + 1])
            actual_type_name = get_go_type(value)
            return (
                None,
                f"{parent_path} accessor error: {format_value(value)} is of the type {actual_type_name}, "
                f"expected map[string]interface{{}}",
            )
        if name not in value:
            return None, ""
        value = value[name]
    if type(value) is not expected_type:
        actual_type_name = get_go_type(value)
        expected_type_name = GO_TYPE_NAMES[expected_type]
        return (
            None,
            f".{'.'.join(names)} accessor error: {format_value(value)} is of the type {actual_type_name}, "
            f"expected {expected_type_name}",
        )
    return value, ""
