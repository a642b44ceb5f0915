"""Truncates deeply nested JSON, so that one object does not make the list of its kind unreadable.

In: JSON values and texts from an API server. Out: values in which a mark replaces the content below a level, and the
names of the truncated objects. Never: recurses; truncates above that level, which no manifest in Git reaches; does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

TRUNCATION_LEVEL: Final = 200  # a manifest in Git has at most 100 levels, so no field of it is truncated
TEXT_TRUNCATION_LEVEL: Final = 260  # more than orjson can write, so that `truncate_objects` finds and names the object
MIN_DEEP_BRACKETS: Final = TRUNCATION_LEVEL  # fewer brackets cannot be nested deeper
MAX_TRUNCATED_TEXT_BYTES: Final = (
    8 * 2**20
)  # larger text that orjson cannot read is rejected: truncating by token is slow
MAX_TOKENS: Final = 1_000_000
TRUNCATION_MARK: Final = (
    "(not read: nested too deeply)"  # replaces truncated content; an object with it must not be written
)
_MARKED_CONTAINERS: Final = (orjson.dumps({TRUNCATION_MARK: ""}), orjson.dumps([TRUNCATION_MARK]))
ORJSON_DEPTH_MESSAGE: Final = "depth limit exceeded"  # orjson's message; it reads at most 1024 levels
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def read_deep_json(content: bytes) -> Any:
    """Parse JSON that may be nested deeper than orjson reads. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        text = (
            _truncate_text(content)
            if error.msg.startswith(ORJSON_DEPTH_MESSAGE) and len(content) <= MAX_TRUNCATED_TEXT_BYTES
            else None
        )
        if text is None:
            raise
        return orjson.loads(text)


def can_be_deep(content: bytes) -> bool:
    return content.count(b"{") + content.count(b"[") >= MIN_DEEP_BRACKETS


def truncate_objects(value: Any) -> list[str]:
    """Truncate the objects of a list, or a single object, in place. Returns the names of the truncated objects."""
    items = value.get("items") if isinstance(value, dict) else None
    if not _is_too_deep(value if isinstance(items, list) else [[value]]):
        return []
    # Whether an object is truncated depends only on the object: a list and a get must return the same object.
    objects = [
        candidate for candidate in (items if isinstance(items, list) else [value]) if _is_too_deep([[candidate]])
    ]
    names = [
        _format_name(candidate) for candidate in objects if isinstance(candidate, dict | list) and _truncate(candidate)
    ]
    if _is_too_deep(value):  # outside its items
        names += [_format_name(value)] if _truncate(value) else []
    return names


def has_truncated_content(content: bytes) -> bool:
    """True if JSON text without spaces contains truncated content. The mark inside a longer string does not count."""
    return any(mark in content for mark in _MARKED_CONTAINERS)


def _is_too_deep(value: Any) -> bool:
    """True if orjson cannot write the value (254 levels): recursive functions would also fail on it."""
    try:
        orjson.dumps(value)
    except TypeError:
        return True
    return False


def _truncate(value: dict[str, Any] | list[Any]) -> bool:
    """Replace the content of containers below the level by the mark; they keep their type. True if any was replaced."""
    was_truncated, level, containers = False, 1, [value]
    while containers:
        children: list[dict[str, Any] | list[Any]] = []
        for container in containers:
            for key, child in _children(container):
                if level < TRUNCATION_LEVEL:
                    children.append(child)
                elif child:
                    container[key] = {TRUNCATION_MARK: ""} if isinstance(child, dict) else [TRUNCATION_MARK]
                    was_truncated = True
        containers, level = children, level + 1
    return was_truncated


def _children(container: Any) -> Iterator[tuple[Any, Any]]:
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    return iter([(key, child) for key, child in pairs if isinstance(child, dict | list)])


def _format_name(manifest: Any) -> str:
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    parts = [metadata.get(field) for field in ("namespace", "name")] if isinstance(metadata, dict) else []
    return "/".join(part for part in parts if isinstance(part, str) and part)


def _truncate_text(content: bytes) -> bytes | None:
    """Return the text without its deepest levels; None if it has too many tokens or unbalanced brackets."""
    limit = TEXT_TRUNCATION_LEVEL
    pieces: list[bytes] = []
    depth = start = 0
    for count, token in enumerate(_TOKEN.finditer(content)):
        if count > MAX_TOKENS:
            return None
        bracket = token[0]
        if bracket in (b"{", b"["):
            depth += 1
            if depth == limit + 1:
                pieces += [content[start : token.start()], b'[""]' if bracket == b"[" else b'{"":0}']
        elif bracket in (b"}", b"]"):
            depth -= 1
            if depth == limit:
                start = token.end()
    return b"".join([*pieces, content[start:]]) if depth == 0 else None
