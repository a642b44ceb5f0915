"""Removes ignored fields from a manifest.

In: a manifest of any shape, and the rules for its key. Out: the manifest without those fields. Never: raises; a rule
that matches nothing changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from argosy.errors import PatchError
from argosy.gitops.application import IgnoreDifference
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.patch import json_pointer
from argosy.languages.jq import Path, compile_path
from argosy.languages.jq_evaluator import JqTooExpensiveError

_INDEX: Final = re.compile(r"-?[0-9]{1,9}")


class Question(NamedTuple):
    """A document and the jq expressions to delete from it, in order: input for the real jq."""

    document: bytes
    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """Results of the real jq: documents without the expressions' fields. Faults are sentences.

    `too_expensive` collects expressions that exceeded their limit during a comparison; they are not tried again in it.
    """

    answers: Mapping[Question, Manifest] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    too_expensive: dict[str, None] | None = None


NOTHING_REMOVED: Final = Removed()


@dataclass(frozen=True, slots=True)
class Ignored:
    """The ignored fields of one key."""

    pointers: tuple[tuple[str, ...], ...] = ()
    expressions: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()  # compiled expressions; those that need the real jq are missing
    managers: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()

    @property
    def needs_confined(self) -> bool:
        return len(self.paths) < len(self.expressions)

    def question(self, manifest: Manifest) -> Question | None:
        """Return the input for the real jq, or None if it is not needed."""
        if not self.needs_confined:
            return None
        return Question(orjson.dumps(self._without_pointers(manifest)), self.expressions)

    def without(self, manifest: Manifest, removed: Removed = NOTHING_REMOVED) -> Manifest:
        """Remove the ignored fields. Without a result of the real jq, its expressions remove nothing."""
        if (question := self.question(manifest)) is not None:
            answer = removed.answers.get(question)
            if answer is not None:
                return answer
        made = self._without_pointers(manifest)
        for path in self.paths:
            made = _without_path(made, path, {} if removed.too_expensive is None else removed.too_expensive)
        return made

    def _without_pointers(self, manifest: Manifest) -> Manifest:
        for tokens in self.pointers:
            manifest = without(manifest, tokens)
        return manifest


def _without_path(manifest: Manifest, path: Path, too_expensive: dict[str, None]) -> Manifest:
    if path.expression in too_expensive:
        return manifest
    try:
        found = path.remove(manifest)
    except JqTooExpensiveError:
        too_expensive[path.expression] = None
        return manifest
    return found if isinstance(found, dict) else manifest


def ignored_by(rules: Iterable[IgnoreDifference], key: ResourceKey) -> Ignored:
    """Combine rules that match the key."""
    pointers: list[tuple[str, ...]] = []
    expressions: list[str] = []
    managers: set[str] = set()
    faults: list[str] = []
    for rule in rules:
        expressions += [text for text in rule.jq_paths if text.strip()]
        managers.update(rule.managers)
        for text in rule.pointers:
            try:
                pointers.append(tuple(json_pointer.parse(text)))
            except PatchError:
                faults.append(f"ignoreDifferences of {key.kind}: {text!r} is not a JSON pointer; start it with a slash")
    paths = [path for text in expressions if (path := compile_path(text)) is not None]
    return Ignored(
        tuple(dict.fromkeys(each for each in pointers if each)),
        tuple(expressions),
        tuple(paths),
        frozenset(managers),
        tuple(faults),
    )


def without(value: Any, tokens: Sequence[str]) -> Any:
    """Remove the field at the path; the same value if there is none. argo: -1 is the last element of a list."""
    token, below = tokens[0], tokens[1:]
    if isinstance(value, dict):
        if token not in value:
            return value
        if not below:
            return {name: item for name, item in value.items() if name != token}
        found = without(value[token], below)
        return value if found is value[token] else {**value, token: found}
    if isinstance(value, list) and _INDEX.fullmatch(token):
        at = int(token) + (len(value) if token.startswith("-") else 0)
        if 0 <= at < len(value):
            return [*value[:at], *([without(value[at], below)] if below else []), *value[at + 1 :]]
    return value
