"""Sets missing fields in copies of structs.

In: a part of a manifest. Out: a copy with defaults. Never: changes a field that is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.kube.schema.quantity import canonicalize

ManifestPart = dict[str, Any]
DefaultValues = Iterable[tuple[str, Any]]


def copy_struct(parent: ManifestPart, name: str) -> ManifestPart:
    """Return a copy of a struct, empty if it is missing or null."""
    struct = parent.get(name)
    return dict(struct) if isinstance(struct, dict) else {}


def set_defaults(target: ManifestPart, default_values: DefaultValues) -> ManifestPart:
    """Set fields that are absent, null or the empty string, in place: the target must be a copy."""
    for name, value in default_values:
        if target.get(name) in (None, ""):
            target[name] = value
    return target


def copy_with_defaults(source: ManifestPart, *default_values: tuple[str, Any]) -> ManifestPart:
    return set_defaults(dict(source), default_values)


def update_items(target: ManifestPart, name: str, change: Callable[[ManifestPart], ManifestPart]) -> None:
    """Replace every struct of a list by the result of `change`."""
    list_items = target.get(name)
    if isinstance(list_items, list) and list_items:
        target[name] = [change(item) if isinstance(item, dict) else item for item in list_items]


def update_struct(target: ManifestPart, name: str, change: Callable[[ManifestPart], ManifestPart]) -> None:
    """Replace a struct by the result of `change`, if it exists."""
    struct = target.get(name)
    if isinstance(struct, dict):
        target[name] = change(struct)


def canonicalize_quantities(amounts: ManifestPart) -> ManifestPart:
    return {name: canonicalize(amount) if amount is not None else "0" for name, amount in amounts.items()}


def canonicalize_resources(source: ManifestPart) -> ManifestPart:
    """Canonicalize the limits and requests of a container or claim."""
    defaulted = dict(source)
    for name in ("limits", "requests"):
        update_struct(defaulted, name, canonicalize_quantities)
    return defaulted
