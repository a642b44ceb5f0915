"""Printer columns of a custom kind (`kubectl get`).

In: additionalPrinterColumns. Out: column definitions, and the cells of a manifest. Never: fails on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from argosy.kube.schema.crd.go_format import number
from argosy.kube.schema.jsonpath import JSONPath, compiled

Column = dict[str, Any]
_NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": (
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
        "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It "
        "is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More "
        "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    ),
}


class Columns:
    """The columns of one version. The first is the name; if none are declared, the second is the age."""

    __slots__ = ("_paths", "definitions")

    def __init__(self, declared: Sequence[Mapping[str, Any]]) -> None:
        columns = declared or [_AGE]
        self.definitions: list[Column] = [_definition("Name", "string", "name", _NAME_DESCRIPTION, 0)]
        self._paths: list[tuple[str, JSONPath]] = []
        for each in columns:
            path = str(each.get("jsonPath") or "")
            described = each.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
            kind, name = str(each.get("type") or ""), str(each.get("name") or "")
            self.definitions.append(
                _definition(name, kind, str(each.get("format") or ""), described, each.get("priority") or 0)
            )
            self._paths.append((kind, compiled(path)))

    def cells(self, manifest: Mapping[str, Any], now: datetime) -> list[Any]:
        cells: list[Any] = [(manifest.get("metadata") or {}).get("name")]
        for kind, path in self._paths:
            found = path.find(manifest)
            cells.append(_cell(kind, found[0], now) if found else None)
        return cells


def _definition(name: str, kind: str, form: str, described: str, priority: int) -> Column:
    return {"name": name, "type": kind, "format": form, "description": described, "priority": priority}


def _cell(kind: str, value: Any, now: datetime) -> Any:
    if kind == "string":
        return _text(value)
    if value is None:
        return None
    match kind, value:
        case "boolean", bool():
            return value
        case _, bool():
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return float(value)
        case "date", str():
            return _age(value, now)
    return None


def _text(value: Any) -> str:
    """Format like Go's JSONPath printer: scalars as they are, maps and lists as JSON."""
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    return number(value) if isinstance(value, int | float) else str(value)


def _age(text: str, now: datetime) -> str:
    if not text:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(text.replace("Z", "+00:00"))
        seconds = (now - then).total_seconds()
    except (ValueError, TypeError):
        return "<invalid>"
    return _human_duration()(seconds)


def _human_duration() -> Callable[[float], str]:
    """Imported lazily: most custom objects are never printed."""
    found: Callable[[float], str] = import_module("argosy.kube.schema.columns").human_duration
    return found
