"""Which manifests are hooks, by Argo CD's and by Helm's annotation.

In: a manifest of any shape. Out: yes or no. Never: raises, or says when a hook runs.
"""

from __future__ import annotations

from typing import Final

from argosy.model import annotations as names
from argosy.model.manifest import Manifest

_KNOWN: Final = frozenset(("PreSync", "Sync", "PostSync", "SyncFail", "Skip"))


def annotation_text(manifest: Manifest, name: str) -> str | None:
    """None where the annotation is absent, or where anything on the way to it is not what it should be."""
    metadata = manifest.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = found.get(name) if isinstance(found, dict) else None
    return text if isinstance(text, str) else None


def is_hook(manifest: Manifest) -> bool:
    """argo: hooks of types that nobody supports, such as Helm's `test`, are hooks too, though they never run."""
    if annotation_text(manifest, names.HOOK) is not None:
        return not is_skipped(manifest)
    helm = annotation_text(manifest, names.HELM_HOOK)
    # argo: Helm marks definitions of custom resources in the same way, but they are ordinary manifests.
    return helm is not None and helm != "crd-install"


def is_skipped(manifest: Manifest) -> bool:
    """Whether Skip is the only hook type that it names. Such a manifest is never applied."""
    return _words(manifest, names.HOOK) & _KNOWN == {"Skip"}


def _words(manifest: Manifest, name: str) -> frozenset[str]:
    return frozenset(word.strip() for word in (annotation_text(manifest, name) or "").split(","))
