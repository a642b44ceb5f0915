"""What must change in a live manifest, as a merge patch and as sentences.

In: live and desired. Out: a patch, or None; sentences about it. Never: touches a field that nobody asked about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_patch import diff

LONGEST: Final = 60  # letters that are told as they are
MOST: Final = 240  # letters of what is added, removed, or differs
AROUND: Final = 16  # letters before and after what differs
_NOTHING: Final = object()


def update(live: Any, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that makes live hold all that is asked; a None in `asked` means that it must not be there."""
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
    """As `update`, and the field `whole` holds nothing but what is desired."""
    metadata = {name: given for name in ("labels", "annotations") if (given := desired["metadata"].get(name))}
    patch = update(live, {"metadata": metadata}) or {}
    if inner := diff(live.get(whole) or {}, desired.get(whole) or {}):
        patch[whole] = inner
    return patch or None


# -- in sentences -----------------------------------------------------------------------------------------------------


def sentences(live: Mapping[str, Any], patch: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """One a field, down to what differs: what it was, and what it will be."""
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
    """Short ones of words whole; of others each element that differs, by its place in what is there now."""
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
    """With quotes where nothing else tells them apart: "1" and 1."""
    texts = _text(found), _text(value)
    return texts if texts[0] != texts[1] else (_json(found), _json(value))


def _text(value: Any) -> str:
    """Words as they are, a list of words with commas, all else as JSON."""
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
    """Letters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(found, value, strict=False)))


def _clipped_around(found: str, value: str) -> tuple[str, str]:
    """Of long ones what differs, and a little before and after it."""
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
