"""Normalizes fields of custom kinds that have the type of a core one.

In: a manifest, and its fields with known types. Out: the manifest with those fields in canonical form. Never: raises
for a value of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.gitops.application.sync_policy import parse_duration
from argosy.gitops.diff.diff_options import KnownField
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema import quantity
from argosy.kube.schema.builtin_go_struct_fields import get_named_type
from argosy.kube.schema.builtin_type_json_codec import decode_value
from argosy.languages import globs

NormalizeValue = Callable[[Any], Any]
_CORE_PREFIX: Final = "io.k8s.api.core.v1."


@lru_cache(maxsize=512)
def find_type_normalizer(name: str) -> NormalizeValue | None:
    """Return the normalizer of `core/v1/PodSpec`, `core/Quantity` or `meta/v1/Duration`; None for an unknown type."""
    if name == "core/Quantity":
        return _normalize_quantity
    if name == "meta/v1/Duration":
        return _normalize_duration
    package, _, local = name.rpartition("/")
    if package != "core/v1":
        return None
    try:
        type_ = get_named_type(_CORE_PREFIX + local)
    except KeyError:
        return None
    return lambda value: decode_value(type_, value)[0]


def _normalize_quantity(value: Any) -> Any:
    return quantity.canonicalize(value) if isinstance(value, str | int | float) else value


def _normalize_duration(value: Any) -> Any:
    """Format as Go does: `90s` is `1m30s`."""
    try:
        milliseconds = round(parse_duration(value) * 1000) if isinstance(value, str) and not value.isdecimal() else -1
    except ValueError:
        return value
    if milliseconds < 1000 or milliseconds % 1000:
        return value  # fractions of a second have other units, and are not used here
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    prefix = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{prefix}{seconds}s"


def select_known_fields(fields: Iterable[KnownField], key: ResourceKey) -> list[KnownField]:
    return [
        field
        for field in fields
        if globs.matches_glob(field.kind, key.kind) and globs.matches_glob(field.group, key.group)
    ]


def normalize_known_fields(manifest: Manifest, fields: Iterable[KnownField]) -> Manifest:
    for field in fields:
        normalize = find_type_normalizer(field.type)
        if normalize is not None:
            try:
                manifest = _normalize_at_path(manifest, field.path, normalize)
            except ManifestError:
                continue
    return manifest


def _normalize_at_path(value: Any, path: Sequence[str], normalize: NormalizeValue) -> Any:
    """Follow map keys by name, and all elements of lists."""
    if isinstance(value, list):
        return [_normalize_at_path(item, path, normalize) for item in value]
    if not path:
        return normalize(value) if value is not None else value
    if not isinstance(value, dict):
        return value
    if path[0] == "*":  # argo: every value of a map
        return {name: _normalize_at_path(item, path[1:], normalize) for name, item in value.items()}
    if path[0] not in value:
        return value
    return {**value, path[0]: _normalize_at_path(value[path[0]], path[1:], normalize)}
