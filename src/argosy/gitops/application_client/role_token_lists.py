"""Keeps the records of role tokens in the spec and in the status of an AppProject alike.

In: an AppProject. Out: the same with equal lists. Never: keeps the records of a role that the project does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.application_client.project_spec_edits import list_entries
from argosy.kube.objects import Manifest

SPEC_FIELD: Final = "jwtTokens"
STATUS_FIELD: Final = "jwtTokensByRole"


def combine_role_tokens(project: Manifest) -> dict[str, Any]:
    """argo: a spec that is applied from Git without tokens loses none, because the status has them, too."""
    spec, status = dict(project.get("spec") or {}), dict(project.get("status") or {})
    in_status = status.pop(STATUS_FIELD, None) or {}
    roles, tokens_by_role = [], {}
    for role in list_entries(spec, "roles"):
        entry = dict(role) if isinstance(role, Mapping) else {}
        name = str(entry.get("name") or "")
        items = (in_status.get(name) or {}).get("items")
        if tokens := _combine_lists(items, entry.pop(SPEC_FIELD, None)):
            entry[SPEC_FIELD] = tokens
            tokens_by_role[name] = {"items": tokens}
        roles.append(entry)
    if roles:
        spec["roles"] = roles
    if tokens_by_role:
        status[STATUS_FIELD] = tokens_by_role
    combined = {**project, "spec": spec, "status": status}
    return combined if status else {name: value for name, value in combined.items() if name != "status"}


def _combine_lists(*lists: Any) -> list[dict[str, Any]]:
    """argo: one record for each id, the newest first; a record without an id has its time as the id."""
    records: dict[str, dict[str, Any]] = {}
    for items in lists:
        for item in items or ():
            if isinstance(item, Mapping):
                token_id = str(item.get("id") or item.get("iat") or "")
                records[token_id] = {**item, "id": token_id}
    return sorted(records.values(), key=_read_time, reverse=True)


def _read_time(record: Mapping[str, Any]) -> int:
    issued = record.get("iat")
    return issued if isinstance(issued, int) else 0
