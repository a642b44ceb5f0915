"""Compares the result of an action with the expected manifest, as Argo CD does: by a diff that would apply it.

In: the expected manifest as desired, the result as live. Out: the differing fields. Never: reports a field that only
the result has; mutates its input.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.errors import ManifestError, PatchError
from argosy.gitops.health.test_suite.action_result_normalization import normalize_manifest, zero_times_where_expected
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch, strategic_merge, three_way
from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.kube.schema import builtin_type_json_codec, defaults
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type

MISSING_VALUE: Final = "(missing)"
MAX_DIFFERENCES: Final = 20

Differences = dict[str, tuple[Any, Any]]


def find_differences(desired: Manifest, live: Manifest) -> Differences:
    """Return (expected, actual) by field path; empty if the result is as expected."""
    schema_type = _find_type(desired)
    desired = normalize_manifest(_convert_to_go_type(desired, schema_type))
    live = zero_times_where_expected(desired, normalize_manifest(_convert_to_go_type(live, schema_type)))
    last_applied = _read_last_applied(live)
    if last_applied is not None:
        try:
            return _compare_three_way(normalize_manifest(last_applied), desired, live, schema_type)
        except PatchError:
            pass  # argo: then the expected manifest counts as last applied
    return _compare_three_way(desired, desired, live, schema_type)


def _compare_three_way(
    last_applied: Manifest, desired: Manifest, live: Manifest, schema_type: Type | None
) -> Differences:
    last_applied, desired = _without_namespace(last_applied), _without_namespace(desired)
    if schema_type is None or not (_matches_type(desired, schema_type) and _matches_type(live, schema_type)):
        patch = three_way.build_three_way_merge_patch(last_applied, desired, keep_common_fields(last_applied, live))
        return diff_values(merge_patch.apply(live, patch), live)
    current = live
    if schema_type.name.endswith(".StatefulSet"):
        current = _trim_claim_defaults(last_applied, live)
    patch = three_way.build_three_way_strategic_patch(last_applied, desired, current, schema_type)
    return diff_values(
        _apply_defaults(strategic_merge.apply(live, patch, schema_type), schema_type),
        _apply_defaults(live, schema_type),
    )


def _find_type(manifest: Manifest) -> Type | None:
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    return find_builtin_type(*split_api_version(version), kind)


def _convert_to_go_type(manifest: Manifest, schema_type: Type | None) -> Manifest:
    """argo: a built-in kind is converted to its Go type, which drops empty values, unless it has an unknown field."""
    manifest = _convert_whole_floats(manifest)
    if schema_type is None:
        return manifest
    try:
        decoded = builtin_type_json_codec.decode(
            schema_type, manifest, kind=manifest["kind"], api_version=manifest["apiVersion"]
        )
    except (ManifestError, KeyError):
        return manifest
    return manifest if decoded.unknown_fields else keep_common_fields(manifest, decoded.manifest)


def _matches_type(manifest: Manifest, schema_type: Type) -> bool:
    try:
        builtin_type_json_codec.decode(schema_type, manifest, kind=manifest["kind"], api_version=manifest["apiVersion"])
    except (ManifestError, KeyError):
        return False
    return True


def _apply_defaults(manifest: Manifest, schema_type: Type) -> Manifest:
    """Apply the defaults of the kind, as the API server does."""
    group, version = split_api_version(manifest["apiVersion"])
    try:
        return defaults.apply_defaults(GroupKind(group, manifest["kind"]), version, manifest)
    except ManifestError:
        return manifest


def _read_last_applied(live: Manifest) -> Manifest | None:
    metadata = live.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(LAST_APPLIED) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return None
    try:
        last_applied = orjson.loads(text)
    except ValueError:
        return None
    return last_applied if isinstance(last_applied, dict) and isinstance(last_applied.get("kind"), str) else None


def _without_namespace(manifest: Manifest) -> Manifest:
    """argo: ignores the namespace and empty annotations, which applied manifests often lack."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    kept_metadata = {
        name: part
        for name, part in metadata.items()
        if name != "namespace" and not (name == "annotations" and part in (None, {}))
    }
    return manifest | {"metadata": kept_metadata}


def _trim_claim_defaults(last_applied: Manifest, live: Manifest) -> Manifest:
    """argo: the API server sets defaults in volumeClaimTemplates that a client cannot know."""
    applied_templates, live_templates = (
        item.get("spec", {}).get("volumeClaimTemplates") for item in (last_applied, live)
    )
    if not isinstance(applied_templates, list) or not isinstance(live_templates, list):
        return live
    return live | {
        "spec": live["spec"] | {"volumeClaimTemplates": keep_common_fields(applied_templates, live_templates)}
    }


def keep_common_fields(reference: Any, live: Any) -> Any:
    """Return the fields of `live` that exist in `reference`; others have defaults. Longer lists keep their length."""
    if isinstance(reference, dict) and isinstance(live, dict):
        return {name: keep_common_fields(part, live[name]) for name, part in reference.items() if name in live}
    if isinstance(reference, list) and isinstance(live, list):
        return [
            keep_common_fields(reference[position], part) if position < len(reference) else part
            for position, part in enumerate(live)
        ]
    return live


def _convert_whole_floats(value: Any) -> Any:
    """Convert whole floats to integers: Lua has one number type."""
    if isinstance(value, dict):
        return {name: _convert_whole_floats(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_convert_whole_floats(part) for part in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def diff_values(desired: Any, live: Any, path: str = "") -> Differences:
    """Return where two values differ: maps field by field, lists as a whole."""
    if isinstance(desired, dict) and isinstance(live, dict):
        result: Differences = {}
        for name in {**desired, **live}:
            if len(result) >= MAX_DIFFERENCES:
                break
            field_path = f"{path}.{name}" if path else name
            result |= diff_values(desired.get(name, MISSING_VALUE), live.get(name, MISSING_VALUE), field_path)
        return result
    return {} if _is_same(desired, live) else {path: (desired, live)}


def _is_same(left: Any, right: Any) -> bool:
    """True if the values are equal; unlike ==, true differs from 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_is_same(left_part, part) for left_part, part in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same(part, right[name]) for name, part in left.items())
    return bool(left == right)
