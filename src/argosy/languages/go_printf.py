"""Formats values as Go does: `%v` and the verbs of printf.

In: plain data. Out: text. Never: Python's own formatting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import LimitError
from argosy.kube.objects import go_format
from argosy.kube.objects.go_format import format_float, quote
from argosy.languages.go_time import GoDuration, GoTime

NO_VALUE: Final = "<no value>"
MAX_DEPTH: Final = 50
MAX_WIDTH: Final = 1000
_GO_TYPE_NAMES: Final = {**go_format.GO_TYPE_NAMES, int: "int"}
_VERB: Final = re.compile(r"%([-+# 0]*)(\d+|\*)?(?:\.(\d+|\*)?)?(.)", re.DOTALL)
_VERB_PRECISION: Final = re.compile(r"%[-+# 0]*(?:\d+|\*)?(\.)")


def format_value(value: Any) -> str:
    """Format a value like `%v`."""
    _check_depth(value)
    return go_format.format_value(value, _format_other)


def _check_depth(value: Any, depth: int = 0) -> None:
    if not isinstance(value, list | dict):
        return
    if depth > MAX_DEPTH:
        raise LimitError("a value is nested too deeply to print; print a part of it")
    for inner in value.values() if isinstance(value, dict) else value:
        _check_depth(inner, depth + 1)


def _format_other(value: Any) -> str:
    return str(value) if isinstance(value, GoTime | GoDuration) else "0x0"  # a function


def printf(layout: str, arguments: Sequence[Any]) -> str:
    remaining = list(arguments)

    def format_verb(match: re.Match[str]) -> str:
        flags, width, precision, verb = match[1], match[2], match[3], match[4]
        if verb == "%":
            return "%"
        if width == "*":
            width = str(remaining.pop(0)) if remaining else "0"
        if precision == "*":
            precision = str(remaining.pop(0)) if remaining else "0"
        has_dot = _VERB_PRECISION.match(match[0]) is not None
        if not remaining:
            return f"%!{verb}(MISSING)"
        value = remaining.pop(0)
        digits = _read_bounded_number(precision) if precision else 0 if has_dot else None
        return _pad(_format_verb(verb, flags, digits, value), flags, _read_bounded_number(width), value)

    text = _VERB.sub(format_verb, layout)
    if remaining:
        text += f"%!(EXTRA {', '.join(f'{get_go_type(argument)}={format_value(argument)}' for argument in remaining)})"
    return text


def _read_bounded_number(text: str | None) -> int:
    if text is None or not text.isdecimal():
        return 0
    return min(int(text[:6]), MAX_WIDTH)


def get_go_type(value: Any) -> str:
    """Return the type that templates and expressions give the value: numbers without a point are `int` there."""
    return _GO_TYPE_NAMES.get(type(value)) or type(value).__name__


def _format_verb(verb: str, flags: str, digits: int | None, value: Any) -> str:
    sign = "+" if "+" in flags and isinstance(value, int | float) and value >= 0 else ""
    if verb == "v":
        return sign + format_value(value)
    if verb == "T":
        return get_go_type(value)
    if verb == "t" and isinstance(value, bool):
        return format_value(value)
    if verb in "sq":
        text = format_value(value) if digits is None else format_value(value)[:digits]
        is_mismatch = verb == "s" and isinstance(value, int | float)
        return f"%!{verb}({get_go_type(value)}={text})" if is_mismatch else quote(text) if verb == "q" else text
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if is_integer and verb in "dbxXoc":
        if verb == "c":
            return chr(value) if 0 <= value < 0xD800 or 0xE000 <= value < 0x110000 else "\ufffd"
        return sign + f"{value:{verb}}"
    if verb in "xX" and isinstance(value, str):
        hex_text = value.encode().hex()
        return hex_text.upper() if verb == "X" else hex_text
    if verb in "fFeEgG" and isinstance(value, float):
        if verb in "gG" and digits is None:
            return sign + format_float(value)
        return sign + f"{value:.{6 if digits is None else digits}{verb}}"
    return f"%!{verb}({get_go_type(value)}={format_value(value)})"


def _pad(text: str, flags: str, width: int, value: Any) -> str:
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and isinstance(value, int | float):
        sign = text[:1] if text[:1] in ("-", "+") else ""
        return sign + text[len(sign) :].rjust(width - len(sign), "0")
    return text.rjust(width)
