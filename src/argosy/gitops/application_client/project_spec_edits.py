"""Edits the spec of an AppProject entry by entry, as `argocd proj` does.

In: a spec, parsed flags. Out: the new spec. Never: writes it; adds an entry twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from argosy.errors import UserError

Spec = dict[str, Any]
# flag → list in a spec, and the format of its entries
LIST_FLAGS: Final = {
    "dest": ("destinations", "destination"),
    "src": ("sourceRepos", "text"),
    "signature_keys": ("signatureKeys", "key"),
    "allow_cluster_resource": ("clusterResourceWhitelist", "kind"),
    "deny_cluster_resource": ("clusterResourceBlacklist", "kind"),
    "allow_namespaced_resource": ("namespaceResourceWhitelist", "kind"),
    "deny_namespaced_resource": ("namespaceResourceBlacklist", "kind"),
    "source_namespaces": ("sourceNamespaces", "text"),
    "dest_service_accounts": ("destinationServiceAccounts", "account"),
}


class ResourceList(NamedTuple):
    """The list that an allow- or deny- command changes."""

    field: str
    effect: str  # allowed or denied
    adds: bool


def spec_from_flags(flags: Mapping[str, Any]) -> Spec:
    """Build the fields of the given flags; a list given by flags replaces the old one."""
    spec: Spec = {}
    if flags.get("description") is not None:
        spec["description"] = flags["description"]
    for flag, (field, entry_format) in LIST_FLAGS.items():
        if flags.get(flag):
            spec[field] = [_read_entry(entry_format, text, flag) for text in flags[flag]]
    if flags.get("orphaned_resources") or flags.get("orphaned_resources_warn") is not None:
        warn = flags.get("orphaned_resources_warn")
        spec["orphanedResources"] = {"warn": bool(warn)} if warn is not None else {}
    return spec


def _read_entry(entry_format: str, text: str, flag: str) -> Any:
    flag_name = f"--{flag.replace('_', '-')}"
    match entry_format:
        case "destination":
            server, comma, namespace = text.rpartition(",")
            if not comma:
                raise UserError(f"{text!r} is not SERVER,NAMESPACE; separate them with a comma", where=flag_name)
            return build_destination(server, namespace, is_name="://" not in server and server not in ("*", ""))
        case "kind":
            group, _, kind_and_name = text.rpartition("/") if text.count("/") < 2 else text.partition("/")
            kind, _, name = kind_and_name.partition("/")
            return {"group": group, "kind": kind, **({"name": name} if name else {})}
        case "key":
            return {"keyID": text}
        case "account":
            parts = text.split(",")
            if len(parts) != 3:
                raise UserError(f"{text!r} is not SERVER,NAMESPACE,ACCOUNT; give all three", where=flag_name)
            return {"server": parts[0], "namespace": parts[1], "defaultServiceAccount": parts[2]}
    return text


def build_destination(cluster: str, namespace: str, *, is_name: bool) -> dict[str, str]:
    return {"name" if is_name else "server": cluster, "namespace": namespace}


def add_entry(spec: Spec, field: str, entry: Any, entry_name: str) -> Spec:
    """argo: adding an existing entry is an error."""
    current = list_entries(spec, field)
    if any(_matches_entry(existing, entry) for existing in current):
        raise UserError(f"specified {entry_name} is already defined in project; see: argosy proj get")
    return {**spec, field: [*current, entry]}


def remove_entry(spec: Spec, field: str, entry: Any, entry_name: str) -> Spec:
    current = list_entries(spec, field)
    remaining = [existing for existing in current if not _matches_entry(existing, entry)]
    if len(remaining) == len(current):
        raise UserError(f"specified {entry_name} does not exist in project; see: argosy proj get")
    return {**spec, field: remaining}


def _matches_entry(existing: Any, requested: Any) -> bool:
    if not isinstance(existing, dict) or not isinstance(requested, dict):
        return bool(existing == requested)
    return all(existing.get(name) == value for name, value in requested.items())


def list_entries(spec: Mapping[str, Any], field: str) -> list[Any]:
    value = spec.get(field)
    return list(value) if isinstance(value, list) else []


def choose_resource_list(*, allows: bool, is_cluster: bool, list_type: str) -> ResourceList:
    """argo: by default namespaced kinds use the deny list and cluster kinds the allow list; -l overrides it."""
    is_allow_list = list_type in ("allow", "white")
    field = ("cluster" if is_cluster else "namespace") + "Resource" + ("Whitelist" if is_allow_list else "Blacklist")
    return ResourceList(field, "allowed" if is_allow_list else "denied", allows if is_allow_list else not allows)


def change_orphan_ignore_list(spec: Spec, rule: Mapping[str, str], *, adds: bool) -> Spec:
    orphans = dict(spec.get("orphanedResources") or {})
    entry_name = "resource in the orphaned ignore list"
    change = add_entry if adds else remove_entry
    return {**spec, "orphanedResources": change(orphans, "ignore", dict(rule), entry_name)}


# -- sync windows --------------------------------------------------------------------------------------------------


def add_sync_window(spec: Spec, window: Mapping[str, Any]) -> Spec:
    return {**spec, "syncWindows": [*list_entries(spec, "syncWindows"), dict(window)]}


def change_sync_window(spec: Spec, index: int, change: Mapping[str, Any] | None) -> Spec:
    """Change the fields of one window; None removes it."""
    windows = list_entries(spec, "syncWindows")
    if not 0 <= index < len(windows):
        raise UserError(f"sync window {index} not found; list them: argosy proj windows list", where="ID")
    replacement = [] if change is None else [{**windows[index], **change}]
    return {**spec, "syncWindows": [*windows[:index], *replacement, *windows[index + 1 :]]}


def sync_window_from_flags(flags: Mapping[str, Any], names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Map flags to fields for the flags that were given; list flags are comma-separated."""
    fields = {}
    for flag, field in names:
        value = flags.get(flag)
        if value not in (None, "", False):
            fields[field] = value.split(",") if field in ("applications", "namespaces", "clusters") else value
    return fields
