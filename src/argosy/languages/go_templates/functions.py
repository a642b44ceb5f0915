"""The built-in functions of Go templates.

In: values. Out: values. Never: raises errors other than those that its caller handles.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from argosy.languages.go_printf import format_value, printf
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_time import GoDuration, GoTime

Function = Callable[..., Any]


def is_truthy(value: Any) -> bool:
    """Go: zero, empty and missing values are false."""
    if isinstance(value, GoDuration):
        return bool(value.nanoseconds)
    return isinstance(value, GoTime) or bool(value)


def _evaluate_and(*values: Callable[[], Any]) -> Any:
    result: Any = None
    for evaluate in values:
        result = evaluate()
        if not is_truthy(result):
            return result
    return result


def _evaluate_or(*values: Callable[[], Any]) -> Any:
    result: Any = None
    for evaluate in values:
        result = evaluate()
        if is_truthy(result):
            return result
    return result


LAZY_FUNCTIONS: Final[Mapping[str, Function]] = {"and": _evaluate_and, "or": _evaluate_or}


def _comparison_kind(value: Any) -> str:
    for kinds, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "string"), (GoTime, "time")):
        if isinstance(value, kinds):
            return name
    return "duration" if isinstance(value, GoDuration) else "nil" if value is None else "other"


def _check_comparable(left: Any, right: Any) -> None:
    kinds = {_comparison_kind(left), _comparison_kind(right)}
    if "other" in kinds:
        raise TemplateError("lists and maps cannot be compared; compare their elements")
    if len(kinds) > 1 and "nil" not in kinds:
        raise TemplateError(f"incompatible types for comparison: {' and '.join(sorted(kinds))}; compare like with like")


def _is_equal_to_any(state: Any, left: Any, *others: Any) -> bool:
    if not others:
        raise TemplateError("eq needs two values; add a second")
    for other in others:
        _check_comparable(left, other)
    return any(left == other and _comparison_kind(left) == _comparison_kind(other) for other in others)


def _is_less(left: Any, right: Any) -> bool:
    _check_comparable(left, right)
    if _comparison_kind(left) in ("bool", "nil") or _comparison_kind(right) == "nil":
        raise TemplateError("these values have no order; compare numbers or strings")
    return bool(left < right)


def get_index(state: Any, value: Any, *keys: Any) -> Any:
    for key in keys:
        if value is None:
            return None
        if isinstance(value, dict):
            value = value.get(key) if isinstance(key, str | int) else None
        elif isinstance(value, list | str) and type(key) is int:
            if not 0 <= key < len(value):
                raise TemplateError(f"index out of range: {key}; the length is {len(value)}")
            value = value[key] if isinstance(value, list) else value.encode()[key]
        else:
            raise TemplateError(
                f"cannot index {format_value(value)[:40]!r} with {format_value(key)[:40]!r}; use a list or a map"
            )
    return value


def _slice(state: Any, value: Any, *bounds: Any) -> Any:
    low, high = (*bounds, *([0, len(value)][len(bounds) :]))[:2]
    if not (type(low) is type(high) is int and 0 <= low <= high <= len(value)):
        raise TemplateError(f"slice out of range: {low}, {high}; the length is {len(value)}")
    return value[low:high]


def _length(state: Any, value: Any) -> int:
    return len(value.encode()) if isinstance(value, str) else len(value)


def _print(state: Any, *values: Any) -> str:
    """Go puts a space between two values if neither is a string."""
    text, was_string = "", True
    for value in values:
        is_string = isinstance(value, str)
        text += ("" if was_string or is_string else " ") + format_value(value)
        was_string = is_string
    return text


def _printf(state: Any, layout: str, *values: Any) -> str:
    if not isinstance(layout, str):
        raise TypeError
    state.budget.spend_characters(len(layout))
    return printf(layout, values)


def _call(state: Any, function: Any, *values: Any) -> Any:
    if not callable(function):
        raise TemplateError("call needs a function, such as .time.Now")
    return function(*values)


_JS_ESCAPES: Final = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}


def _escape_js(state: Any, *values: Any) -> str:
    return "".join(
        _JS_ESCAPES.get(character) or (f"\\u{ord(character):04X}" if character < " " else character)
        for character in _print(state, *values)
    )


BUILTIN_FUNCTIONS: Final[Mapping[str, Function]] = {
    "not": lambda state, value: not is_truthy(value),
    "eq": _is_equal_to_any,
    "ne": lambda state, one, other: not _is_equal_to_any(state, one, other),
    "lt": lambda state, one, other: _is_less(one, other),
    "le": lambda state, one, other: not _is_less(other, one),
    "gt": lambda state, one, other: _is_less(other, one),
    "ge": lambda state, one, other: not _is_less(one, other),
    "len": _length,
    "index": get_index,
    "slice": _slice,
    "print": _print,
    "println": lambda state, *values: " ".join(map(format_value, values)) + "\n",
    "printf": _printf,
    "html": lambda state, *values: html.escape(_print(state, *values)).replace("&quot;", "&#34;"),
    "js": _escape_js,
    "urlquery": lambda state, *values: quote_plus(_print(state, *values)),
    "call": _call,
}
