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
from argosy.gitops.application.hooks import annotation_text
from argosy.gitops.application.step_results import Pair
from argosy.gitops.diff.builtin_normalization import secret
from argosy.gitops.diff.three_way_diff import last_applied
from argosy.kube.objects import Manifest

SHORTEST: Final = "++++++++"
_LONGER: Final = "++++"
_VALUES: Final = ("data", "stringData")


def is_secret(manifest: Manifest | None) -> bool:
    return manifest is not None and manifest.get("kind") == "Secret" and manifest.get("apiVersion") == "v1"


def masked_pair(pair: Pair, annotations: Collection[str] = ()) -> Pair:
    """Mask all manifests of a pair."""
    if pair.key.group_kind != ("", "Secret"):
        return pair
    sides = masked((pair.desired, pair.live, pair.predicted, pair.compared), annotations)
    desired, live, predicted, compared = sides
    return replace(pair, desired=desired, live=live, predicted=predicted, compared=compared)


def masked(manifests: Sequence[Manifest | None], annotations: Collection[str] = ()) -> list[Manifest | None]:
    """argo: the mask of a key's first value has eight characters, each other value four more; last-applied is masked
    too.
    """
    marks = _Marks()
    return [_masked(each, marks, annotations) if each and is_secret(each) else each for each in manifests]


class _Marks:
    """Assigns a mask to each value of each key."""

    def __init__(self) -> None:
        self._of: dict[str, dict[bytes, str]] = {}

    def mark(self, key: str, value: Any) -> str:
        known = self._of.setdefault(key, {})
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return known.setdefault(text, SHORTEST + _LONGER * len(known))


def _masked(manifest: Manifest, marks: _Marks, annotations: Collection[str]) -> Manifest:
    text = annotation_text(manifest, LAST_APPLIED)
    original = last_applied(manifest)
    made = _without_values(secret(manifest), marks)
    given = (made.get("metadata") or {}).get("annotations") if isinstance(made.get("metadata"), dict) else None
    if not isinstance(given, dict):
        return made
    shown = dict(given)
    for name in annotations:
        if name in shown:
            shown[name] = marks.mark(f"annotation {name}", shown[name])
    if original is not None:
        hidden = _masked(original, marks, annotations)
        shown[LAST_APPLIED] = orjson.dumps(hidden, option=orjson.OPT_SORT_KEYS).decode()
    elif text is not None or LAST_APPLIED in shown:
        shown[LAST_APPLIED] = SHORTEST  # it is not valid JSON, so it is masked as a whole
    return {**made, "metadata": {**made["metadata"], "annotations": shown}}


def _without_values(manifest: Manifest, marks: _Marks) -> Manifest:
    made = dict(manifest)
    for field in _VALUES:
        given = made.get(field)
        if isinstance(given, dict):
            made[field] = {name: marks.mark(name, value) for name, value in given.items()}
        elif given is not None:
            made[field] = SHORTEST
    return made
