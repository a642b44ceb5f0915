"""Reads test files as Go decodes them into structs. In: YAML data. Out: rows of plain values.

argo: field names are case-insensitive, unknown fields are ignored, null is the empty value, and a number or boolean in
a string field is converted to a string. Any other wrong type makes the file unreadable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.actions import Action
from argosy.kube.objects.yaml_scalars import go_float

_NUMBER: Final = "a number"
_WORDS: Final = {dict: "a map", list: "a list", str: "a string", bool: "true or false", int: _NUMBER, float: _NUMBER}


class Row:
    """One map of a test file; `path` says which, as in `tests[3]`."""

    def __init__(self, value: Any, place: str, where: str) -> None:
        if value is not None and not isinstance(value, dict):
            raise wrong(value, "a map", place, where)
        self._value: Mapping[str, Any] = value or {}
        self.place = place
        self.where = where

    def get(self, name: str) -> Any:
        """argo: fields are read in sorted order, and the last one that matches counts."""
        folded = name.lower()
        found = None
        for key in sorted(self._value):
            if key.lower() == folded and self._value[key] is not None:
                found = self._value[key]
        return found

    def text(self, name: str) -> str:
        return as_text(self.get(name), self._placed(name), self.where)

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise wrong(value, "true or false", self._placed(name), self.where)
        return bool(value)

    def row(self, name: str) -> Row:
        return Row(self.get(name), self._placed(name), self.where)

    def rows(self, name: str) -> list[Row]:
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise wrong(value, "a list", self._placed(name), self.where)
        return [Row(each, f"{self._placed(name)}[{place}]", self.where) for place, each in enumerate(value or (), 1)]

    def texts(self, name: str) -> dict[str, str]:
        inner = self.row(name)
        return {key: as_text(each, inner._placed(key), self.where) for key, each in inner._value.items()}

    def mapping(self, name: str) -> Mapping[str, Any]:
        return self.row(name)._value

    def _placed(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name


def as_text(value: Any, place: str, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return go_float(value)
    raise wrong(value, "a string", place, where)


def wrong(value: Any, needed: str, place: str, where: str) -> UserError:
    what = f"{place} is" if place else "the file is"
    return UserError(f"{what} {_WORDS.get(type(value), 'a value')} but must be {needed}; correct it", where=where)


def offered(row: Row) -> Action:
    """Read an action that a discovery test expects. argo: only the name of a parameter is kept."""
    parameters = tuple(each.text("name") for each in row.rows("params"))
    return Action(row.text("name"), row.flag("disabled"), row.text("iconClass"), row.text("displayName"), parameters)
