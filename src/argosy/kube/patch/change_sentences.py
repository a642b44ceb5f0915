"""Describes the changes of a merge patch as sentences, one for each field.

In: a live manifest and a merge patch. Out: sentences. Never: changes either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any, Final

from argosy.kube.patch.merge_patch import diff

MAX_UNSHORTENED_CHARACTERS: Final = 60  # characters shown without shortening
MAX_TEXT_CHARACTERS: Final = 240  # characters of an added, removed or changed text
CONTEXT_CHARACTERS: Final = 16  # characters of context around a difference
_ABSENT: Final = object()


def describe_changes(live: Mapping[str, Any], patch: Mapping[str, Any], parent_path: str = "") -> Iterator[str]:
    """Yield one sentence per changed field: the old and the new value."""
    for name, value in patch.items():
        path = f"{parent_path}.{name}" if parent_path else name
        current = live.get(name) if isinstance(live, Mapping) else None
        if isinstance(value, Mapping) and (isinstance(current, Mapping) or (value and current is None)):
            yield from describe_changes(current or {}, value, path)
        elif isinstance(value, list) and isinstance(current, list):
            yield from _describe_list_changes(current, value, path)
        else:
            yield from _describe_value_change(current, value, path)


def _describe_value_change(current: Any, value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield f"{path}: {_clip(_format_value(current))} is removed"
    elif current is None:
        yield f"{path}: {_clip(_format_value(value))} is added"
    else:
        yield f"{path}: {' → '.join(_clip_around_difference(*_format_pair(current, value)))}"


def _describe_list_changes(current: list[Any], value: list[Any], path: str) -> Iterator[str]:
    """Describe short plain lists whole; of others each changed element, by its current index."""
    texts = _format_pair(current, value)
    if _is_plain(current) and _is_plain(value) and max(map(len, texts)) <= MAX_UNSHORTENED_CHARACTERS:
        yield f"{path}: {texts[0]} → {texts[1]}"
        return
    current_texts, new_texts = ([_format_value(item) for item in items] for items in (current, value))
    for tag, start, end, first, last in SequenceMatcher(None, current_texts, new_texts, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for index, (old_item, new_item) in enumerate(
            zip_longest(current[start:end], value[first:last], fillvalue=_ABSENT), start
        ):
            yield from _describe_element_change(old_item, new_item, f"{path}[{index}]")


def _describe_element_change(current: Any, value: Any, path: str) -> Iterator[str]:
    if isinstance(current, Mapping) and isinstance(value, Mapping):
        yield from describe_changes(current, diff(dict(current), dict(value)), path)
    elif current is _ABSENT:
        yield from _describe_value_change(None, value, path)
    elif value is _ABSENT:
        yield from _describe_value_change(current, None, path)
    else:
        yield from _describe_value_change(current, value, path)


def _is_plain(values: Iterable[Any]) -> bool:
    return not any(isinstance(value, Mapping | list) for value in values)


def _format_pair(current: Any, value: Any) -> tuple[str, str]:
    """Format both values, as JSON if they would look alike, such as "1" and 1."""
    texts = _format_value(current), _format_value(value)
    return texts if texts[0] != texts[1] else (_json(current), _json(value))


def _format_value(value: Any) -> str:
    """Format a string as it is, a plain list with commas, anything else as JSON."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    if isinstance(value, list) and value and _is_plain(value):
        return ", ".join(map(_format_value, value))
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _clip(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[: MAX_TEXT_CHARACTERS - 1]}…"


def _count_common_prefix(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _clip_around_difference(current: str, value: str) -> tuple[str, str]:
    """Shorten long texts to the difference, with a little context."""
    if max(len(current), len(value)) <= MAX_UNSHORTENED_CHARACTERS:
        return current, value
    before = _count_common_prefix(current, value)
    after = _count_common_prefix(current[before:][::-1], value[before:][::-1])
    start = max(0, before - CONTEXT_CHARACTERS)

    def clip_window(text: str) -> str:
        end = min(len(text), len(text) - after + CONTEXT_CHARACTERS)
        window_text = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
        return _clip(window_text)

    return clip_window(current), clip_window(value)
