"""Converts manifests of built-in kinds as Go types would, and finds the shapes of all kinds.

In: a manifest. Out: the manifest decoded and encoded by its type. Never: raises for values that the type rejects.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.gitops.diff.field_projection import keep_pattern_keys
from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_schema_protocol import ListType, Shape, ShapeKind
from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.kube.schema import builtin_type_json_codec, defaults
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type
from argosy.kube.schema.crd.compiled_schema import SchemaNode
from argosy.kube.schema.crd.pruning_and_defaults import apply_defaults

FindShape = Callable[[str, str], Shape | None]
"""Returns the shape of a custom kind by apiVersion and kind, or None."""


class FreeShape:
    """The shape of untyped JSON: maps are granular, lists are atomic."""

    kind: ShapeKind = "untyped"
    atomic: bool = False
    list_type: ListType = "atomic"
    map_keys: Sequence[str] = ()
    merge_key: str = ""
    strategies: Sequence[str] = ()

    def field(self, name: str) -> Shape | None:
        return None

    def items(self) -> Shape:
        return self

    def key_default(self, name: str) -> object:
        return None


_LOCATION_PART: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
FREE_SHAPE: Final[Shape] = FreeShape()


def find_no_shape(api_version: str, kind: str) -> Shape | None:
    return None


def find_manifest_type(manifest: Manifest) -> Type | None:
    """Return the type of a built-in kind, or None."""
    group, version = split_api_version(str(manifest.get("apiVersion") or ""))
    return find_builtin_type(group, version, str(manifest.get("kind") or ""))


def find_manifest_shape(manifest: Manifest, find_custom_shape: FindShape = find_no_shape) -> Shape:
    """Return the built-in type, the shape of a custom kind, or that of untyped JSON."""
    builtin_type: Shape | None = find_manifest_type(manifest)
    return (
        builtin_type
        or find_custom_shape(str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or ""))
        or FREE_SHAPE
    )


def roundtrip_by_type(manifest: Manifest) -> Manifest:
    """Decode and encode by type: without zero values that Go omits, with canonical quantities and times.

    argo: a manifest with an unknown field or an invalid value stays as it is.
    """
    type_ = find_manifest_type(manifest)
    if type_ is None:
        return manifest
    try:
        decoded, unknown = builtin_type_json_codec.decode(
            type_, manifest, kind=manifest["kind"], api_version=manifest["apiVersion"]
        )
    except ManifestError:
        return manifest
    if unknown or decoded is manifest:
        return manifest
    return keep_pattern_keys(manifest, decoded)


def as_stored(manifest: Manifest, shape: Shape) -> Manifest:
    """Return the manifest as a server stores it, with defaults.

    argo: unknown fields stay, so a field that the server drops counts as drift. Raises ManifestError for values that
    the type rejects.
    """
    if isinstance(shape, Type):
        kind, api_version = manifest["kind"], manifest["apiVersion"]
        group, version = split_api_version(api_version)
        decoded, unknown = builtin_type_json_codec.decode(shape, manifest, kind=kind, api_version=api_version)
        stored = defaults.apply_defaults(GroupKind(group, kind), version, decoded)
        return _restore_fields(stored, manifest, unknown) if unknown else stored
    manifest = _remove_empty_metadata(manifest)
    return apply_defaults(manifest, shape) if isinstance(shape, SchemaNode) and shape.has_defaults else manifest


def _restore_fields(stored: Manifest, manifest: Manifest, locations: Sequence[str]) -> Manifest:
    """Copy the fields at locations such as `spec.containers[0].imag` from the manifest."""
    restored = copy.deepcopy(stored)
    for location in locations:
        *parents, name = [int(number) if number else key for number, key in _LOCATION_PART.findall(location)]
        source: Any = manifest
        target: Any = restored
        try:
            for part in parents:
                source, target = source[part], target[part]
            target[name] = source[name]
        except (LookupError, TypeError):
            continue  # a key of a map contains a dot, or the decoder dropped the parent
    return restored


def _remove_empty_metadata(manifest: Manifest) -> Manifest:
    """k8s: metadata of every kind is decoded by its type, which omits empty values."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or all(map(_is_set, metadata.values())):
        return manifest
    return {**manifest, "metadata": {name: value for name, value in metadata.items() if _is_set(value)}}


def _is_set(value: object) -> bool:
    return bool(value) or isinstance(value, bool | int)
