"""Edits the spec of an AppProject entry by entry, as `argocd proj` does.

In: a spec, parsed flags. Out: the new spec. Never: writes it; adds an entry twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from argosy.errors import UserError

Spec = dict[str, Any]
# flag → list in a spec, and the format of its entries
LISTS: Final = {
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


class Place(NamedTuple):
    """The list that an allow- or deny- command changes."""

    field: str
    said: str  # allowed or denied
    adds: bool


def typed_spec(given: Mapping[str, Any]) -> Spec:
    """Build the fields of the given flags; a list given by flags replaces the old one."""
    spec: Spec = {}
    if given.get("description") is not None:
        spec["description"] = given["description"]
    for flag, (field, form) in LISTS.items():
        if given.get(flag):
            spec[field] = [_entry(form, text, flag) for text in given[flag]]
    if given.get("orphaned_resources") or given.get("orphaned_resources_warn") is not None:
        warn = given.get("orphaned_resources_warn")
        spec["orphanedResources"] = {"warn": bool(warn)} if warn is not None else {}
    return spec


def _entry(form: str, text: str, flag: str) -> Any:
    named = f"--{flag.replace('_', '-')}"
    match form:
        case "destination":
            server, comma, namespace = text.rpartition(",")
            if not comma:
                raise UserError(f"{text!r} is not SERVER,NAMESPACE; separate them with a comma", where=named)
            return destination(server, namespace, is_name="://" not in server and server not in ("*", ""))
        case "kind":
            group, _, rest = text.rpartition("/") if text.count("/") < 2 else text.partition("/")
            kind, _, name = rest.partition("/")
            return {"group": group, "kind": kind, **({"name": name} if name else {})}
        case "key":
            return {"keyID": text}
        case "account":
            parts = text.split(",")
            if len(parts) != 3:
                raise UserError(f"{text!r} is not SERVER,NAMESPACE,ACCOUNT; give all three", where=named)
            return {"server": parts[0], "namespace": parts[1], "defaultServiceAccount": parts[2]}
    return text


def destination(place: str, namespace: str, *, is_name: bool) -> dict[str, str]:
    return {"name" if is_name else "server": place, "namespace": namespace}


def added(spec: Spec, field: str, entry: Any, what: str) -> Spec:
    """argo: adding an existing entry is an error."""
    found = entries(spec, field)
    if any(_fits(each, entry) for each in found):
        raise UserError(f"specified {what} is already defined in project; see: argosy proj get")
    return {**spec, field: [*found, entry]}


def removed(spec: Spec, field: str, entry: Any, what: str) -> Spec:
    found = entries(spec, field)
    kept = [each for each in found if not _fits(each, entry)]
    if len(kept) == len(found):
        raise UserError(f"specified {what} does not exist in project; see: argosy proj get")
    return {**spec, field: kept}


def _fits(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return bool(one == other)
    return all(one.get(name) == value for name, value in other.items())


def entries(spec: Mapping[str, Any], field: str) -> list[Any]:
    found = spec.get(field)
    return list(found) if isinstance(found, list) else []


def place_of(*, allows: bool, is_cluster: bool, which: str) -> Place:
    """argo: by default namespaced kinds use the deny list and cluster kinds the allow list; -l overrides it."""
    is_white = which in ("allow", "white")
    field = ("cluster" if is_cluster else "namespace") + "Resource" + ("Whitelist" if is_white else "Blacklist")
    return Place(field, "allowed" if is_white else "denied", allows if is_white else not allows)


def with_orphan_rule(spec: Spec, rule: Mapping[str, str], *, adds: bool) -> Spec:
    orphans = dict(spec.get("orphanedResources") or {})
    what = "resource in the orphaned ignore list"
    change = added if adds else removed
    return {**spec, "orphanedResources": change(orphans, "ignore", dict(rule), what)}


# -- sync windows --------------------------------------------------------------------------------------------------


def with_window(spec: Spec, window: Mapping[str, Any]) -> Spec:
    return {**spec, "syncWindows": [*entries(spec, "syncWindows"), dict(window)]}


def with_windows_changed(spec: Spec, number: int, change: Mapping[str, Any] | None) -> Spec:
    """Change the fields of one window; None removes it."""
    windows = entries(spec, "syncWindows")
    if not 0 <= number < len(windows):
        raise UserError(f"sync window {number} not found; list them: argosy proj windows list", where="ID")
    changed = [] if change is None else [{**windows[number], **change}]
    return {**spec, "syncWindows": [*windows[:number], *changed, *windows[number + 1 :]]}


def window_fields(given: Mapping[str, Any], names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Map flags to fields for the flags that were given; list flags are comma-separated."""
    found = {}
    for flag, field in names:
        value = given.get(flag)
        if value not in (None, "", False):
            found[field] = value.split(",") if field in ("applications", "namespaces", "clusters") else value
    return found
