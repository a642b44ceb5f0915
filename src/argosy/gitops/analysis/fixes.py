"""Edits that do away with findings. In: an object as a file has it. Out: edits; none where it says something else.

Never: a change that a human would have to choose; what has two cures has no edit here.
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
    """What is there; None where anything on the way is missing."""
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
    """Only where the file itself says what was found."""
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
            return []  # somebody wants it otherwise
        at = options.index(option) if said else len(options)
        return [Edit((*_OPTIONS, at), option)]

    return edits


def written(path: tuple[Step, ...], new: object) -> Edits:
    """Whatever the file says there now."""
    return lambda _: [Edit(path, new)]


def without_ignored(text: str) -> Edits:
    """Without this pointer or expression; a rule that has no other goes, and a list that has no other rule."""

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
    """One more word in an annotation that lists them with commas."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        given = value_at(manifest, ("metadata", "annotations", name))
        words = [each.strip() for each in given.split(",") if each.strip()] if isinstance(given, str) else []
        text = str(given) if word in words else ",".join([*words, word])
        return [Edit(("metadata", "annotations", name), text)]

    return edits


def moved(old: tuple[Step, ...], new: tuple[Step, ...]) -> Edits:
    """Only where the new place is free."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        value = value_at(manifest, old)
        if value is None or value_at(manifest, new) is not None:
            return []
        return [Edit(new, value), Edit(old, REMOVED)]

    return edits


def in_texts(path: tuple[Step, ...], change: Callable[[str], str]) -> Edits:
    """Of a container's command and arguments."""

    def edits(manifest: Manifest) -> Sequence[Edit]:
        found = []
        for name in ("command", "args"):
            words = value_at(manifest, (*path, name))
            for number, word in enumerate(words if isinstance(words, list) else []):
                if isinstance(word, str) and change(word) != word:
                    found.append(Edit((*path, name, number), change(word)))
        return found

    return edits
