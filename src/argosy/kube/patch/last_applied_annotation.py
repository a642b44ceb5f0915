"""The last-applied-configuration annotation of `kubectl apply`, and how server-side apply uses it.

In: manifests. Out: the fields that server-side apply may take over; a manifest with an updated annotation.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.kube.objects import Manifest
from argosy.kube.patch.applied_configuration_shape_check import find_schema_errors
from argosy.kube.patch.changed_field_path_trees import build_owned_tree, compare
from argosy.kube.patch.field_sets import FieldSet
from argosy.kube.patch.merge_schema_protocol import Shape

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024


def _annotations(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    return (metadata.get("annotations") if isinstance(metadata, dict) else None) or {}


def find_allowed_conflicts(live: Manifest, api_version: str, shape: Shape) -> FieldSet | None:
    """Return the fields that still have their last applied (client-side) value; None if the annotation is unusable."""
    text = _annotations(live).get(LAST_APPLIED)
    if not text or not isinstance(text, str):
        return None
    try:
        last_applied = orjson.loads(text)
    except ValueError:
        return None
    if (
        not isinstance(last_applied, dict)
        or last_applied.get("apiVersion") != api_version
        or find_schema_errors(last_applied, shape)
    ):
        return None
    changed, removed = compare(last_applied, live, shape)
    return FieldSet(build_owned_tree(last_applied, shape)) - FieldSet(changed) - FieldSet(removed)


def update_last_applied(merged: Manifest, config: Manifest) -> Manifest:
    """k8s: kubectl's server-side apply updates the annotation if it exists, and drops it if it becomes too large."""
    annotations = _annotations(merged)
    if not annotations.get(LAST_APPLIED):
        return merged
    updated = annotations | {LAST_APPLIED: format_last_applied(config)}
    if sum(len(name) + len(str(value).encode()) for name, value in updated.items()) > MAX_ANNOTATIONS_BYTES:
        del updated[LAST_APPLIED]
    return merged | {"metadata": merged["metadata"] | {"annotations": updated}}


def format_last_applied(config: Manifest) -> str:
    """Encode a manifest for the annotation: without the annotation itself, as Go writes JSON."""
    metadata = dict(config.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {
            name: value for name, value in metadata["annotations"].items() if name != LAST_APPLIED
        }
    text = orjson.dumps(config | {"metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text + "\n"
