"""Moves fields of client-side apply to our server-side field manager. Pure.

In: a live manifest and the old field manager. Out: a JSON patch of its managedFields; empty if nothing is to do.
Without it such fields could not be removed any more: their old manager would keep them.
"""

from __future__ import annotations

from typing import Any

from argosy.annotations import LAST_APPLIED
from argosy.kube.objects import Manifest


def migration(live: Manifest, manager: str, heir: str) -> list[dict[str, Any]]:
    """k8s: fields of `manager`, and of any other writer of last-applied, go to `new_manager`."""
    metadata = live["metadata"]
    entries: list[dict[str, Any]] = metadata.get("managedFields") or []
    old = [entry for entry in entries if manager and _is_client_side(entry, manager)]
    if not old:
        return []
    kept = [entry for entry in entries if not any(entry is each for each in old)]
    own = next((entry for entry in kept if _is_own(entry, heir, old[0].get("apiVersion"))), None)
    fields: dict[str, Any] = {}
    for entry in [*old, *([own] if own else [])]:
        fields = _union(fields, entry.get("fieldsV1") or {})
    heired = {**(own or old[0]), "manager": heir, "operation": "Apply", "fieldsV1": fields}
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [heired, *(e for e in kept if e is not own)]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")},
    ]


def _is_client_side(entry: dict[str, Any], manager: str) -> bool:
    if entry.get("operation") != "Update" or entry.get("subresource"):
        return False
    return entry.get("manager") == manager or _owns_last_applied(entry)


def _owns_last_applied(entry: dict[str, Any]) -> bool:
    fields: Any = entry.get("fieldsV1")
    for name in ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}"):
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields is not None


def _is_own(entry: dict[str, Any], heir: str, api_version: Any) -> bool:
    same = entry.get("manager") == heir and entry.get("operation") == "Apply" and not entry.get("subresource")
    return same and entry.get("apiVersion") == api_version


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    both = {name: _union(left[name], right[name]) for name in left.keys() & right.keys()}
    return {**left, **right, **both}
