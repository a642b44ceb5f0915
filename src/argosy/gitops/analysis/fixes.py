"""Builds edits that fix findings.

In: an object as its file has it. Out: edits; none if the file does not have the reported value. Never: an edit that a
person must choose; a mistake with two possible fixes has no edit here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.objects.yaml_edits import REMOVED, Edit, Step

Edits = Callable[[Manifest], Sequence[Edit]]
_OPTIONS: Final = ("spec", "syncPolicy", "syncOptions")
_LISTS: Final = ("jsonPointers", "jqPathExpressions")


def value_at(manifest: Manifest, path: Sequence[Step]) -> Any:
    """Return the value at the path; None if a step is missing."""
    here: Any = manifest
    for step in path:
        if isinstance(here, dict) and isinstance(step, str):
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            return None
    return here


def replaced(path: tuple[Step, ...], was: object, new: object) -> Edits:
    """Replace the value, only if the file itself has the reported value."""
    return lambda manifest: [Edit(path, new)] if value_at(manifest, path) == was else []


def with_sync_option(option: str) -> Edits:
    name = option.partition("=")[0]

    def edits(manifest: Manifest) -> Sequence[Edit]:
        given = value_at(manifest, _OPTIONS)
        options = [] if given is None else given
        if not isinstance(options, list):
            return []
        said = [str(each) for each in options if str(each).partition("=")[0] == name]
        if said and said != [option]:
            return []  # the file sets the option to another value on purpose
        at = options.index(option) if said else len(options)
        return [Edit((*_OPTIONS, at), option)]

    return edits


def written(path: tuple[Step, ...], new: object) -> Edits:
    """Set the value, whatever the file has there now."""
    return lambda _: [Edit(path, new)]


def without_ignored(text: str) -> Edits:
    """Remove this pointer or expression; remove a rule and the list of rules if nothing is left."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        path = ("spec", "ignoreDifferences")
        rules = value_at(manifest, path)
        if not isinstance(rules, list):
            return []
        left = [each for rule in rules if (each := _without(rule, text)) is not None]
        return [Edit(path, left)] if left else [Edit(path)]

    return edits


def _without(rule: Any, text: str) -> Any:
    if not isinstance(rule, dict) or not any(text in (rule.get(name) or ()) for name in _LISTS):
        return rule
    left = dict(rule)
    for name in _LISTS:
        if isinstance(rule.get(name), list):
            left[name] = [each for each in rule[name] if each != text]
            if not left[name]:
                del left[name]
    return left if left.keys() & {*_LISTS, "managedFieldsManagers"} else None


def annotated(name: str, text: str) -> Edits:
    return lambda _: [Edit(("metadata", "annotations", name), str(text))]


def with_word(name: str, word: str) -> Edits:
    """Add a word to an annotation that holds a comma-separated list."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        given = value_at(manifest, ("metadata", "annotations", name))
        words = [each.strip() for each in given.split(",") if each.strip()] if isinstance(given, str) else []
        text = str(given) if word in words else ",".join([*words, word])
        return [Edit(("metadata", "annotations", name), text)]

    return edits


def moved(old: tuple[Step, ...], new: tuple[Step, ...]) -> Edits:
    """Move a value, only if the new path is free."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        value = value_at(manifest, old)
        if value is None or value_at(manifest, new) is not None:
            return []
        return [Edit(new, value), Edit(old, REMOVED)]

    return edits


def in_texts(path: tuple[Step, ...], change: Callable[[str], str]) -> Edits:
    """Change the strings of a container's command and arguments."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        found = []
        for name in ("command", "args"):
            words = value_at(manifest, (*path, name))
            for number, word in enumerate(words if isinstance(words, list) else []):
                if isinstance(word, str) and change(word) != word:
                    found.append(Edit((*path, name, number), change(word)))
        return found

    return edits
