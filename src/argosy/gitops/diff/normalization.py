"""Normalizes both sides of a pair, so that they can be compared.

In: a manifest and the diff options. Out: the normalized manifest. Never: raises because of its contents.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff.builtin_normalization import settled
from argosy.gitops.diff.diff_options import CompareRules, KnownField, concerns
from argosy.gitops.diff.ignored_fields import NOTHING_REMOVED, Ignored, Removed, ignored_by
from argosy.gitops.diff.known_types import fields_of, in_known_types
from argosy.gitops.diff.typed_manifests import retyped
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

_MOST_KINDS: Final = 2_000


class Normalizer:
    """Applies the diff options to manifests, and caches the rules by kind."""

    def __init__(self, rules: CompareRules) -> None:
        self.rules = rules
        self._ignored = rules.all_ignored
        self._by_kind: dict[GroupKind, tuple[bool, Ignored, list[KnownField]]] = {}

    def ignored(self, key: ResourceKey) -> Ignored:
        return self._of(key)[0]

    def normalized(self, manifest: Manifest, key: ResourceKey, removed: Removed = NOTHING_REMOVED) -> Manifest:
        """Normalize without decoding by type, as last-applied is not decoded."""
        ignored, known = self._of(key)
        return in_known_types(ignored.without(self.settled(manifest), removed), known)

    def settled(self, manifest: Manifest) -> Manifest:
        return settled(manifest, ignore_aggregated=self.rules.ignore_aggregated_roles)

    def comparable(self, manifest: Manifest, key: ResourceKey, removed: Removed = NOTHING_REMOVED) -> Manifest:
        return self.normalized(retyped(manifest), key, removed)

    def _of(self, key: ResourceKey) -> tuple[Ignored, list[KnownField]]:
        """Return the rules of a key; cached by kind, unless a rule names single objects."""
        known = self._by_kind.get(key.group_kind)
        if known is not None and known[0]:
            return known[1], known[2]
        rules = [rule for rule in self._ignored if concerns(rule, key)]
        if known is not None:
            return ignored_by(rules, key), known[2]
        found = ignored_by(rules, key), fields_of(self.rules.known_fields, key)
        if len(self._by_kind) < _MOST_KINDS:
            self._by_kind[key.group_kind] = (not any(map(_is_for_one, self._of_kind(key))), *found)
        return found

    def _of_kind(self, key: ResourceKey) -> list[IgnoreDifference]:
        return [rule for rule in self._ignored if concerns(rule._replace(name="", namespace=""), key)]


def _is_for_one(rule: IgnoreDifference) -> bool:
    return bool(rule.name or rule.namespace)


@lru_cache(maxsize=4096)
def normalizer_for(rules: CompareRules) -> Normalizer:
    return Normalizer(rules)
