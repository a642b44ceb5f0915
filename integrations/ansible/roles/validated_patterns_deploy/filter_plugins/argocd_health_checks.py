"""Filters that merge health checks into the settings of an Argo CD.

In: a live ArgoCD resource or argocd-cm, and a list of {group, kind, check}. Out: the patch to apply, and a description
of its changes. Never: removes the check of a kind that is not in the list; uses a cluster.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

PREFIX = "resource.customizations.health."
FIELD = "resourceHealthChecks"


def kind_of(entry: Any) -> tuple[str, str] | None:
    """Return group and kind; None if this is not a valid entry."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        return None
    return (entry.get("group") or "", entry["kind"])


def name_of(entry: Any) -> str:
    return "/".join(part for part in kind_of(entry) or () if part)


def key_of(entry: Any) -> str:
    """Return the key of the check in argocd-cm."""
    return PREFIX + "_".join(part for part in kind_of(entry) or () if part)


def merged(entries: list[Any], wanted: list[Any]) -> list[Any]:
    """Merge the entries: other kinds are unchanged, ours are replaced in place and once, new ones appended."""
    ours = {kind_of(entry): entry for entry in wanted}
    left = dict(ours)
    result = []
    for entry in entries:
        kind = kind_of(entry)
        if kind not in ours:
            result.append(entry)
        elif kind in left:
            result.append({**entry, "check": left.pop(kind)["check"]})
    return [*result, *({"group": "", **entry} for entry in left.values())]


def patch(live: Any, wanted: list[Any]) -> dict[str, Any]:
    """Build {type, content} for `kubectl patch`; empty if there is nothing to change."""
    if live["kind"] == "ConfigMap":
        data = {key_of(entry): entry["check"] for entry in _missing(live, wanted)}
        return {"type": "merge", "content": {"data": data}} if data else {}
    spec = live.get("spec")
    entries = (spec or {}).get(FIELD)
    result = merged(entries or [], wanted)
    if result == (entries or []):
        return {}
    # The patch replaces the list. The test makes it fail if the list was changed after it was read. A test of the
    # resourceVersion would also fail after every change of the status.
    if entries is not None:
        return _build_guarded_patch(f"/spec/{FIELD}", entries, f"/spec/{FIELD}", result)
    if spec is not None:
        return _build_guarded_patch("/spec", spec, f"/spec/{FIELD}", result)
    version = live["metadata"]["resourceVersion"]
    return _build_guarded_patch("/metadata/resourceVersion", version, "/spec", {FIELD: result})


def _build_guarded_patch(tested_path: str, expected: Any, path: str, value: Any) -> dict[str, Any]:
    content = [{"op": "test", "path": tested_path, "value": expected}, {"op": "add", "path": path, "value": value}]
    return {"type": "json", "content": content}


def changes(live: Any, wanted: list[Any]) -> list[str]:
    """Describe each check that is new or replaces another one."""
    if live["kind"] == "ConfigMap":
        there = live.get("data") or {}
    else:
        entries = (live.get("spec") or {}).get(FIELD) or []
        there = {key_of(entry): entry.get("check") for entry in entries if kind_of(entry)}
    sentences = []
    for entry in wanted:
        key = key_of(entry)
        if key not in there:
            sentences.append(f"{name_of(entry)}: new")
        elif there[key] != entry["check"]:
            sentences.append(f"{name_of(entry)}: replaces another script")
    return sentences


def faults(wanted: list[Any]) -> list[str]:
    # argo: if a kind has two checks, the last one wins silently
    counted = Counter(name_of(entry) for entry in wanted)
    return [f"{name} has {count} health checks, but Argo CD uses one" for name, count in counted.items() if count > 1]


def missing(text: str, wanted: list[Any]) -> list[str]:
    """List the keys that argocd-cm, given as JSON, does not have with the expected script."""
    return [key_of(entry) for entry in _missing(json.loads(text or "{}"), wanted)]


def _missing(settings: Any, wanted: list[Any]) -> list[Any]:
    data = settings.get("data") or {}
    return [entry for entry in wanted if data.get(key_of(entry)) != entry["check"]]


def is_owned(text: str) -> bool:
    """Return True if an ArgoCD resource owns this argocd-cm, given as JSON."""
    owners = json.loads(text or "{}").get("metadata", {}).get("ownerReferences") or []
    return any(owner.get("kind") == "ArgoCD" for owner in owners)


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        return {
            "argocd_health_patch": patch,
            "argocd_health_changes": changes,
            "argocd_health_faults": faults,
            "argocd_health_missing": missing,
            "argocd_cm_is_owned": is_owned,
        }
