"""Normalizes both sides of a pair, so that they can be compared.

In: a manifest and the diff options. Out: the normalized manifest. Never: raises because of its contents.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff.builtin_normalization import normalize_builtin
from argosy.gitops.diff.diff_options import DiffOptions, KnownField, matches_key
from argosy.gitops.diff.go_type_round_trip import roundtrip_by_type
from argosy.gitops.diff.ignored_fields import NO_JQ_RESULTS, IgnoredFields, JqResults, combine_rules
from argosy.gitops.diff.known_type_fields import normalize_known_fields, select_known_fields
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey

_MAX_CACHED_KINDS: Final = 2_000


class ManifestNormalizer:
    """Applies the diff options to manifests, and caches the rules by kind."""

    def __init__(self, options: DiffOptions) -> None:
        self.options = options
        self._ignore_rules = options.all_ignore_rules
        self._by_kind: dict[GroupKind, tuple[bool, IgnoredFields, list[KnownField]]] = {}

    def ignored_fields(self, key: ResourceKey) -> IgnoredFields:
        return self._rules_for_key(key)[0]

    def normalize_untyped(
        self, manifest: Manifest, key: ResourceKey, jq_results: JqResults = NO_JQ_RESULTS
    ) -> Manifest:
        """Normalize without decoding by type, as last-applied is not decoded."""
        ignored, known_fields = self._rules_for_key(key)
        return normalize_known_fields(ignored.remove_from(self.normalize_builtin(manifest), jq_results), known_fields)

    def normalize_builtin(self, manifest: Manifest) -> Manifest:
        return normalize_builtin(manifest, ignore_aggregated=self.options.ignore_aggregated_roles)

    def normalize(self, manifest: Manifest, key: ResourceKey, jq_results: JqResults = NO_JQ_RESULTS) -> Manifest:
        return self.normalize_untyped(roundtrip_by_type(manifest), key, jq_results)

    def _rules_for_key(self, key: ResourceKey) -> tuple[IgnoredFields, list[KnownField]]:
        """Return the rules of a key; cached by kind, unless a rule names single objects."""
        entry = self._by_kind.get(key.group_kind)
        if entry is not None and entry[0]:
            return entry[1], entry[2]
        rules = [rule for rule in self._ignore_rules if matches_key(rule, key)]
        if entry is not None:
            return combine_rules(rules, key), entry[2]
        fields = combine_rules(rules, key), select_known_fields(self.options.known_fields, key)
        if len(self._by_kind) < _MAX_CACHED_KINDS:
            self._by_kind[key.group_kind] = (not any(map(_names_object, self._list_kind_rules(key))), *fields)
        return fields

    def _list_kind_rules(self, key: ResourceKey) -> list[IgnoreDifference]:
        return [rule for rule in self._ignore_rules if matches_key(rule._replace(name="", namespace=""), key)]


def _names_object(rule: IgnoreDifference) -> bool:
    return bool(rule.name or rule.namespace)


@lru_cache(maxsize=4096)
def find_normalizer(options: DiffOptions) -> ManifestNormalizer:
    return ManifestNormalizer(options)
