"""Builds edits that fix findings.

In: an object as its file has it. Out: edits; none if the file does not have the reported value. Never: an edit that a
person must choose; a mistake with two possible fixes has no edit here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.objects.yaml_edits import REMOVED, PathStep, YamlEdit

BuildEdits = Callable[[Manifest], Sequence[YamlEdit]]
_SYNC_OPTIONS_PATH: Final = ("spec", "syncPolicy", "syncOptions")
_POINTER_LIST_FIELDS: Final = ("jsonPointers", "jqPathExpressions")


def get_value(manifest: Manifest, path: Sequence[PathStep]) -> Any:
    """Return the value at the path; None if a step is missing."""
    value: Any = manifest
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def replace_value(path: tuple[PathStep, ...], old: object, new: object) -> BuildEdits:
    """Replace the value, only if the file itself has the reported value."""
    return lambda manifest: [YamlEdit(path, new)] if get_value(manifest, path) == old else []


def add_sync_option(option: str) -> BuildEdits:
    name = option.partition("=")[0]

    def edits(manifest: Manifest) -> Sequence[YamlEdit]:
        value = get_value(manifest, _SYNC_OPTIONS_PATH)
        options = [] if value is None else value
        if not isinstance(options, list):
            return []
        present_options = [str(entry) for entry in options if str(entry).partition("=")[0] == name]
        if present_options and present_options != [option]:
            return []  # the file sets the option to another value on purpose
        index = options.index(option) if present_options else len(options)
        return [YamlEdit((*_SYNC_OPTIONS_PATH, index), option)]

    return edits


def set_value(path: tuple[PathStep, ...], new: object) -> BuildEdits:
    """Set the value, whatever the file has there now."""
    return lambda _: [YamlEdit(path, new)]


def remove_ignored_field(text: str) -> BuildEdits:
    """Remove this pointer or expression; remove a rule and the list of rules if nothing is left."""

    def edits(manifest: Manifest) -> Sequence[YamlEdit]:
        path = ("spec", "ignoreDifferences")
        rules = get_value(manifest, path)
        if not isinstance(rules, list):
            return []
        left = [remaining_rule for rule in rules if (remaining_rule := _drop_ignored_field(rule, text)) is not None]
        return [YamlEdit(path, left)] if left else [YamlEdit(path)]

    return edits


def _drop_ignored_field(rule: Any, text: str) -> Any:
    if not isinstance(rule, dict) or not any(text in (rule.get(name) or ()) for name in _POINTER_LIST_FIELDS):
        return rule
    remaining = dict(rule)
    for name in _POINTER_LIST_FIELDS:
        if isinstance(rule.get(name), list):
            remaining[name] = [entry for entry in rule[name] if entry != text]
            if not remaining[name]:
                del remaining[name]
    return remaining if remaining.keys() & {*_POINTER_LIST_FIELDS, "managedFieldsManagers"} else None


def set_annotation(name: str, text: str) -> BuildEdits:
    return lambda _: [YamlEdit(("metadata", "annotations", name), str(text))]


def add_annotation_word(name: str, word: str) -> BuildEdits:
    """Add a word to an annotation that holds a comma-separated list."""

    def edits(manifest: Manifest) -> Sequence[YamlEdit]:
        value = get_value(manifest, ("metadata", "annotations", name))
        words = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else []
        text = str(value) if word in words else ",".join([*words, word])
        return [YamlEdit(("metadata", "annotations", name), text)]

    return edits


def move_value(old: tuple[PathStep, ...], new: tuple[PathStep, ...]) -> BuildEdits:
    """Move a value, only if the new path is free."""

    def edits(manifest: Manifest) -> Sequence[YamlEdit]:
        value = get_value(manifest, old)
        if value is None or get_value(manifest, new) is not None:
            return []
        return [YamlEdit(new, value), YamlEdit(old, REMOVED)]

    return edits


def change_command_texts(path: tuple[PathStep, ...], change: Callable[[str], str]) -> BuildEdits:
    """Change the strings of a container's command and arguments."""

    def edits(manifest: Manifest) -> Sequence[YamlEdit]:
        changed_edits = []
        for name in ("command", "args"):
            words = get_value(manifest, (*path, name))
            for index, word in enumerate(words if isinstance(words, list) else []):
                if isinstance(word, str) and change(word) != word:
                    changed_edits.append(YamlEdit((*path, name, index), change(word)))
        return changed_edits

    return edits
