"""Converts JSON data to Lua values and Lua tables to JSON data, as Argo CD does.

In: plain data, or a Lua table. Out: the other. Never: passes a Python object to Lua.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from argosy.gitops.health.lua.script_error import LuaFault

MAX_TABLE_DEPTH = 200  # levels of nested tables in a result
_MAX_INTEGER = 1 << 63


def prepare_for_lua(value: Any) -> Any:
    """Return the data in a form that Lua accepts; mostly the same object.

    argo: nulls are dropped from lists, and every number is a float64.
    """
    if _is_lua_compatible(value):
        return value
    return _convert(value)


def _is_lua_compatible(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        parts = value.values()
    elif kind is list:
        if None in value:
            return False
        parts = value
    else:
        return kind is not int or -_MAX_INTEGER < value < _MAX_INTEGER
    for part in parts:
        kind = type(part)
        if (kind is dict or kind is list or kind is int) and not _is_lua_compatible(part):
            return False
    return True


def _convert(value: Any) -> Any:
    match value:
        case dict():
            return {name: _convert(part) for name, part in value.items() if part is not None}
        case list():
            return [_convert(part) for part in value if part is not None]
        case bool():
            return value
        case int():
            return float(value) if abs(value) < 1 << 1023 else math.copysign(math.inf, value)
    return value


def from_lua(value: Any, lua_type: Callable[[Any], str | None]) -> Any:
    """Return the JSON data of a Lua value. Raises LuaFault with the messages of Argo CD's encoder."""
    return _LuaTableReader(lua_type).read(value)


class _LuaTableReader:
    def __init__(self, lua_type: Callable[[Any], str | None]) -> None:
        self._lua_type = lua_type

    def read(self, value: Any, depth: int = 0) -> Any:
        kind = self._lua_type(value)
        if kind == "table":
            if depth > MAX_TABLE_DEPTH:
                raise LuaFault("cannot encode recursively nested tables to JSON")
            return self._read_table(value, depth + 1)
        if kind is not None:
            raise LuaFault(f"cannot encode {kind} to JSON")
        if isinstance(value, float):
            return _read_number(value)
        return value

    def _read_table(self, table: Any, depth: int) -> Any:
        items = list(table.items())
        if not items:
            return []  # argo: an empty table may be a list or an object; the encoder writes a list
        if all(type(name) is str for name, _ in items):
            return {name: self.read(part, depth) for name, part in items}
        if any(type(name) is not int for name, _ in items):
            raise LuaFault("cannot encode mixed or invalid key types")
        values_by_index = dict(items)
        if sorted(values_by_index) != list(range(1, len(items) + 1)):
            raise LuaFault("cannot encode sparse array")
        return [self.read(values_by_index[index], depth) for index in range(1, len(items) + 1)]


def _read_number(value: float) -> int | float:
    if not math.isfinite(value):
        raise LuaFault(f"json: unsupported value: {value}")
    return int(value) if value.is_integer() else value
