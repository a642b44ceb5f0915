"""Formats values as Go prints them in field errors of custom kinds.

In: JSON values. Out: the text of `%v` and `%#v`. Never: parses.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema.field_error import format_go_value


def format_number(value: int | float) -> str:
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


def format_invalid_value(value: Any) -> str:
    """Format an invalid value for a field error: scalars as they are, maps and lists in Go syntax."""
    if value is None:
        return '"null"'
    if isinstance(value, dict | list):
        return format_go_syntax(value)
    if isinstance(value, float):
        return format_number(value)
    return format_go_value(value)


def format_go_syntax(value: Any) -> str:
    """Format decoded JSON like `%#v`."""
    match value:
        case dict():
            entries = ", ".join(f"{format_go_value(key)}:{format_go_syntax(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{entries}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(format_go_syntax, value))}}}"
        case None:
            return "interface {}(nil)"
        case float():
            return format_number(value)
    return format_go_value(value)
