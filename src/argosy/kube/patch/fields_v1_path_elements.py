"""Path elements of FieldsV1: `f:name`, `k:{"name":"c"}`, `v:"x"`, `i:0`, and `.` for the node itself.

In: names, keys and values. Out: the canonical text of an element, its sort key, and its form in messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from argosy.errors import PatchError
from argosy.kube.objects.go_format import format_value, quote
from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.kube.patch.merge_schema_protocol import Shape

SELF: Final = "."
_ABSENT: Final = object()


class ElementError(ValueError):
    """A list item that has no valid key."""


def item_path_element(item: Any, shape: Shape) -> str:
    """Return the path element of an item in a `map` or `set` list."""
    if shape.list_type == "map":
        if not isinstance(item, dict):
            problem = "a null element" if item is None else "non-map elements"
            raise ElementError(f"associative list with keys may not have {problem}")
        return format_key_element([(name, _key_value(item, name, shape)) for name in shape.map_keys])
    if isinstance(item, dict):
        raise ElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ElementError("not supported: associative list with lists as elements")
    if item is None:
        raise ElementError("associative list without keys has an element that's an explicit null")
    return f"v:{_go_json(item)}"


def _key_value(item: dict[str, Any], name: str, shape: Shape) -> Any:
    value = item.get(name, _ABSENT)
    if value is _ABSENT:
        value = shape.key_default(name)
        if value is None:
            raise ElementError(
                f"associative list with keys has an element that omits key field {quote(name)} "
                "(and doesn't have default value)"
            )
    return value


def format_key_element(pairs: Sequence[tuple[str, Any]]) -> str:
    if len(pairs) == 1:
        [(name, value)] = pairs
        return f"k:{{{_go_json_string(name)}:{_go_json(value)}}}"
    pairs = sorted(pairs, key=lambda pair: pair[0])
    return "k:{" + ",".join(f"{_go_json_string(name)}:{_go_json(value)}" for name, value in pairs) + "}"


def _go_json(value: Any) -> str:
    """Encode like Go's encoding/json, which escapes HTML characters."""
    if type(value) is str:
        return _go_json_string(value)
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return _escape_html(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())


@cache_short_texts(4096)
def _go_json_string(text: str) -> str:
    return _escape_html(orjson.dumps(text).decode())


def _escape_html(text: str) -> str:
    for character in "<>&\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache_short_texts(4096)
def canonicalize(element: str) -> str | None:
    """Return the canonical form; None for an unknown element type (newer Kubernetes). Raise PatchError if malformed."""
    if len(element) < 2:
        raise PatchError("key must be 2 characters long:")
    if element[1] != ":":
        raise PatchError(f"missing colon: {element}")
    if element[0] not in "fkvi":
        return None
    value = _element_value(element)
    match element[0]:
        case "k" if not isinstance(value, dict):
            raise PatchError(f"not a key: {element}")
        case "k":
            return format_key_element(list(value.items()))
        case "v":
            return f"v:{_go_json(value)}"
        case "i":
            return f"i:{value}"
    return element


def _element_value(element: str) -> Any:
    if element[0] == "f":
        return element[2:]
    try:
        return int(element[2:]) if element[0] == "i" else orjson.loads(element[2:])
    except ValueError as error:
        raise PatchError(f"not a path element: {element}") from error


@cache_short_texts(4096)
def render_element(element: str) -> str:
    """Format for messages: `.spec`, `[name="c"]`, `[="x"]`, `[0]`."""
    value = _element_value(element)
    match element[0]:
        case "f":
            return f".{value}"
        case "k":
            return "[" + ",".join(f"{name}={_render_value(value[name])}" for name in sorted(value)) + "]"
        case "v":
            return f"[={_render_value(value)}]"
    return f"[{value}]"


def _render_value(value: Any) -> str:
    return "null" if value is None else quote(value) if isinstance(value, str) else format_value(value)


@cache_short_texts(4096)
def element_sort_key(element: str) -> tuple[Any, ...]:
    """Sort key in the server's order: the node itself, fields, keys, values, indices; numbers by size."""
    if element == SELF:
        return (0,)
    value = _element_value(element)
    match element[0]:
        case "f":
            return 1, value
        case "k":
            return 2, tuple((name, _value_sort_key(value[name])) for name in sorted(value))
        case "v":
            return 3, _value_sort_key(value)
    return 4, value


def _value_sort_key(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
    return 3, _go_json(value)
