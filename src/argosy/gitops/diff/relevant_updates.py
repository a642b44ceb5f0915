"""Decides which updates of live objects are relevant: those that change more than ignored fields.

In: a live manifest before and after an update, and the settings. Out: True if only ignored fields changed. Never:
decides whether to reconcile: health may have changed although all compared fields are equal.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.diff.diff_options import CompareRules, CompareSettings
from argosy.gitops.diff.ignored_fields import Ignored
from argosy.gitops.diff.normalization import Normalizer
from argosy.kube.objects import Manifest, key_of

_OF_A_WRITE: Final = frozenset(("resourceVersion", "generation", "managedFields"))


class UpdateFilter:
    """argo: applies ignoreResourceUpdates, and ignoreDifferences unless the installation disables that."""

    def __init__(self, settings: CompareSettings) -> None:
        ignored = settings.ignored_updates + (settings.ignored if settings.ignores_on_updates else ())
        self._is_on = settings.filters_updates
        self._normalizer = Normalizer(CompareRules(ignored=ignored, ignore_status="none", known_fields=()))

    def is_same(self, before: Manifest, after: Manifest) -> bool:
        """True if only ignored fields changed; always False if updates are not filtered."""
        if not self._is_on:
            return False
        ignored = self._normalizer.ignored(key_of(after))
        return _rest(before, ignored) == _rest(after, ignored)


def _rest(manifest: Manifest, ignored: Ignored) -> Manifest:
    rest = ignored.without(manifest)
    metadata = rest.get("metadata")
    if not isinstance(metadata, dict):
        return rest
    return {**rest, "metadata": {name: value for name, value in metadata.items() if name not in _OF_A_WRITE}}
