"""Merge of requested health checks into the health checks of an Argo CD.

In: kinds, a profile, and the existing entries. Out: requested checks, and the merged entries. Never: calls a cluster;
loses an entry that others wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.bundled_rules import (
    DEFAULT_INSTALL_PROFILE,
    HealthRule,
    list_profiles,
    list_profiles_of_kind,
    load_bundled_rules,
    load_profile_rules,
)
from argosy.gitops.health.setting_kind_names import render_key_kind, render_kind
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

KSERVE_GROUP: Final = "serving.kserve.io"
DEFAULT_KINDS: Final = (INFERENCE_SERVICE, GroupKind(KSERVE_GROUP, "ServingRuntime"))
HEALTH_KEY_PREFIX: Final = "resource.customizations.health."

HealthCheckEntry = Mapping[str, Any]  # of spec.resourceHealthChecks: group, kind, check


@dataclass(frozen=True)
class RequestedHealthCheck:
    """The health check script to install for one kind."""

    group_kind: GroupKind
    script: str = field(repr=False)
    profile: str = ""  # empty: the kind has one rule only

    @property
    def key(self) -> str:
        """Key of the check in argocd-cm."""
        return HEALTH_KEY_PREFIX + render_key_kind(*self.group_kind)

    @property
    def entry(self) -> dict[str, str]:
        """Entry of the check in an ArgoCD resource."""
        return {"group": self.group_kind.group, "kind": self.group_kind.kind, "check": self.script}

    @property
    def name(self) -> str:
        return f"{render_kind(*self.group_kind)}{f' (profile {self.profile})' if self.profile else ''}"


@dataclass(frozen=True)
class HealthCheckChange:
    """The effect of a requested check on the existing entry of its kind."""

    check: RequestedHealthCheck
    existing_script: str | None = field(repr=False)  # the existing script

    @property
    def is_needed(self) -> bool:
        return self.existing_script != self.check.script

    @property
    def description(self) -> str:
        if self.existing_script is None:
            return f"{self.check.name}: new"
        if not self.is_needed:
            return f"{self.check.name}: already up to date"
        profile = find_profile_of_script(self.check.group_kind, self.existing_script)
        return f"{self.check.name}: replaces {f'profile {profile}' if profile else 'another script'}"


def build_requested_checks(
    kinds: Iterable[GroupKind], profile: str = DEFAULT_INSTALL_PROFILE
) -> tuple[RequestedHealthCheck, ...]:
    """Build one check per kind. A kind without this profile uses its only bundled rule."""
    if profile not in list_profiles():
        raise UserError(f"unknown profile {profile}; choose one of {', '.join(list_profiles())}", where="--profile")
    rules = {group_kind: _find_rule(group_kind, profile) for group_kind in kinds}
    return tuple(RequestedHealthCheck(group_kind, rule.script, rule.profile) for group_kind, rule in rules.items())


def _find_rule(group_kind: GroupKind, profile: str) -> HealthRule:
    if rule := load_profile_rules(profile).get(group_kind) or load_bundled_rules().get(group_kind):
        return rule
    match list_profiles_of_kind(group_kind):
        case (only_profile,):
            return load_profile_rules(only_profile)[group_kind]
        case ():
            problem = "Argo CD has a built-in health check for this kind, so argosy has no script for it"
            raise UserError(f"{problem}; leave it out", where=f"--kinds {group_kind}")
        case kind_profiles:
            raise UserError(
                f"has no profile {profile}; choose one of {', '.join(kind_profiles)}", where=f"--kinds {group_kind}"
            )


def find_profile_of_script(group_kind: GroupKind, script: str) -> str:
    """Return the profile that a script is from, or "" if it is not a bundled script."""
    matching_profiles = (
        name
        for name in list_profiles_of_kind(group_kind)
        if load_profile_rules(name)[group_kind].script.strip() == script.strip()
    )
    return next(matching_profiles, "")


def read_entry_kind(entry: Any) -> GroupKind | None:
    """Return the kind of a health check entry, or None if the entry is malformed."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("kind"), str):
        return None
    return GroupKind(str(entry.get("group") or ""), entry["kind"])


def read_scripts_from_entries(entries: Sequence[Any]) -> dict[GroupKind, str]:
    # argo: if one kind has two entries, the last one wins
    return {group_kind: str(entry.get("check") or "") for entry in entries if (group_kind := read_entry_kind(entry))}


def read_scripts_from_data(data: Mapping[str, str]) -> dict[GroupKind, str]:
    """Read the checks in argocd-cm that use one key per kind."""
    scripts = {}
    for key, script in data.items():
        if key.startswith(HEALTH_KEY_PREFIX):
            group, _, kind = key.removeprefix(HEALTH_KEY_PREFIX).rpartition("_")
            scripts[GroupKind(group, kind)] = script
    return scripts


def list_changes(
    existing_scripts: Mapping[GroupKind, str], requested_checks: Iterable[RequestedHealthCheck]
) -> tuple[HealthCheckChange, ...]:
    return tuple(HealthCheckChange(check, existing_scripts.get(check.group_kind)) for check in requested_checks)


def list_affected_kinds(
    existing_kinds: Iterable[GroupKind], requested_checks: Iterable[RequestedHealthCheck]
) -> list[GroupKind]:
    """List existing kinds that the request touches; if it touches a KServe kind, every KServe kind counts."""
    requested_kinds = {check.group_kind for check in requested_checks}
    whole_groups = {group_kind.group for group_kind in requested_kinds} & {KSERVE_GROUP}
    return [
        group_kind for group_kind in existing_kinds if group_kind in requested_kinds or group_kind.group in whole_groups
    ]


def merge_entries(entries: Sequence[Any], requested_checks: Iterable[RequestedHealthCheck]) -> list[Any]:
    """Merge checks into the list: foreign entries stay unchanged, ours are replaced in place, new ones are appended."""
    remaining_checks = {check.group_kind: check for check in requested_checks}
    requested_kinds = frozenset(remaining_checks)
    merged_entries: list[Any] = []
    for entry in entries:
        group_kind = read_entry_kind(entry)
        if group_kind not in requested_kinds:
            merged_entries.append(entry)
        elif group_kind in remaining_checks:
            merged_entries.append({**entry, "check": remaining_checks.pop(group_kind).script})
    return [*merged_entries, *(check.entry for check in remaining_checks.values())]


def list_missing_checks(
    data: Mapping[str, str], requested_checks: Iterable[RequestedHealthCheck]
) -> list[RequestedHealthCheck]:
    """List the checks whose exact script is not in argocd-cm."""
    return [check for check in requested_checks if data.get(check.key) != check.script]
