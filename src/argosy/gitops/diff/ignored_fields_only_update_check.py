"""Decides which updates of live objects are relevant: those that change more than ignored fields.

In: a live manifest before and after an update, and the settings. Out: True if only ignored fields changed. Never:
decides whether to reconcile: health may have changed although all compared fields are equal.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.diff.diff_options import DiffOptions, DiffSettings
from argosy.gitops.diff.ignored_fields import IgnoredFields
from argosy.gitops.diff.normalization import ManifestNormalizer
from argosy.kube.objects import Manifest, key_of

_WRITE_FIELDS: Final = frozenset(("resourceVersion", "generation", "managedFields"))


class UpdateFilter:
    """argo: applies ignoreResourceUpdates, and ignoreDifferences unless the installation disables that."""

    def __init__(self, settings: DiffSettings) -> None:
        ignored = settings.ignore_update_rules + (
            settings.ignore_rules if settings.ignore_rules_apply_to_updates else ()
        )
        self._is_on = settings.filters_updates
        self._normalizer = ManifestNormalizer(DiffOptions(ignore_rules=ignored, ignore_status="none", known_fields=()))

    def is_irrelevant(self, before: Manifest, after: Manifest) -> bool:
        """True if only ignored fields changed; always False if updates are not filtered."""
        if not self._is_on:
            return False
        ignored = self._normalizer.ignored_fields(key_of(after))
        return _remove_ignored(before, ignored) == _remove_ignored(after, ignored)


def _remove_ignored(manifest: Manifest, ignored: IgnoredFields) -> Manifest:
    remaining = ignored.remove_from(manifest)
    metadata = remaining.get("metadata")
    if not isinstance(metadata, dict):
        return remaining
    return {**remaining, "metadata": {name: value for name, value in metadata.items() if name not in _WRITE_FIELDS}}
