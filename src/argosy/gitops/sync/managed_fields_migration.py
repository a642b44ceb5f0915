"""Moves fields of client-side apply to our server-side field manager. Pure.

In: a live manifest and the old field manager. Out: a JSON patch of its managedFields; empty if nothing is to do.
Without it such fields could not be removed any more: their old manager would keep them.
"""

from __future__ import annotations

from typing import Any

from argosy.annotations import LAST_APPLIED
from argosy.kube.objects import Manifest


def build_migration_patch(live: Manifest, manager: str, new_manager: str) -> list[dict[str, Any]]:
    """k8s: fields of `manager`, and of each writer of last-applied, go to `new_manager`.

    `manager` is empty if ClientSideApplyMigration=false. argo: kubectl takes over writers of last-applied even then.
    """
    metadata = live["metadata"]
    entries: list[dict[str, Any]] = metadata.get("managedFields") or []
    old_entries = [entry for entry in entries if _is_client_side(entry, manager)]
    if not old_entries:
        return []
    other_entries = [entry for entry in entries if not any(entry is old_entry for old_entry in old_entries)]
    new_manager_entry = next(
        (entry for entry in other_entries if _is_applied_by(entry, new_manager, old_entries[0].get("apiVersion"))), None
    )
    fields: dict[str, Any] = {}
    for entry in [*old_entries, *([new_manager_entry] if new_manager_entry else [])]:
        fields = _merge_fields(fields, entry.get("fieldsV1") or {})
    merged_entry = {
        **(new_manager_entry or old_entries[0]),
        "manager": new_manager,
        "operation": "Apply",
        "fieldsV1": fields,
    }
    return [
        {
            "op": "replace",
            "path": "/metadata/managedFields",
            "value": [merged_entry, *(e for e in other_entries if e is not new_manager_entry)],
        },
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")},
    ]


def _is_client_side(entry: dict[str, Any], manager: str) -> bool:
    if entry.get("operation") != "Update" or entry.get("subresource"):
        return False
    return bool(manager and entry.get("manager") == manager) or _owns_last_applied(entry)


def _owns_last_applied(entry: dict[str, Any]) -> bool:
    fields: Any = entry.get("fieldsV1")
    for name in ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}"):
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields is not None


def _is_applied_by(entry: dict[str, Any], manager: str, api_version: Any) -> bool:
    same = entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
    return same and entry.get("apiVersion") == api_version


def _merge_fields(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    merged_children = {name: _merge_fields(left[name], right[name]) for name in left.keys() & right.keys()}
    return {**left, **right, **merged_children}
