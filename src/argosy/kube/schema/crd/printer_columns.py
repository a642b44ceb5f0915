"""Printer columns of a custom kind (`kubectl get`).

In: additionalPrinterColumns. Out: column definitions, and the cells of a manifest. Never: fails on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from argosy.kube.objects.go_format import format_value
from argosy.kube.schema.jsonpath import JSONPath, compile_path

Column = dict[str, Any]
_NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE_COLUMN = {
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


class PrinterColumns:
    """The columns of one version. The first is the name; if none are declared, the second is the age."""

    __slots__ = ("_paths", "definitions")

    def __init__(self, declared: Sequence[Mapping[str, Any]]) -> None:
        columns = declared or [_AGE_COLUMN]
        self.definitions: list[Column] = [_build_column_definition("Name", "string", "name", _NAME_DESCRIPTION, 0)]
        self._paths: list[tuple[str, JSONPath]] = []
        for column in columns:
            path = str(column.get("jsonPath") or "")
            description = column.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
            column_type, name = str(column.get("type") or ""), str(column.get("name") or "")
            self.definitions.append(
                _build_column_definition(
                    name, column_type, str(column.get("format") or ""), description, column.get("priority") or 0
                )
            )
            self._paths.append((column_type, compile_path(path)))

    def build_cells(self, manifest: Mapping[str, Any], now: datetime) -> list[Any]:
        cells: list[Any] = [(manifest.get("metadata") or {}).get("name")]
        for column_type, path in self._paths:
            values = path.find_all(manifest)
            cells.append(_format_cell(column_type, values[0], now) if values else None)
        return cells


def _build_column_definition(
    name: str, column_type: str, column_format: str, description: str, priority: int
) -> Column:
    return {
        "name": name,
        "type": column_type,
        "format": column_format,
        "description": description,
        "priority": priority,
    }


def _format_cell(column_type: str, value: Any, now: datetime) -> Any:
    if column_type == "string":
        return _format_text(value)
    if value is None:
        return None
    match column_type, value:
        case "boolean", bool():
            return value
        case _, bool():
            return None
        case "integer", int() | float():
            return int(value)
        case "number", int() | float():
            return float(value)
        case "date", str():
            return _format_age(value, now)
    return None


def _format_text(value: Any) -> str:
    """Format like Go's JSONPath printer: scalars as they are, maps and lists as JSON."""
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return format_value(value)


def _format_age(text: str, now: datetime) -> str:
    if not text:
        return "<unknown>"
    try:
        timestamp = datetime.fromisoformat(text.replace("Z", "+00:00"))
        seconds = (now - timestamp).total_seconds()
    except (ValueError, TypeError):
        return "<invalid>"
    return _load_human_duration()(seconds)


def _load_human_duration() -> Callable[[float], str]:
    """Imported lazily: most custom objects are never printed."""
    human_duration: Callable[[float], str] = import_module("argosy.kube.schema.columns").human_duration
    return human_duration
