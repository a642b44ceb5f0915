"""Formats values as Go does: `%v` and the verbs of printf.

In: plain data. Out: text. Never: Python's own formatting.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Final

from argosy.errors import LimitError
from argosy.languages.go_time import Duration, Time

NO_VALUE: Final = "<no value>"
MOST_DEPTH: Final = 50
MOST_WIDTH: Final = 1000
_VERB: Final = re.compile(r"%([-+# 0]*)(\d+|\*)?(?:\.(\d+|\*)?)?(.)", re.DOTALL)
_VERB_DOT: Final = re.compile(r"%[-+# 0]*(?:\d+|\*)?(\.)")


def text_of(value: Any, depth: int = 0) -> str:
    """Format a value like `%v`."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, int | Time | Duration):
        return str(value)
    if depth > MOST_DEPTH:
        raise LimitError("a value is nested too deeply to print; print a part of it")
    if isinstance(value, list):
        return f"[{' '.join(text_of(each, depth + 1) for each in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{text_of(value[name], depth + 1)}' for name in sorted(value, key=str))}]"
    return "0x0"  # a function


def float_text(value: float) -> str:
    """Format a float like `%v`: the shortest digits, with an exponent below -4 and from 6 on: a million is 1e+06."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = "-" if value < 0 else "", *_shortest(abs(value))
    if not -4 <= exponent < 6:
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, part = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"


def _shortest(value: float) -> tuple[str, int]:
    """Return the fewest digits that identify the number, and the exponent of the first digit."""
    mantissa, _, power = repr(value).partition("e")
    whole, _, part = mantissa.partition(".")
    part = part.rstrip("0")
    exponent = int(power or 0) + len(whole) - 1
    digits = whole + part
    leading = len(digits) - len(digits.lstrip("0"))
    return digits.strip("0"), exponent - leading


def quoted(text: str) -> str:
    """Format a string like `%q`."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")


def printf(layout: str, arguments: Sequence[Any]) -> str:
    rest = list(arguments)

    def fill(found: re.Match[str]) -> str:
        flags, width, precision, verb = found[1], found[2], found[3], found[4]
        if verb == "%":
            return "%"
        if width == "*":
            width = str(rest.pop(0)) if rest else "0"
        if precision == "*":
            precision = str(rest.pop(0)) if rest else "0"
        has_dot = _VERB_DOT.match(found[0]) is not None
        if not rest:
            return f"%!{verb}(MISSING)"
        value = rest.pop(0)
        digits = _bounded(precision) if precision else 0 if has_dot else None
        return _padded(_verbed(verb, flags, digits, value), flags, _bounded(width), value)

    text = _VERB.sub(fill, layout)
    if rest:
        text += f"%!(EXTRA {', '.join(f'{go_kind(each)}={text_of(each)}' for each in rest)})"
    return text


def _bounded(text: str | None) -> int:
    if text is None or not text.isdecimal():
        return 0
    return min(int(text[:6]), MOST_WIDTH)


def go_kind(value: Any) -> str:
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float64"), (str, "string"), (list, "[]interface {}")):
        if isinstance(value, kind):
            return name
    return "map[string]interface {}" if isinstance(value, dict) else "<nil>" if value is None else type(value).__name__


def _verbed(verb: str, flags: str, digits: int | None, value: Any) -> str:
    sign = "+" if "+" in flags and isinstance(value, int | float) and value >= 0 else ""
    if verb == "v":
        return sign + text_of(value)
    if verb == "T":
        return go_kind(value)
    if verb == "t" and isinstance(value, bool):
        return text_of(value)
    if verb in "sq":
        text = text_of(value) if digits is None else text_of(value)[:digits]
        bad = verb == "s" and isinstance(value, int | float)
        return f"%!{verb}({go_kind(value)}={text})" if bad else quoted(text) if verb == "q" else text
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and verb in "dbxXoc":
        if verb == "c":
            return chr(value) if 0 <= value < 0xD800 or 0xE000 <= value < 0x110000 else "\ufffd"
        return sign + f"{value:{verb}}"
    if verb in "xX" and isinstance(value, str):
        found = value.encode().hex()
        return found.upper() if verb == "X" else found
    if verb in "fFeEgG" and isinstance(value, float):
        if verb in "gG" and digits is None:
            return sign + float_text(value)
        return sign + f"{value:.{6 if digits is None else digits}{verb}}"
    return f"%!{verb}({go_kind(value)}={text_of(value)})"


def _padded(text: str, flags: str, width: int, value: Any) -> str:
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and isinstance(value, int | float):
        sign = text[:1] if text[:1] in ("-", "+") else ""
        return sign + text[len(sign) :].rjust(width - len(sign), "0")
    return text.rjust(width)
