"""The default comparison: a three-way diff with the last-applied configuration.

In: both sides, normalized. Out: what live would become, and live, in the same form. Never: counts a field as drift that
only live has.
"""

from __future__ import annotations

from typing import Any

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.gitops.application.hooks import annotation_text
from argosy.gitops.diff.fast_path import covers
from argosy.gitops.diff.field_subset import trimmed, trimmed_map
from argosy.gitops.diff.typed_manifests import kept, type_for
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch, strategic_merge, three_way
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.strategic_diff import Wanted, diff_maps
from argosy.kube.schema.builtin_types import Type


def last_applied(live: Manifest) -> Manifest | None:
    """Return the last-applied configuration from live's annotation; None if it is missing or invalid."""
    text = annotation_text(live, LAST_APPLIED)
    try:
        found = orjson.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def predict(original: Manifest, desired: Manifest, live: Manifest, shape: Shape) -> tuple[Manifest, Manifest]:
    """Predict live after an apply. Raises PatchError or ManifestError if the desired manifest does not fit its kind."""
    original, desired = _without_place(original), _without_place(desired)
    type_ = type_for(desired)
    if type_ is None:
        known = trimmed_map(original, live)
        predicted = merge_patch.apply(live, three_way.merge(original, desired, known))
        return kept(predicted, shape), kept(live, shape)
    if covers(live, desired, type_) and not _removes(original, desired, type_):
        return live, live
    return merged(original, desired, live, type_)


def merged(original: Manifest, desired: Manifest, live: Manifest, type_: Type) -> tuple[Manifest, Manifest]:
    """Predict a built-in kind as the server would store it."""
    patch = three_way.strategic(original, desired, _with_known_claims(original, live), type_)
    return kept(strategic_merge.apply(live, patch, type_), type_), kept(live, type_)


def _removes(original: Manifest, desired: Manifest, type_: Type) -> bool:
    """True if a field of last-applied is no longer desired."""
    return original != desired and bool(diff_maps(original, desired, type_, Wanted(changes=False)))


def _without_place(manifest: Manifest) -> Manifest:
    """argo: the namespace and empty annotations are not compared."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    rest = {name: value for name, value in metadata.items() if name != "namespace"}
    if "annotations" in rest and not rest["annotations"]:
        del rest["annotations"]
    return {**manifest, "metadata": rest}


def _with_known_claims(original: Manifest, live: Manifest) -> Manifest:
    """argo: servers default volumeClaimTemplates, and no patch can merge them."""
    group, _ = split_api_version(str(live.get("apiVersion") or ""))
    if live.get("kind") != "StatefulSet" or group not in ("apps", "extensions"):
        return live
    templates, found = _claims(original), _claims(live)
    if templates is None or found is None:
        return live
    return {**live, "spec": {**live["spec"], "volumeClaimTemplates": trimmed(templates, found)}}


def _claims(manifest: Manifest) -> list[Any] | None:
    spec = manifest.get("spec")
    found = spec.get("volumeClaimTemplates") if isinstance(spec, dict) else None
    return found if isinstance(found, list) else None
