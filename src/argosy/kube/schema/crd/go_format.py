"""Formats values as Go prints them in field errors of custom kinds.

In: JSON values. Out: the text of `%v` and `%#v`. Never: parses.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema.field_error import go_value


def number(value: int | float) -> str:
    """Format a number like `%v`: 10, 1.5, 1e+21."""
    if isinstance(value, int):
        return str(value)
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{'-' if exponent.startswith('-') else '+'}{exponent.lstrip('+-').rjust(2, '0')}"


def shown(value: Any) -> str:
    """Format an invalid value for a field error: scalars as they are, maps and lists in Go syntax."""
    if value is None:
        return '"null"'
    if isinstance(value, dict | list):
        return source(value)
    if isinstance(value, float):
        return number(value)
    return go_value(value)


def source(value: Any) -> str:
    """Format decoded JSON like `%#v`."""
    match value:
        case dict():
            inner = ", ".join(f"{go_value(key)}:{source(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{inner}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(source, value))}}}"
        case None:
            return "interface {}(nil)"
        case float():
            return number(value)
    return go_value(value)
