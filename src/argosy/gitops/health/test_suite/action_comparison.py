"""Compares the result of an action with the expected manifest, as Argo CD does: by a diff that would apply it.

In: the expected manifest as desired, the result as live. Out: the differing fields. Never: reports a field that only
the result has; mutates its input.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from argosy.errors import ManifestError, PatchError
from argosy.gitops.health.test_suite.normalization import normalized, with_times_of
from argosy.kube.names import GroupKind, split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch, strategic_merge, three_way
from argosy.kube.patch.last_applied import LAST_APPLIED
from argosy.kube.schema import defaults, typed_json
from argosy.kube.schema.builtin_types import Type, type_of

MISSING: Final = "(missing)"
MOST_TOLD: Final = 20

Differences = dict[str, tuple[Any, Any]]


def differences(desired: Manifest, live: Manifest) -> Differences:
    """Return (expected, actual) by field path; empty if the result is as expected."""
    shape = _shape(desired)
    desired = normalized(_written(desired, shape))
    live = with_times_of(desired, normalized(_written(live, shape)))
    last = _last_applied(live)
    if last is not None:
        try:
            return _three_way(normalized(last), desired, live, shape)
        except PatchError:
            pass  # argo: then the expected manifest counts as last applied
    return _three_way(desired, desired, live, shape)


def _three_way(last: Manifest, desired: Manifest, live: Manifest, shape: Type | None) -> Differences:
    last, desired = _without_namespace(last), _without_namespace(desired)
    if shape is None or not (_fits(desired, shape) and _fits(live, shape)):
        patch = three_way.merge(last, desired, overlap(last, live))
        return unlike(merge_patch.apply(live, patch), live)
    current = live
    if shape.name.endswith(".StatefulSet"):
        current = _trimmed_claims(last, live)
    patch = three_way.strategic(last, desired, current, shape)
    return unlike(_filled(strategic_merge.apply(live, patch, shape), shape), _filled(live, shape))


def _shape(manifest: Manifest) -> Type | None:
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    return type_of(*split_api_version(version), kind)


def _written(manifest: Manifest, shape: Type | None) -> Manifest:
    """argo: a built-in kind is converted to its Go type, which drops empty values, unless it has an unknown field."""
    manifest = _whole(manifest)
    if shape is None:
        return manifest
    try:
        decoded = typed_json.decode(shape, manifest, kind=manifest["kind"], api_version=manifest["apiVersion"])
    except (ManifestError, KeyError):
        return manifest
    return manifest if decoded.unknown else overlap(manifest, decoded.manifest)


def _fits(manifest: Manifest, shape: Type) -> bool:
    try:
        typed_json.decode(shape, manifest, kind=manifest["kind"], api_version=manifest["apiVersion"])
    except (ManifestError, KeyError):
        return False
    return True


def _filled(manifest: Manifest, shape: Type) -> Manifest:
    """Apply the defaults of the kind, as the API server does."""
    group, version = split_api_version(manifest["apiVersion"])
    try:
        return defaults.apply(GroupKind(group, manifest["kind"]), version, manifest)
    except ManifestError:
        return manifest


def _last_applied(live: Manifest) -> Manifest | None:
    metadata = live.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(LAST_APPLIED) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return None
    try:
        last = orjson.loads(text)
    except ValueError:
        return None
    return last if isinstance(last, dict) and isinstance(last.get("kind"), str) else None


def _without_namespace(manifest: Manifest) -> Manifest:
    """argo: ignores the namespace and empty annotations, which applied manifests often lack."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    kept = {
        name: part
        for name, part in metadata.items()
        if name != "namespace" and not (name == "annotations" and part in (None, {}))
    }
    return manifest | {"metadata": kept}


def _trimmed_claims(last: Manifest, live: Manifest) -> Manifest:
    """argo: the API server sets defaults in volumeClaimTemplates that a client cannot know."""
    mine, theirs = (each.get("spec", {}).get("volumeClaimTemplates") for each in (last, live))
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return live
    return live | {"spec": live["spec"] | {"volumeClaimTemplates": overlap(mine, theirs)}}


def overlap(known: Any, live: Any) -> Any:
    """Return the fields of `live` that exist in `reference`; others have defaults. Longer lists keep their length."""
    if isinstance(known, dict) and isinstance(live, dict):
        return {name: overlap(part, live[name]) for name, part in known.items() if name in live}
    if isinstance(known, list) and isinstance(live, list):
        return [overlap(known[place], part) if place < len(known) else part for place, part in enumerate(live)]
    return live


def _whole(value: Any) -> Any:
    """Convert whole floats to integers: Lua has one number type."""
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def unlike(desired: Any, live: Any, path: str = "") -> Differences:
    """Return where two values differ: maps field by field, lists as a whole."""
    if isinstance(desired, dict) and isinstance(live, dict):
        found: Differences = {}
        for name in {**desired, **live}:
            if len(found) >= MOST_TOLD:
                break
            place = f"{path}.{name}" if path else name
            found |= unlike(desired.get(name, MISSING), live.get(name, MISSING), place)
        return found
    return {} if _is_same(desired, live) else {path: (desired, live)}


def _is_same(one: Any, other: Any) -> bool:
    """True if the values are equal; unlike ==, true differs from 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_is_same(mine, part) for mine, part in zip(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(part, other[name]) for name, part in one.items())
    return bool(one == other)
