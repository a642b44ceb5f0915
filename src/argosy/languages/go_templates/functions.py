"""The built-in functions of Go templates.

In: values. Out: values. Never: raises errors other than those that its caller handles.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from argosy.languages.go_format import printf, text_of
from argosy.languages.go_templates.lexer import TemplateError
from argosy.languages.go_time import Duration, Time

Function = Callable[..., Any]


def truth(value: Any) -> bool:
    """Go: zero, empty and missing values are false."""
    if isinstance(value, Duration):
        return bool(value.nanoseconds)
    return isinstance(value, Time) or bool(value)


def _and(*values: Callable[[], Any]) -> Any:
    found: Any = None
    for each in values:
        found = each()
        if not truth(found):
            return found
    return found


def _or(*values: Callable[[], Any]) -> Any:
    found: Any = None
    for each in values:
        found = each()
        if truth(found):
            return found
    return found


LAZY: Final[Mapping[str, Function]] = {"and": _and, "or": _or}


def _kind(value: Any) -> str:
    for kinds, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "string"), (Time, "time")):
        if isinstance(value, kinds):
            return name
    return "duration" if isinstance(value, Duration) else "nil" if value is None else "other"


def _comparable(one: Any, other: Any) -> None:
    kinds = {_kind(one), _kind(other)}
    if "other" in kinds:
        raise TemplateError("lists and maps cannot be compared; compare their elements")
    if len(kinds) > 1 and "nil" not in kinds:
        raise TemplateError(f"incompatible types for comparison: {' and '.join(sorted(kinds))}; compare like with like")


def _equal(state: Any, one: Any, *others: Any) -> bool:
    if not others:
        raise TemplateError("eq needs two values; add a second")
    for each in others:
        _comparable(one, each)
    return any(one == each and _kind(one) == _kind(each) for each in others)


def _less(one: Any, other: Any) -> bool:
    _comparable(one, other)
    if _kind(one) in ("bool", "nil") or _kind(other) == "nil":
        raise TemplateError("these values have no order; compare numbers or strings")
    return bool(one < other)


def index(state: Any, value: Any, *keys: Any) -> Any:
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
            raise TemplateError(f"cannot index {text_of(value)[:40]!r} with {text_of(key)[:40]!r}; use a list or a map")
    return value


def _sliced(state: Any, value: Any, *bounds: Any) -> Any:
    low, high = (*bounds, *([0, len(value)][len(bounds) :]))[:2]
    if not (type(low) is type(high) is int and 0 <= low <= high <= len(value)):
        raise TemplateError(f"slice out of range: {low}, {high}; the length is {len(value)}")
    return value[low:high]


def _length(state: Any, value: Any) -> int:
    return len(value.encode()) if isinstance(value, str) else len(value)


def _print(state: Any, *values: Any) -> str:
    """Go puts a space between two values if neither is a string."""
    text, before = "", True
    for each in values:
        is_text = isinstance(each, str)
        text += ("" if before or is_text else " ") + text_of(each)
        before = is_text
    return text


def _printf(state: Any, layout: str, *values: Any) -> str:
    if not isinstance(layout, str):
        raise TypeError
    state.meter.grow(len(layout))
    return printf(layout, values)


def _call(state: Any, function: Any, *values: Any) -> Any:
    if not callable(function):
        raise TemplateError("call needs a function, such as .time.Now")
    return function(*values)


_JS: Final = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def _js(state: Any, *values: Any) -> str:
    return "".join(_JS.get(each) or (f"\\u{ord(each):04X}" if each < " " else each) for each in _print(state, *values))


BUILTIN: Final[Mapping[str, Function]] = {
    "not": lambda state, value: not truth(value),
    "eq": _equal,
    "ne": lambda state, one, other: not _equal(state, one, other),
    "lt": lambda state, one, other: _less(one, other),
    "le": lambda state, one, other: not _less(other, one),
    "gt": lambda state, one, other: _less(other, one),
    "ge": lambda state, one, other: not _less(one, other),
    "len": _length,
    "index": index,
    "slice": _sliced,
    "print": _print,
    "println": lambda state, *values: " ".join(map(text_of, values)) + "\n",
    "printf": _printf,
    "html": lambda state, *values: html.escape(_print(state, *values)).replace("&quot;", "&#34;"),
    "js": _js,
    "urlquery": lambda state, *values: quote_plus(_print(state, *values)),
    "call": _call,
}
