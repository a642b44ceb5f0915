"""The default comparison: a three-way diff with the last-applied configuration.

In: both sides, normalized. Out: what live would become, and live, in the same form. Never: counts a field as drift that
only live has.
"""

from __future__ import annotations

from typing import Any

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.errors import ManifestError
from argosy.gitops.application.sync_annotations import get_annotation
from argosy.gitops.diff.field_projection import keep_pattern_fields, keep_pattern_keys
from argosy.gitops.diff.go_type_round_trip import as_stored, find_manifest_type
from argosy.gitops.diff.live_covers_desired_check import covers_desired
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch, strategic_merge, three_way
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.strategic_diff import StrategicDiffOptions, diff_maps
from argosy.kube.resource_key import split_api_version
from argosy.kube.schema.builtin_go_struct_fields import Type


def read_last_applied(live: Manifest) -> Manifest | None:
    """Return the last-applied configuration from live's annotation; None if it is missing or invalid."""
    text = get_annotation(live, LAST_APPLIED)
    try:
        manifest = orjson.loads(text) if text else None
    except ValueError:
        return None
    return manifest if isinstance(manifest, dict) else None


def predict_three_way(original: Manifest, desired: Manifest, live: Manifest, shape: Shape) -> tuple[Manifest, Manifest]:
    """Predict live after an apply. Raises PatchError if the desired manifest does not fit its kind."""
    original, desired = _remove_namespace(original), _remove_namespace(desired)
    type_ = find_manifest_type(desired)
    if type_ is None:
        known_live = keep_pattern_keys(original, live)
        predicted = merge_patch.apply(live, three_way.build_three_way_merge_patch(original, desired, known_live))
        return as_stored(predicted, shape), as_stored(live, shape)
    if covers_desired(live, desired, type_) and not _removes_fields(original, desired, type_):
        return live, live
    return predict_builtin(original, desired, live, type_)


def predict_builtin(original: Manifest, desired: Manifest, live: Manifest, type_: Type) -> tuple[Manifest, Manifest]:
    """Predict a built-in kind as the server would store it."""
    patch = three_way.build_three_way_strategic_patch(original, desired, _reduce_claim_templates(original, live), type_)
    return _default_fields(strategic_merge.apply(live, patch, type_), type_), _default_fields(live, type_)


def _default_fields(manifest: Manifest, type_: Type) -> Manifest:
    """argo: a manifest with a value that its type rejects stays as it is, so that it differs and the sync fails."""
    try:
        return as_stored(manifest, type_)
    except ManifestError:
        return manifest


def _removes_fields(original: Manifest, desired: Manifest, type_: Type) -> bool:
    """True if a field of last-applied is no longer desired."""
    return original != desired and bool(
        diff_maps(original, desired, type_, StrategicDiffOptions(include_changes=False))
    )


def _remove_namespace(manifest: Manifest) -> Manifest:
    """argo: the namespace and empty annotations are not compared."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    remaining = {name: value for name, value in metadata.items() if name != "namespace"}
    if "annotations" in remaining and not remaining["annotations"]:
        del remaining["annotations"]
    return {**manifest, "metadata": remaining}


def _reduce_claim_templates(original: Manifest, live: Manifest) -> Manifest:
    """argo: servers default volumeClaimTemplates, and no patch can merge them."""
    group, _ = split_api_version(str(live.get("apiVersion") or ""))
    if live.get("kind") != "StatefulSet" or group not in ("apps", "extensions"):
        return live
    templates, live_templates = _find_claim_templates(original), _find_claim_templates(live)
    if templates is None or live_templates is None:
        return live
    return {**live, "spec": {**live["spec"], "volumeClaimTemplates": keep_pattern_fields(templates, live_templates)}}


def _find_claim_templates(manifest: Manifest) -> list[Any] | None:
    spec = manifest.get("spec")
    templates = spec.get("volumeClaimTemplates") if isinstance(spec, dict) else None
    return templates if isinstance(templates, list) else None
