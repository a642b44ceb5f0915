"""Formats JSON values as Go's fmt package prints them, so that messages match those of programs written in Go.

In: plain data. Out: text. Never: parses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

GO_TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
# Decimal exponents of the floats that are printed without an exponent: a million is 1e+06.
MIN_PLAIN_EXPONENT: Final = -4
MAX_PLAIN_EXPONENT: Final = 5
_NAMED_ESCAPES: Final = {
    "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def get_go_type(value: Any) -> str:
    """Return the type that Go decodes the value into."""
    return GO_TYPE_NAMES[type(value)]


def format_value(value: Any, format_other: Callable[[Any], str] = str) -> str:
    """Format like `%v`: `map[a:1 b:[x y]]`, strings unquoted, null as `<nil>`.

    `format_other` formats values that are not JSON.
    """
    match value:
        case str():
            return value
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format_float(value)
        case dict():
            entries = (f"{name}:{format_value(value[name], format_other)}" for name in sorted(value, key=str))
            return f"map[{' '.join(entries)}]"
        case list():
            return f"[{' '.join(format_value(item, format_other) for item in value)}]"
    return format_other(value)


def format_go_syntax(value: Any) -> str:
    """Format like `%#v`: strings quoted, lists and maps with their type."""
    match value:
        case str():
            return quote(value)
        case dict():
            entries = ", ".join(f"{quote(name)}:{_format_element(value[name])}" for name in sorted(value))
            return f"{GO_TYPE_NAMES[dict]}{{{entries}}}"
        case list():
            return f"{GO_TYPE_NAMES[list]}{{{', '.join(map(_format_element, value))}}}"
    return format_value(value)


def _format_element(value: Any) -> str:
    return "interface {}(nil)" if value is None else format_go_syntax(value)


def format_float(value: float) -> str:
    """Format like `%v`: the fewest digits that identify the number, with an exponent from a million on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = "-" if value < 0 else "", *find_shortest_digits(abs(value))
    if not MIN_PLAIN_EXPONENT <= exponent <= MAX_PLAIN_EXPONENT:
        fraction = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, part = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"


def find_shortest_digits(value: float) -> tuple[str, int]:
    """Return the fewest digits that identify the number, and the exponent of the first digit."""
    mantissa, _, power = repr(value).partition("e")
    whole, _, part = mantissa.partition(".")
    part = part.rstrip("0")
    exponent = int(power or 0) + len(whole) - 1
    digits = whole + part
    leading = len(digits) - len(digits.lstrip("0"))
    return digits.strip("0"), exponent - leading


def quote(text: str) -> str:
    """Quote like `%q`: characters that cannot be printed are escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escape, text))}"'


def quote_list(texts: Iterable[str]) -> str:
    """Format a list of strings like `%q`."""
    return f"[{' '.join(map(quote, texts))}]"


def _escape(character: str) -> str:
    if character in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
