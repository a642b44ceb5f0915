"""Which updates of live manifests matter: those that change more than what an installation ignores of them.

In: a live manifest, and the settings. Out: a digest; where it stays the same, nothing that matters changed.
Never: decides by itself whether to reconcile: health may have changed though the digest has not.
"""

from __future__ import annotations

import hashlib
from typing import Final

import orjson

from argosy.compare.comparable import Normalizer
from argosy.compare.ignoring import without
from argosy.compare.rules import CompareRules, CompareSettings
from argosy.model.manifest import Manifest, key_of

_OF_A_WRITE: Final = (
    ("metadata", "resourceVersion"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
)


class UpdateFilter:
    """argo: rules of ignoreResourceUpdates, and those of ignoreDifferences where the installation does not say no."""

    def __init__(self, settings: CompareSettings) -> None:
        ignored = settings.ignored_updates + (settings.ignored if settings.ignores_on_updates else ())
        self._is_on = settings.filters_updates
        self._normalizer = Normalizer(CompareRules(ignored=ignored, ignore_status="none", known_fields=()))

    def digest(self, live: Manifest) -> bytes:
        """Empty where updates are not filtered: then each one matters."""
        if not self._is_on:
            return b""
        rest = self._normalizer.ignored(key_of(live)).without(live)
        for tokens in _OF_A_WRITE:
            rest = without(rest, tokens)
        return hashlib.blake2b(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
