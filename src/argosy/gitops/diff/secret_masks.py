"""Masks the values of Secrets.

In: manifests that are shown together. Out: the same with masks instead of values: equal values have equal masks. Never:
shows a value of a Secret, whatever its type.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.gitops.application.step_results import Pair
from argosy.gitops.application.sync_annotations import get_annotation
from argosy.gitops.diff.builtin_normalization import normalize_secret
from argosy.gitops.diff.three_way_diff import read_last_applied
from argosy.kube.objects import Manifest
from argosy.observability.redaction import MASK

_MASK_EXTENSION: Final = "++++"
_VALUE_FIELDS: Final = ("data", "stringData")


def is_secret(manifest: Manifest | None) -> bool:
    return manifest is not None and manifest.get("kind") == "Secret" and manifest.get("apiVersion") == "v1"


def mask_pair(pair: Pair, annotations: Collection[str] = ()) -> Pair:
    """Mask all manifests of a pair."""
    if pair.key.group_kind != ("", "Secret"):
        return pair
    sides = mask_secrets((pair.desired, pair.live, pair.predicted, pair.compared), annotations)
    desired, live, predicted, compared = sides
    return replace(pair, desired=desired, live=live, predicted=predicted, compared=compared)


def mask_secrets(manifests: Sequence[Manifest | None], annotations: Collection[str] = ()) -> list[Manifest | None]:
    """argo: the mask of a key's first value has eight characters, each other value four more; last-applied is masked
    too.
    """
    marks = _MaskTable()
    return [
        _mask_secret(manifest, marks, annotations) if manifest and is_secret(manifest) else manifest
        for manifest in manifests
    ]


class _MaskTable:
    """Assigns a mask to each value of each key."""

    def __init__(self) -> None:
        self._masks: dict[str, dict[bytes, str]] = {}

    def mask_value(self, key: str, value: Any) -> str:
        masks = self._masks.setdefault(key, {})
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return masks.setdefault(text, MASK + _MASK_EXTENSION * len(masks))


def _mask_secret(manifest: Manifest, masks: _MaskTable, annotations: Collection[str]) -> Manifest:
    text = get_annotation(manifest, LAST_APPLIED)
    original = read_last_applied(manifest)
    masked_manifest = _mask_values(normalize_secret(manifest), masks)
    live_annotations = (
        (masked_manifest.get("metadata") or {}).get("annotations")
        if isinstance(masked_manifest.get("metadata"), dict)
        else None
    )
    if not isinstance(live_annotations, dict):
        return masked_manifest
    masked_annotations = dict(live_annotations)
    for name in annotations:
        if name in masked_annotations:
            masked_annotations[name] = masks.mask_value(f"annotation {name}", masked_annotations[name])
    if original is not None:
        masked_original = _mask_secret(original, masks, annotations)
        masked_annotations[LAST_APPLIED] = orjson.dumps(masked_original, option=orjson.OPT_SORT_KEYS).decode()
    elif text is not None or LAST_APPLIED in masked_annotations:
        masked_annotations[LAST_APPLIED] = MASK  # it is not valid JSON, so it is masked as a whole
    return {**masked_manifest, "metadata": {**masked_manifest["metadata"], "annotations": masked_annotations}}


def _mask_values(manifest: Manifest, masks: _MaskTable) -> Manifest:
    masked_manifest = dict(manifest)
    for field in _VALUE_FIELDS:
        values = masked_manifest.get(field)
        if isinstance(values, dict):
            masked_manifest[field] = {name: masks.mask_value(name, value) for name, value in values.items()}
        elif values is not None:
            masked_manifest[field] = MASK
    return masked_manifest
