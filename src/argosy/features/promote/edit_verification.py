"""Verifies that edited files render to exactly the planned changes.

In: moves, and the target's contents before and after. Out: a description of the first problem. Never: shows a value
that looks like a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.features.promote.classified_manifest_fields import EnvironmentContents, FieldAddress
from argosy.features.promote.promotion_changes import FieldMove, mask_field_value
from argosy.gitops.analysis.object_changes import KUSTOMIZE_HASH_SUFFIX


def find_unexpected_change(moves: Sequence[FieldMove], before: EnvironmentContents, after: EnvironmentContents) -> str:
    """Describe the first missing or unplanned change; empty if all planned changes and no others were made."""
    # An object may have another name in the source.
    address_by_field_id = {id(field): address for address, field in before.fields.items()}
    expected = {
        _address_key(address_by_field_id.get(id(move.target_field), move.address)): move.after for move in moves
    }
    old_values = {_address_key(address): field.value for address, field in before.fields.items()}
    for address, field in after.fields.items():
        old = old_values.pop(_address_key(address), None)
        if field.value == old or field.pointer.startswith("/metadata/name"):
            continue
        if expected.get(_address_key(address)) == field.value:
            expected.pop(_address_key(address))
            continue
        if not _differs_only_by_hash(old, field.value):
            return f"{address.owner} {address.path} would be {mask_field_value(address, field.value)!r}"
    removed = next(iter(old_values), None)
    if removed is not None:
        return f"{removed[0]} {removed[1]} would be gone"
    unchanged = next(iter(expected), None)
    return f"{unchanged[0]} {unchanged[1]} would stay as it is" if unchanged is not None else ""


def _address_key(address: FieldAddress) -> tuple[str, str]:
    return str(address.owner), address.path


def _differs_only_by_hash(old: Any, new: Any) -> bool:
    """True if the two names differ only in their generated hash suffix."""
    return (
        isinstance(old, str)
        and isinstance(new, str)
        and KUSTOMIZE_HASH_SUFFIX.sub("", old) == KUSTOMIZE_HASH_SUFFIX.sub("", new)
    )
