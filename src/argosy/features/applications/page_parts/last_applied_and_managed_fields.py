"""Manifests prepared for display as text.

In: manifests. Out: manifests without managedFields; the last applied configuration. Never: unmasks values.
"""

from __future__ import annotations

from argosy.annotations import LAST_APPLIED
from argosy.errors import UserError
from argosy.kube.objects import Manifest, read_json


def drop_managed_fields(manifest: Manifest) -> Manifest:
    """k8s: managedFields have a page of their own."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "managedFields"}
    return {**manifest, "metadata": metadata}


def find_last_applied(live: Manifest) -> Manifest | None:
    """k8s: Read the annotation of client-side apply; None if it is missing or invalid."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if not isinstance(text, str):
        return None
    try:
        manifest = read_json(text.encode(), where="last applied").value
    except UserError:
        return None
    is_manifest = isinstance(manifest, dict) and isinstance(manifest.get("metadata"), dict) and "kind" in manifest
    return manifest if is_manifest else None
