"""What is being deleted waits for nothing but that. In: a live manifest. Out: an Assessment, or None. Never: raises."""

from __future__ import annotations

from argosy.model.annotations import HOOK_FINALIZER
from argosy.model.flow import Assessment, Health
from argosy.model.manifest import Manifest


def pending_deletion(manifest: Manifest) -> Assessment | None:
    """Comes before every rule, of every kind."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("deletionTimestamp"):
        return None
    finalizers = metadata.get("finalizers")
    # argo: a hook that its own finalizer keeps is judged as if it stayed, or nobody would learn how it ended.
    if isinstance(finalizers, list) and HOOK_FINALIZER in finalizers:
        return None
    return Assessment(Health.PROGRESSING, "Pending deletion", rule="pending deletion")
