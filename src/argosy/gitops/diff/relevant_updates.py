"""Which updates of live manifests matter: those that change more than what an installation ignores of them.

In: a live manifest before and after an update, and the settings. Out: whether it is the same but for what is ignored.
Never: decides by itself whether to reconcile: health may have changed though all that counts is the same.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.diff.diff_options import CompareRules, CompareSettings
from argosy.gitops.diff.ignored_fields import Ignored
from argosy.gitops.diff.normalization import Normalizer
from argosy.kube.objects import Manifest, key_of

_OF_A_WRITE: Final = frozenset(("resourceVersion", "generation", "managedFields"))


class UpdateFilter:
    """argo: rules of ignoreResourceUpdates, and those of ignoreDifferences where the installation does not say no."""

    def __init__(self, settings: CompareSettings) -> None:
        ignored = settings.ignored_updates + (settings.ignored if settings.ignores_on_updates else ())
        self._is_on = settings.filters_updates
        self._normalizer = Normalizer(CompareRules(ignored=ignored, ignore_status="none", known_fields=()))

    def is_same(self, before: Manifest, after: Manifest) -> bool:
        """Never where updates are not filtered: then each one matters."""
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
