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
from argosy.kube.objects.manifest_text_reader import read_yaml_documents
from argosy.kube.objects.yaml_entry_splice import NotEditable, splice_entry
from argosy.kube.objects.yaml_node_offsets import DocumentOutline, outline_documents
from argosy.kube.objects.yaml_scalars import YamlDialect, to_json_number

PathStep = str | int

# YAML readers break lines at these characters; text editors do not.
_UNUSUAL_BREAK: Final = re.compile(r"[\x85\u2028\u2029]|\r(?!\n)")


class _RemovedMarker:
    def __repr__(self) -> str:
        return "REMOVED"


REMOVED: Final = _RemovedMarker()


class YamlEdit(NamedTuple):
    """The new value of a field. REMOVED deletes it; missing parents are created; a list's length as index appends."""

    path: tuple[PathStep, ...]
    value: object = REMOVED


class _EntryChange(NamedTuple):
    action: Literal["set", "remove", "insert"]
    path: tuple[PathStep, ...]
    value: Any = None


def edited(text: str, edits: Sequence[YamlEdit], *, document_index: int = 0, where: str = "") -> str:
    """Apply edits to one document of the text (empty documents do not count). Raises ManifestError."""
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text[len(bom) :]
    for edit in edits:
        text = _apply_edit(text, YamlEdit(edit.path, _to_json_data(edit.value)), document_index, where)
    return bom + text


def _to_json_data(value: Any) -> Any:
    """Convert a value to the data that reading it back returns: lists for tuples, and JSON numbers."""
    if isinstance(value, dict):
        return {str(key): _to_json_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_data(item) for item in value]
    return to_json_number(value) if type(value) is float else value


def _apply_edit(text: str, edit: YamlEdit, document_index: int, where: str) -> str:
    before = read_yaml_documents(text, where=where)
    index = _find_document_index(before, document_index, where)
    old = before[index] if index < len(before) else None
    try:
        expected = _set_value(old, edit.path, edit.value)
        if _is_identical(expected, old):
            return text
        if _UNUSUAL_BREAK.search(text):
            raise NotEditable("is in a file with line breaks other than LF and CRLF")
        result = text
        for change in _plan_changes(old, edit):
            result = splice_entry(result, _find_outline(result, index), change.action, change.path, change.value)
    except NotEditable as error:
        raise _build_edit_by_hand_error(text, index, edit.path, error.reason, where) from None
    if not _has_only_this_edit(text, result, index, edit):
        with_newline = result + ("\r\n" if "\r\n" in text else "\n")  # a block scalar at the end needs a line break
        if not text.endswith("\n") and _has_only_this_edit(text, with_newline, index, edit):
            return with_newline
        raise _build_edit_by_hand_error(
            text, index, edit.path, "is written in a way that cannot be edited safely", where
        )
    return result


def _find_document_index(values: list[Any], document_index: int, where: str) -> int:
    nonempty_indexes = [index for index, value in enumerate(values) if value is not None]
    if document_index < len(nonempty_indexes):
        return nonempty_indexes[document_index]
    if document_index == 0:
        return 0
    raise ManifestError(
        f"the file has {len(nonempty_indexes)} documents, not {document_index + 1}: name one of them", where=where
    )


def _find_outline(text: str, index: int) -> DocumentOutline:
    try:
        outlines = outline_documents(text)
    except (yaml.YAMLError, RecursionError):  # JSON with escapes that YAML does not support
        raise NotEditable("is in JSON that is not valid YAML") from None
    return outlines[index] if index < len(outlines) else DocumentOutline(None, len(text))


def _has_only_this_edit(text: str, result: str, index: int, edit: YamlEdit) -> bool:
    """True if both YAML dialects read the edit from the result, and no other change."""
    for profile in YamlDialect:
        try:
            values = read_yaml_documents(text, dialect=profile) or [None]
            values[index] = _set_value(values[index], edit.path, edit.value)
        except (ManifestError, LimitError, NotEditable):
            if profile is YamlDialect.KUBERNETES:
                return False
            continue  # kustomize could not read the file before the edit either
        try:
            if not _is_identical(read_yaml_documents(result, dialect=profile), values):
                return False
        except (ManifestError, LimitError):
            return False
    return True


def _is_identical(left: Any, right: Any) -> bool:
    """True if both values are equal and have the same types: in Python, 1, 1.0 and True are equal."""
    return left == right and json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _set_value(value: Any, path: tuple[PathStep, ...], new: Any) -> Any:
    if not path:
        if new is REMOVED:
            raise NotEditable("is the whole document, which cannot be removed")
        return new
    step, remaining_path = path[0], path[1:]
    if value is None:
        value = {} if isinstance(step, str) else []
    if isinstance(step, str) and isinstance(value, dict):
        if not remaining_path and new is REMOVED:
            return {key: child for key, child in value.items() if key != step}
        if new is REMOVED and value.get(step) is None:
            return value
        return {**value, step: _set_value(value.get(step), remaining_path, new)}
    if isinstance(step, int) and isinstance(value, list):
        return _set_list_item(value, step, remaining_path, new)
    raise NotEditable(
        f"goes through {_describe_type(value)}, where {_describe_type({} if isinstance(step, str) else [])} is expected"
    )


def _set_list_item(value: list[Any], step: int, remaining_path: tuple[PathStep, ...], new: Any) -> list[Any]:
    if step == len(value) and new is REMOVED:
        return value
    if not 0 <= step <= len(value):
        raise NotEditable(f"is index {step} of a list of {len(value)}")
    if not remaining_path and new is REMOVED:
        return value[:step] + value[step + 1 :]
    item = value[step] if step < len(value) else None
    return [*value[:step], _set_value(item, remaining_path, new), *value[step + 1 :]]


def _describe_type(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else "a single value"


def _plan_changes(old: Any, edit: YamlEdit) -> Iterator[_EntryChange]:
    """Split an edit into the smallest changes of entries, so that comments between unchanged entries stay."""
    value = old
    for depth, step in enumerate(edit.path):
        child = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            child = value[step]
        if child is None and not (edit.value is REMOVED or depth == len(edit.path) - 1):
            yield _EntryChange("set", edit.path[: depth + 1], _wrap_in_parents(edit.path[depth + 1 :], edit.value))
            return
        value = child
    if edit.value is REMOVED:
        yield _EntryChange("remove", edit.path)
    else:
        yield from _diff_values(value, edit.value, edit.path)


def _wrap_in_parents(path: tuple[PathStep, ...], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _diff_values(old: Any, new: Any, path: tuple[PathStep, ...]) -> Iterator[_EntryChange]:
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() & new.keys():
        for key in new:
            if key not in old or not _is_identical(old[key], new[key]):
                yield from _diff_values(old.get(key), new[key], (*path, key))
        yield from (_EntryChange("remove", (*path, key)) for key in old if key not in new)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _diff_lists(old, new, path)
    else:
        yield _EntryChange("set", path, new)


def _diff_lists(old: list[Any], new: list[Any], path: tuple[PathStep, ...]) -> Iterator[_EntryChange]:
    shorter = min(len(old), len(new))
    same_head = next((index for index in range(shorter) if not _is_identical(old[index], new[index])), shorter)
    max_tail = shorter - same_head
    same_tail = next(
        (index for index in range(max_tail) if not _is_identical(old[-1 - index], new[-1 - index])), max_tail
    )
    pair_count = max_tail - same_tail
    for index in range(same_head, same_head + pair_count):
        yield from _diff_values(old[index], new[index], (*path, index))
    for index in reversed(range(same_head + pair_count, len(old) - same_tail)):
        yield _EntryChange("remove", (*path, index))
    for index in range(same_head + pair_count, len(new) - same_tail):
        yield _EntryChange("insert", (*path, index), new[index])


def _build_edit_by_hand_error(
    text: str, index: int, path: tuple[PathStep, ...], reason: str, where: str
) -> ManifestError:
    path_text = ".".join(map(str, path)) or "the document"
    return ManifestError(f"edit it by hand: {path_text} {reason}", where=where, line=_find_line(text, index, path))


def _find_line(text: str, index: int, path: tuple[PathStep, ...]) -> int:
    """Return the line of the deepest existing entry on the path."""
    try:
        node = _find_outline(text, index).root
    except NotEditable:
        return 0
    offset = node.start if node else 0
    for step in path:
        if node is None or node.kind not in ("map", "list"):
            break
        if isinstance(step, str):
            entry = next((candidate for candidate in node.entries if candidate.key == step), None)
        else:
            entry = node.entries[step] if 0 <= step < len(node.entries) else None
        if entry is None:
            break
        offset, node = entry.start, entry.value
    return text.count("\n", 0, offset) + 1
