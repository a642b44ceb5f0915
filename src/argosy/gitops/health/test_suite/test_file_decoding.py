"""Reads test files as Go decodes them into structs. In: YAML data. Out: rows of plain values.

argo: field names are case-insensitive, unknown fields are ignored, null is the empty value, and a number or boolean in
a string field is converted to a string. Any other wrong type makes the file unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.actions import ResourceAction
from argosy.kube.objects.go_format import format_float

_NUMBER: Final = "a number"
_TYPE_NAMES: Final = {
    dict: "a map",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: _NUMBER,
    float: _NUMBER,
}


class CaseFileRow:
    """One map of a test file; `path` says which, as in `tests[3]`."""

    def __init__(self, value: Any, path: str, where: str) -> None:
        if value is not None and not isinstance(value, dict):
            raise type_error(value, "a map", path, where)
        self._value: Mapping[str, Any] = value or {}
        self.path = path
        self.where = where

    def get(self, name: str) -> Any:
        """argo: fields are read in sorted order, and the last one that matches counts."""
        folded = name.lower()
        value = None
        for key in sorted(self._value):
            if key.lower() == folded and self._value[key] is not None:
                value = self._value[key]
        return value

    def read_text(self, name: str) -> str:
        return as_text(self.get(name), self._field_path(name), self.where)

    def read_bool(self, name: str) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise type_error(value, "true or false", self._field_path(name), self.where)
        return bool(value)

    def read_row(self, name: str) -> CaseFileRow:
        return CaseFileRow(self.get(name), self._field_path(name), self.where)

    def read_rows(self, name: str) -> list[CaseFileRow]:
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise type_error(value, "a list", self._field_path(name), self.where)
        return [
            CaseFileRow(item, f"{self._field_path(name)}[{position}]", self.where)
            for position, item in enumerate(value or (), 1)
        ]

    def read_text_map(self, name: str) -> dict[str, str]:
        inner = self.read_row(name)
        return {key: as_text(value, inner._field_path(key), self.where) for key, value in inner._value.items()}

    def read_map(self, name: str) -> Mapping[str, Any]:
        return self.read_row(name)._value

    def _field_path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def as_text(value: Any, path: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return format_float(value)
    raise type_error(value, "a string", path, where)


def type_error(value: Any, expected: str, path: str, where: str) -> UserError:
    subject = f"{path} is" if path else "the file is"
    return UserError(
        f"{subject} {_TYPE_NAMES.get(type(value), 'a value')} but must be {expected}; correct it", where=where
    )


def read_expected_action(row: CaseFileRow) -> ResourceAction:
    """Read an action that a discovery test expects. argo: only the name of a parameter is kept."""
    parameters = tuple(parameter.read_text("name") for parameter in row.read_rows("params"))
    return ResourceAction(
        row.read_text("name"),
        row.read_bool("disabled"),
        row.read_text("iconClass"),
        row.read_text("displayName"),
        parameters,
    )
