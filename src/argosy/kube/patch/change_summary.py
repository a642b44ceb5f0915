"""Computes the changes to a live manifest, as a merge patch and as sentences.

In: live and desired. Out: a patch, or None; sentences about it. Never: changes a field that is not in the desired
state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_patch import diff

LONGEST: Final = 60  # characters shown without shortening
MOST: Final = 240  # characters of an added, removed or changed text
AROUND: Final = 16  # characters of context around a difference
_NOTHING: Final = object()


def update(live: Any, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the merge patch that makes live contain everything in `desired`; a None in `desired` means absent."""
    patch = _patch(live if isinstance(live, Mapping) else {}, asked)
    return patch or None


def _patch(live: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, value in asked.items():
        found = live.get(name, _NOTHING)
        if value is None:
            if found is not _NOTHING:
                patch[name] = None
        elif isinstance(value, Mapping) and isinstance(found, Mapping):
            if inner := _patch(found, value):
                patch[name] = inner
        elif found is _NOTHING or found != value:
            patch[name] = value
    return patch


def replacement(live: Manifest, desired: Manifest, whole: str) -> dict[str, Any] | None:
    """Like `build_update_patch`, but the field `replaced_field` is replaced: it holds only what is desired."""
    metadata = {name: given for name in ("labels", "annotations") if (given := desired["metadata"].get(name))}
    patch = update(live, {"metadata": metadata}) or {}
    if inner := diff(live.get(whole) or {}, desired.get(whole) or {}):
        patch[whole] = inner
    return patch or None


# -- sentences --------------------------------------------------------------------------------------------------------


def sentences(live: Mapping[str, Any], patch: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield one sentence per changed field: the old and the new value."""
    for name, value in patch.items():
        path = f"{place}.{name}" if place else name
        found = live.get(name) if isinstance(live, Mapping) else None
        if isinstance(value, Mapping) and (isinstance(found, Mapping) or (value and found is None)):
            yield from sentences(found or {}, value, path)
        elif isinstance(value, list) and isinstance(found, list):
            yield from _of_lists(found, value, path)
        else:
            yield from _of_values(found, value, path)


def _of_values(found: Any, value: Any, path: str) -> Iterator[str]:
    if value is None:
        yield f"{path}: {_clipped(_text(found))} is removed"
    elif found is None:
        yield f"{path}: {_clipped(_text(value))} is added"
    else:
        yield f"{path}: {' → '.join(_clipped_around(*_texts(found, value)))}"


def _of_lists(found: list[Any], value: list[Any], path: str) -> Iterator[str]:
    """Describe short plain lists whole; of others each changed element, by its current index."""
    texts = _texts(found, value)
    if _is_plain(found) and _is_plain(value) and max(map(len, texts)) <= LONGEST:
        yield f"{path}: {texts[0]} → {texts[1]}"
        return
    was, will = ([_text(each) for each in some] for some in (found, value))
    for tag, start, end, first, last in SequenceMatcher(None, was, will, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for at, (one, other) in enumerate(zip_longest(found[start:end], value[first:last], fillvalue=_NOTHING), start):
            yield from _of_elements(one, other, f"{path}[{at}]")


def _of_elements(found: Any, value: Any, path: str) -> Iterator[str]:
    if isinstance(found, Mapping) and isinstance(value, Mapping):
        yield from sentences(found, diff(dict(found), dict(value)), path)
    elif found is _NOTHING:
        yield from _of_values(None, value, path)
    elif value is _NOTHING:
        yield from _of_values(found, None, path)
    else:
        yield from _of_values(found, value, path)


def _is_plain(values: Iterable[Any]) -> bool:
    return not any(isinstance(each, Mapping | list) for each in values)


def _texts(found: Any, value: Any) -> tuple[str, str]:
    """Format both values, as JSON if they would look alike, such as "1" and 1."""
    texts = _text(found), _text(value)
    return texts if texts[0] != texts[1] else (_json(found), _json(value))


def _text(value: Any) -> str:
    """Format a string as it is, a plain list with commas, anything else as JSON."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    if isinstance(value, list) and value and _is_plain(value):
        return ", ".join(map(_text, value))
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _clipped(text: str) -> str:
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def _alike(found: str, value: str) -> int:
    """Return the length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, value, strict=False)))


def _clipped_around(found: str, value: str) -> tuple[str, str]:
    """Shorten long texts to the difference, with a little context."""
    if max(len(found), len(value)) <= LONGEST:
        return found, value
    before = _alike(found, value)
    after = _alike(found[before:][::-1], value[before:][::-1])
    start = max(0, before - AROUND)

    def window(text: str) -> str:
        end = min(len(text), len(text) - after + AROUND)
        shown = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
        return _clipped(shown)

    return window(found), window(value)
