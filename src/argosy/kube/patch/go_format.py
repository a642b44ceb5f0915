"""Formats JSON values as Go prints them, so that error messages match those of a Kubernetes server.

In: plain data. Out: text. Never: parses.
"""

from __future__ import annotations

import json
from typing import Any


def format_value(value: Any) -> str:
    """Format like `fmt.Sprintf("%v")`: `map[a:1 b:[x y]]`, strings unquoted, null as `<nil>`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{key}:{format_value(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(format_value, value)) + "]"
        case float():
            return format_float(value)
    return str(value)


def format_float(value: float) -> str:
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def quote(text: str) -> str:
    """Quote like `%q`, for any valid UTF-8 text."""
    return json.dumps(text, ensure_ascii=False)


def go_type_name(value: Any) -> str:
    """Return the type name that `reflect.TypeOf` gives for a decoded JSON value."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case int():
            return "int64"
        case float():
            return "float64"
    return "string"
