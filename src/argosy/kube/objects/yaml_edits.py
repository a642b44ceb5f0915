"""Edits fields of YAML text and keeps comments, order and style.

In: text and edits. Out: the edited text, verified: it is parsed again and must contain the edits and no other change.
Only the lines that an edit touches change; new lines follow the style of the file.
Never: guesses; a field that cannot be edited safely is refused, with the line to edit by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import yaml

from argosy.errors import LimitError, ManifestError
from argosy.kube.objects.manifests import load_all
from argosy.kube.objects.yaml_outline import Place, outline
from argosy.kube.objects.yaml_scalars import Profile, json_value
from argosy.kube.objects.yaml_splice import NotEditable, spliced

Step = str | int

# YAML readers break lines at these characters; text editors do not.
_UNUSUAL_BREAK: Final = re.compile(r"[\x85\u2028\u2029]|\r(?!\n)")


class _Removed:
    def __repr__(self) -> str:
        return "REMOVED"


REMOVED: Final = _Removed()


class Edit(NamedTuple):
    """The new value of a field. REMOVED deletes it; missing parents are created; a list's length as index appends."""

    path: tuple[Step, ...]
    value: object = REMOVED


class _Do(NamedTuple):
    what: Literal["set", "remove", "insert"]
    path: tuple[Step, ...]
    value: Any = None


def edited(text: str, edits: Sequence[Edit], *, document: int = 0, where: str = "") -> str:
    """Apply edits to one document of the text (empty documents do not count). Raises ManifestError."""
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text[len(bom) :]
    for edit in edits:
        text = _edited(text, Edit(edit.path, _plain(edit.value)), document, where)
    return bom + text


def _plain(value: Any) -> Any:
    """Convert a value to the data that reading it back returns: lists for tuples, and JSON numbers."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return json_value(value) if type(value) is float else value


def _edited(text: str, edit: Edit, document: int, where: str) -> str:
    before = load_all(text, where=where)
    number = _number(before, document, where)
    old = before[number] if number < len(before) else None
    try:
        wanted = _applied(old, edit.path, edit.value)
        if _same(wanted, old):
            return text
        if _UNUSUAL_BREAK.search(text):
            raise NotEditable("is in a file with line breaks other than LF and CRLF")
        result = text
        for do in _doing(old, edit):
            result = spliced(result, _place(result, number), do.what, do.path, do.value)
    except NotEditable as error:
        raise _by_hand(text, number, edit.path, error.why, where) from None
    if not _says(text, result, number, edit):
        ended = result + ("\r\n" if "\r\n" in text else "\n")  # a block scalar at the end needs a line break
        if not text.endswith("\n") and _says(text, ended, number, edit):
            return ended
        raise _by_hand(text, number, edit.path, "is written in a way that cannot be edited safely", where)
    return result


def _number(values: list[Any], document: int, where: str) -> int:
    filled = [number for number, value in enumerate(values) if value is not None]
    if document < len(filled):
        return filled[document]
    if document == 0:
        return 0
    raise ManifestError(f"the file has {len(filled)} documents, not {document + 1}: name one of them", where=where)


def _place(text: str, number: int) -> Place:
    try:
        places = outline(text)
    except (yaml.YAMLError, RecursionError):  # JSON with escapes that YAML does not support
        raise NotEditable("is in JSON that is not valid YAML") from None
    return places[number] if number < len(places) else Place(None, len(text))


def _says(text: str, result: str, number: int, edit: Edit) -> bool:
    """True if both YAML dialects read the edit from the result, and no other change."""
    for profile in Profile:
        try:
            values = load_all(text, profile=profile) or [None]
            values[number] = _applied(values[number], edit.path, edit.value)
        except (ManifestError, LimitError, NotEditable):
            if profile is Profile.KUBERNETES:
                return False
            continue  # kustomize could not read the file before the edit either
        try:
            if not _same(load_all(result, profile=profile), values):
                return False
        except (ManifestError, LimitError):
            return False
    return True


def _same(left: Any, right: Any) -> bool:
    """True if both values are equal and have the same types: in Python, 1, 1.0 and True are equal."""
    return left == right and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _applied(value: Any, path: tuple[Step, ...], new: Any) -> Any:
    if not path:
        if new is REMOVED:
            raise NotEditable("is the whole document, which cannot be removed")
        return new
    step, rest = path[0], path[1:]
    if value is None:
        value = {} if isinstance(step, str) else []
    if isinstance(step, str) and isinstance(value, dict):
        if not rest and new is REMOVED:
            return {key: each for key, each in value.items() if key != step}
        if new is REMOVED and value.get(step) is None:
            return value
        return {**value, step: _applied(value.get(step), rest, new)}
    if isinstance(step, int) and isinstance(value, list):
        return _applied_in_list(value, step, rest, new)
    raise NotEditable(f"goes through {_kind(value)}, where {_kind({} if isinstance(step, str) else [])} is expected")


def _applied_in_list(value: list[Any], step: int, rest: tuple[Step, ...], new: Any) -> list[Any]:
    if step == len(value) and new is REMOVED:
        return value
    if not 0 <= step <= len(value):
        raise NotEditable(f"is index {step} of a list of {len(value)}")
    if not rest and new is REMOVED:
        return value[:step] + value[step + 1 :]
    here = value[step] if step < len(value) else None
    return [*value[:step], _applied(here, rest, new), *value[step + 1 :]]


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a single value"


def _doing(old: Any, edit: Edit) -> Iterator[_Do]:
    """Split an edit into the smallest changes of entries, so that comments between unchanged entries stay."""
    here = old
    for at, step in enumerate(edit.path):
        inside = here.get(step) if isinstance(here, dict) else None
        if isinstance(here, list) and isinstance(step, int) and step < len(here):
            inside = here[step]
        if inside is None and not (edit.value is REMOVED or at == len(edit.path) - 1):
            yield _Do("set", edit.path[: at + 1], _nested(edit.path[at + 1 :], edit.value))
            return
        here = inside
    if edit.value is REMOVED:
        yield _Do("remove", edit.path)
    else:
        yield from _changes(here, edit.value, edit.path)


def _nested(path: tuple[Step, ...], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _changes(old: Any, new: Any, path: tuple[Step, ...]) -> Iterator[_Do]:
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() & new.keys():
        for key in new:
            if key not in old or not _same(old[key], new[key]):
                yield from _changes(old.get(key), new[key], (*path, key))
        yield from (_Do("remove", (*path, key)) for key in old if key not in new)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _list_changes(old, new, path)
    else:
        yield _Do("set", path, new)


def _list_changes(old: list[Any], new: list[Any], path: tuple[Step, ...]) -> Iterator[_Do]:
    shorter = min(len(old), len(new))
    first = next((at for at in range(shorter) if not _same(old[at], new[at])), shorter)
    most = shorter - first
    last = next((at for at in range(most) if not _same(old[-1 - at], new[-1 - at])), most)
    paired = most - last
    for at in range(first, first + paired):
        yield from _changes(old[at], new[at], (*path, at))
    for at in reversed(range(first + paired, len(old) - last)):
        yield _Do("remove", (*path, at))
    for at in range(first + paired, len(new) - last):
        yield _Do("insert", (*path, at), new[at])


def _by_hand(text: str, number: int, path: tuple[Step, ...], why: str, where: str) -> ManifestError:
    said = ".".join(map(str, path)) or "the document"
    return ManifestError(f"edit it by hand: {said} {why}", where=where, line=_line(text, number, path))


def _line(text: str, number: int, path: tuple[Step, ...]) -> int:
    """Return the line of the deepest existing entry on the path."""
    try:
        node = _place(text, number).root
    except NotEditable:
        return 0
    at = node.start if node else 0
    for step in path:
        if node is None or node.kind not in ("map", "list"):
            break
        if isinstance(step, str):
            entry = next((each for each in node.entries if each.name == step), None)
        else:
            entry = node.entries[step] if 0 <= step < len(node.entries) else None
        if entry is None:
            break
        at, node = entry.start, entry.value
    return text.count("\n", 0, at) + 1
