"""Filters that merge health checks into what an Argo CD has.

In: an ArgoCD resource or argocd-cm as read, and a list of {group, kind, check}. Out: the patch that is missing, and
words about it. Never: loses the check of a kind that is not in the list; asks a cluster.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

PREFIX = "resource.customizations.health."
FIELD = "resourceHealthChecks"


def kind_of(entry: Any) -> tuple[str, str] | None:
    """Group and kind; None for what is no entry."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        return None
    return (entry.get("group") or "", entry["kind"])


def name_of(entry: Any) -> str:
    return "/".join(part for part in kind_of(entry) or () if part)


def key_of(entry: Any) -> str:
    """Its place in argocd-cm."""
    return PREFIX + "_".join(part for part in kind_of(entry) or () if part)


def merged(entries: list[Any], wanted: list[Any]) -> list[Any]:
    """Entries of others stay as and where they are; ours take the place they had, once; new ones stand at the end."""
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
    """{type, content} for `kubectl patch`; empty if nothing is missing."""
    if live["kind"] == "ConfigMap":
        data = {key_of(entry): entry["check"] for entry in _missing(live, wanted)}
        return {"type": "merge", "content": {"data": data}} if data else {}
    spec = live.get("spec")
    entries = (spec or {}).get(FIELD)
    result = merged(entries or [], wanted)
    if result == (entries or []):
        return {}
    # A patch replaces the list. The test refuses it if somebody changed the list after it was read; to compare versions
    # would refuse it after every change of the status as well.
    if entries is not None:
        return _guarded(f"/spec/{FIELD}", entries, f"/spec/{FIELD}", result)
    if spec is not None:
        return _guarded("/spec", spec, f"/spec/{FIELD}", result)
    version = live["metadata"]["resourceVersion"]
    return _guarded("/metadata/resourceVersion", version, "/spec", {FIELD: result})


def _guarded(tested: str, found: Any, path: str, value: Any) -> dict[str, Any]:
    content = [{"op": "test", "path": tested, "value": found}, {"op": "add", "path": path, "value": value}]
    return {"type": "json", "content": content}


def changes(live: Any, wanted: list[Any]) -> list[str]:
    """A sentence for each check that is new or replaces another one."""
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
    # argo: of two checks for one kind the last one would win, silently
    counted = Counter(name_of(entry) for entry in wanted)
    return [f"{name} has {count} health checks, and Argo CD takes one" for name, count in counted.items() if count > 1]


def missing(text: str, wanted: list[Any]) -> list[str]:
    """The keys that argocd-cm, as JSON, does not hold whole and as they should be."""
    return [key_of(entry) for entry in _missing(json.loads(text or "{}"), wanted)]


def _missing(settings: Any, wanted: list[Any]) -> list[Any]:
    data = settings.get("data") or {}
    return [entry for entry in wanted if data.get(key_of(entry)) != entry["check"]]


def is_owned(text: str) -> bool:
    """Whether an operator writes this argocd-cm, given as JSON."""
    owners = json.loads(text or "{}").get("metadata", {}).get("ownerReferences") or []
    return any(owner.get("kind") == "ArgoCD" for owner in owners)


class FilterModule:
    """The names under which Ansible finds them."""

    def filters(self) -> dict[str, Any]:
        return {
            "argocd_health_patch": patch,
            "argocd_health_changes": changes,
            "argocd_health_faults": faults,
            "argocd_health_missing": missing,
            "argocd_cm_is_owned": is_owned,
        }
