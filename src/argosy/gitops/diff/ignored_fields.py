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
from argosy.kube.objects import Manifest
from argosy.kube.patch import json_pointer
from argosy.kube.resource_key import ResourceKey
from argosy.languages.jq_evaluator import JqTooExpensiveError
from argosy.languages.jq_path_expressions import JqExpression, compile_jq

_INDEX: Final = re.compile(r"-?[0-9]{1,9}")


class JqQuestion(NamedTuple):
    """A document and the jq expressions to delete from it, in order: input for the real jq."""

    document: bytes
    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JqResults:
    """Results of the real jq: documents without the expressions' fields. Faults are sentences.

    `too_expensive` collects expressions that exceeded their limit during a comparison; they are not tried again in it.
    """

    documents: Mapping[JqQuestion, Manifest] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    too_expensive: dict[str, None] | None = None


NO_JQ_RESULTS: Final = JqResults()


@dataclass(frozen=True, slots=True)
class IgnoredFields:
    """The ignored fields of one key."""

    pointers: tuple[tuple[str, ...], ...] = ()
    expressions: tuple[str, ...] = ()
    paths: tuple[JqExpression, ...] = ()  # compiled expressions; those that need the real jq are missing
    managers: frozenset[str] = frozenset()
    faults: tuple[str, ...] = ()

    @property
    def needs_real_jq(self) -> bool:
        return len(self.paths) < len(self.expressions)

    def build_question(self, manifest: Manifest) -> JqQuestion | None:
        """Return the input for the real jq, or None if it is not needed."""
        if not self.needs_real_jq:
            return None
        return JqQuestion(orjson.dumps(self._remove_pointers(manifest)), self.expressions)

    def remove_from(self, manifest: Manifest, jq_results: JqResults = NO_JQ_RESULTS) -> Manifest:
        """Remove the ignored fields. Without a result of the real jq, its expressions remove nothing."""
        if (question := self.build_question(manifest)) is not None:
            document = jq_results.documents.get(question)
            if document is not None:
                return document
        reduced = self._remove_pointers(manifest)
        for path in self.paths:
            reduced = _remove_jq_path(
                reduced, path, {} if jq_results.too_expensive is None else jq_results.too_expensive
            )
        return reduced

    def _remove_pointers(self, manifest: Manifest) -> Manifest:
        for tokens in self.pointers:
            manifest = remove_field(manifest, tokens)
        return manifest


def _remove_jq_path(manifest: Manifest, path: JqExpression, too_expensive: dict[str, None]) -> Manifest:
    if path.expression in too_expensive:
        return manifest
    try:
        reduced = path.delete_paths(manifest)
    except JqTooExpensiveError:
        too_expensive[path.expression] = None
        return manifest
    return reduced if isinstance(reduced, dict) else manifest


def combine_rules(rules: Iterable[IgnoreDifference], key: ResourceKey) -> IgnoredFields:
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
    paths = [path for text in expressions if (path := compile_jq(text)) is not None]
    return IgnoredFields(
        tuple(dict.fromkeys(pointer for pointer in pointers if pointer)),
        tuple(expressions),
        tuple(paths),
        frozenset(managers),
        tuple(faults),
    )


def remove_field(value: Any, tokens: Sequence[str]) -> Any:
    """Remove the field at the path; the same value if there is none. argo: -1 is the last element of a list."""
    token, remaining_tokens = tokens[0], tokens[1:]
    if isinstance(value, dict):
        if token not in value:
            return value
        if not remaining_tokens:
            return {name: item for name, item in value.items() if name != token}
        reduced = remove_field(value[token], remaining_tokens)
        return value if reduced is value[token] else {**value, token: reduced}
    if isinstance(value, list) and _INDEX.fullmatch(token):
        index = int(token) + (len(value) if token.startswith("-") else 0)
        if 0 <= index < len(value):
            return [
                *value[:index],
                *([remove_field(value[index], remaining_tokens)] if remaining_tokens else []),
                *value[index + 1 :],
            ]
    return value
