"""Validates custom objects beyond their schema: duplicate list keys, embedded objects, replica counts.

In: a manifest and its node. Out: errors. Never: repeats a check of `validation`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from argosy.kube.schema.crd.compiled_schema import Node
from argosy.kube.schema.crd.go_format import shown
from argosy.kube.schema.field_error import Fault, duplicate, invalid, required

_NESTED_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}
_KIND = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MOST_REPLICAS = 2**31 - 1


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def list_faults(value: Any, node: Node, path: str, out: list[Fault]) -> None:
    """Report duplicate items of `set` and `map` lists."""
    if isinstance(value, list):
        if node.list_type != "atomic":
            _repeated(value, node, path, out)
        if node.item is not None and node.item.has_lists:
            for index, each in enumerate(value):
                list_faults(each, node.item, f"{path}[{index}]", out)
    elif isinstance(value, dict):
        for name, child in node.properties.items():
            if child.has_lists and name in value:
                list_faults(value[name], child, _child(path, name), out)
        if node.additional is not None and node.additional.has_lists:
            for name in sorted(value.keys() - node.properties.keys()):
                list_faults(value[name], node.additional, f"{path}[{name}]", out)


def _repeated(value: list[Any], node: Node, path: str, out: list[Fault]) -> None:
    seen: dict[str, int] = {}
    for index, each in enumerate(value):
        if node.list_type == "map":
            if each is not None and not isinstance(each, dict):
                out.append(invalid(f"{path}[{index}]", shown(each), "must be an object for an array of list-type map"))
                return
            each = {name: each[name] for name in node.map_keys if name in each} if each else {}
        identity = json.dumps(each, sort_keys=True)
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            out.append(duplicate(f"{path}[{index}]", shown(each)))


def embedded_faults(value: Any, node: Node, path: str, out: list[Fault]) -> None:
    """Report embedded objects without a valid apiVersion and kind."""
    if isinstance(value, list) and node.item is not None:
        for index, each in enumerate(value):
            embedded_faults(each, node.item, f"{path}[{index}]", out)
    elif isinstance(value, dict):
        if node.embedded and path:
            _embedded(value, path, out)
        for name, child in node.properties.items():
            if name in value and (child.embedded or child.has_embedded):
                embedded_faults(value[name], child, _child(path, name), out)
        additional = node.additional
        if additional is not None and (additional.embedded or additional.has_embedded):
            for name in sorted(value.keys() - node.properties.keys()):
                embedded_faults(value[name], additional, f"{path}[{name}]", out)


def _embedded(value: dict[str, Any], path: str, out: list[Fault]) -> None:
    for name in ("apiVersion", "kind"):
        if name not in value:
            out.append(required(f"{path}.{name}", "must not be empty"))
        elif not isinstance(value[name], str):
            out.append(invalid(f"{path}.{name}", shown(value[name]), "must be a string"))
        elif not value[name]:
            out.append(invalid(f"{path}.{name}", '""', "must not be empty"))
    kind = value.get("kind")
    if isinstance(kind, str) and kind and not _KIND.fullmatch(kind.lower()):
        words = (
            "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric "
            "characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. "
            "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        )
        out.append(invalid(f"{path}.kind", shown(kind), words))


def scale_faults(manifest: dict[str, Any], paths: tuple[str, str, str]) -> list[Fault]:
    """Check replica counts and the selector. `paths` are those of the scale subresource: spec, status, selector."""
    faults: list[Fault] = []
    for path in paths[:2]:
        value, problem = nested(manifest, path, int)
        count = value if isinstance(value, int) else 0
        if problem:
            faults.append(invalid(path, "0", problem))
        elif count < 0:
            faults.append(invalid(path, str(count), "should be a non-negative integer"))
        elif count > _MOST_REPLICAS:
            faults.append(invalid(path, str(count), f"should be less than or equal to {_MOST_REPLICAS}"))
    if paths[2]:
        _, problem = nested(manifest, paths[2], str)
        if problem:
            faults.append(invalid(paths[2], '""', problem))
    return faults


def nested(manifest: dict[str, Any], path: str, wanted: type) -> tuple[Any, str]:
    """Return the value at a dotted path (None if absent), and Go's error message if it has the wrong type."""
    names = path.removeprefix(".").split(".")
    value: Any = manifest
    for place, name in enumerate(names):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            where = "." + ".".join(names[: place + 1])
            found = _NESTED_TYPES[type(value)]
            return (
                None,
                f"{where} accessor error: {_go(value)} is of the type {found}, expected map[string]interface{{}}",
            )
        if name not in value:
            return None, ""
        value = value[name]
    if type(value) is not wanted:
        found = "<nil>" if value is None else _NESTED_TYPES[type(value)]
        expected = _NESTED_TYPES[wanted]
        return None, f".{'.'.join(names)} accessor error: {_go(value)} is of the type {found}, expected {expected}"
    return value, ""


def _go(value: Any) -> str:
    """Format like Go's `%v`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{key}:{_go(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(_go, value))}]"
        case str():
            return value
    return shown(value)
