"""Normalizes fields of custom kinds that have the type of a core one.

In: a manifest, and its fields with known types. Out: the manifest with those fields in canonical form. Never: raises
for a value of another type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from argosy.errors import ManifestError
from argosy.gitops.application.sync_policy import seconds_of
from argosy.gitops.diff.diff_options import KnownField
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity
from argosy.kube.schema.builtin_types import named
from argosy.kube.schema.typed_json import decode_part
from argosy.languages import globs

Rewrite = Callable[[Any], Any]
_CORE: Final = "io.k8s.api.core.v1."


@lru_cache(maxsize=512)
def type_named(name: str) -> Rewrite | None:
    """Return the normalizer of `core/v1/PodSpec`, `core/Quantity` or `meta/v1/Duration`; None for an unknown type."""
    if name == "core/Quantity":
        return _quantity
    if name == "meta/v1/Duration":
        return _duration
    package, _, local = name.rpartition("/")
    if package != "core/v1":
        return None
    try:
        type_ = named(_CORE + local)
    except KeyError:
        return None
    return lambda value: decode_part(type_, value)[0]


def _quantity(value: Any) -> Any:
    return quantity.canonical(value) if isinstance(value, str | int | float) else value


def _duration(value: Any) -> Any:
    """Format as Go does: `90s` is `1m30s`."""
    try:
        left = round(seconds_of(value) * 1000) if isinstance(value, str) and not value.isdecimal() else -1
    except ValueError:
        return value
    if left < 1000 or left % 1000:
        return value  # fractions of a second have other units, and are not used here
    minutes, seconds = divmod(left // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    lead = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{lead}{seconds}s"


def fields_of(known: Iterable[KnownField], key: ResourceKey) -> list[KnownField]:
    return [each for each in known if globs.matches(each.kind, key.kind) and globs.matches(each.group, key.group)]


def in_known_types(manifest: Manifest, known: Iterable[KnownField]) -> Manifest:
    for each in known:
        rewrite = type_named(each.type)
        if rewrite is not None:
            try:
                manifest = _rewritten(manifest, each.path, rewrite)
            except ManifestError:
                continue
    return manifest


def _rewritten(value: Any, path: Sequence[str], rewrite: Rewrite) -> Any:
    """Follow map keys by name, and all elements of lists."""
    if isinstance(value, list):
        return [_rewritten(item, path, rewrite) for item in value]
    if not path:
        return rewrite(value) if value is not None else value
    if not isinstance(value, dict):
        return value
    if path[0] == "*":  # argo: every value of a map
        return {name: _rewritten(item, path[1:], rewrite) for name, item in value.items()}
    if path[0] not in value:
        return value
    return {**value, path[0]: _rewritten(value[path[0]], path[1:], rewrite)}
