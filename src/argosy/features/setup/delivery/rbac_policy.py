"""RBAC policy lines for Argo CD, merged into the existing policy.

In: the RBAC section of argosy.yaml, and the live settings. Out: a patch, or None. Never: loses or moves a foreign line;
calls a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.gitops.delivery_file.delivery_value_types import DeliveryRbac
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

RBAC_CONFIG_MAP: Final = "argocd-rbac-cm"
ADMIN_ROLE: Final = "role:admin"
# The names of the three texts in an ArgoCD resource, and in argocd-rbac-cm
RESOURCE_FIELDS: Final = ("policy", "defaultPolicy", "scopes")
CONFIG_MAP_KEYS: Final = ("policy.csv", "policy.default", "scopes")


@dataclass(frozen=True)
class PolicyTexts:
    """The three policy settings; None if not set."""

    policy: str | None = None
    default_role: str | None = None
    scopes: str | None = None


def policy_object_key(installation: ArgoCDInstallation) -> ResourceKey:
    """Return the key of the object to write to."""
    return installation.settings_target if installation.has_operator else rbac_config_map_key(installation)


def rbac_config_map_key(installation: ArgoCDInstallation) -> ResourceKey:
    return ResourceKey(*CONFIG_MAP, installation.namespace, RBAC_CONFIG_MAP)


def read_policy_texts(installation: ArgoCDInstallation, live: Manifest | None) -> PolicyTexts:
    if installation.has_operator:
        fields = ((live or {}).get("spec") or {}).get("rbac") or {}
        return PolicyTexts(*(fields.get(name) for name in RESOURCE_FIELDS))
    fields = (live or {}).get("data") or {}
    return PolicyTexts(*(fields.get(name) for name in CONFIG_MAP_KEYS))


def build_policy_patch(
    installation: ArgoCDInstallation, before: PolicyTexts, after: PolicyTexts
) -> dict[str, Any] | None:
    """Build a merge patch with the changed settings; None if nothing changed."""
    names = RESOURCE_FIELDS if installation.has_operator else CONFIG_MAP_KEYS
    pairs = zip(names, _as_tuple(before), _as_tuple(after), strict=True)
    changed = {name: new for name, old, new in pairs if new is not None and new != old}
    if not changed:
        return None
    return {"spec": {"rbac": changed}} if installation.has_operator else {"data": changed}


def merge_policy(before: PolicyTexts, rbac: DeliveryRbac, owner: str) -> PolicyTexts:
    """Put our lines into their own block, at its previous position or at the end."""
    return PolicyTexts(
        _update_block(before.policy, list(build_policy_lines(rbac)), owner),
        rbac.default_role if rbac.default_role is not None else before.default_role,
        rbac.scopes if rbac.scopes is not None else before.scopes,
    )


def remove_policy(before: PolicyTexts, owner: str) -> PolicyTexts:
    """Remove our block; keep default role and scopes, because their previous values are unknown."""
    return PolicyTexts(_update_block(before.policy, [], owner), before.default_role, before.scopes)


def build_policy_lines(rbac: DeliveryRbac) -> Iterator[str]:
    for group in rbac.admins:
        yield f"g, {group}, {ADMIN_ROLE}"
    for role in rbac.roles:
        for action in role.may:
            yield f"p, role:{role.name}, applications, {action}, {role.applications}, allow"
        for group in role.groups:
            yield f"g, {group}, role:{role.name}"


def _update_block(policy: str | None, lines: Sequence[str], owner: str) -> str | None:
    """Update our block; an unset policy stays unset if there are no lines."""
    return replace_block(policy or "", lines, owner) or policy


def replace_block(policy: str, lines: Sequence[str], owner: str) -> str:
    """Replace our block in a policy, without lines that already exist outside of it."""
    # argo: a line that begins with # is a comment
    first, last = f"# argosy-setup {owner}: begin", f"# argosy-setup {owner}: end"
    before, after, has_block = _split_around_block(policy.splitlines(), first, last)
    foreign_lines = {_normalize_line(line) for line in (*before, *after)}
    new_lines = [line for line in lines if _normalize_line(line) not in foreign_lines]
    if not new_lines and not has_block:
        return policy
    block = [first, *new_lines, last] if new_lines else []
    return "".join(f"{line}\n" for line in (*before, *block, *after))


def _split_around_block(lines: list[str], begin_marker: str, end_marker: str) -> tuple[list[str], list[str], bool]:
    """Split the lines before and after our block. If its end marker is lost, keep all lines."""
    if begin_marker not in lines:
        return lines, [], False
    begin = lines.index(begin_marker)
    if end_marker in lines[begin:]:
        return lines[:begin], lines[lines.index(end_marker, begin) + 1 :], True
    return lines[:begin], lines[begin + 1 :], True


def has_policy(data: Mapping[str, str], rbac: DeliveryRbac) -> bool:
    """Return True if the data of argocd-rbac-cm contains all requested RBAC settings."""
    present_lines = {_normalize_line(line) for line in (data.get("policy.csv") or "").splitlines()}
    if any(_normalize_line(line) not in present_lines for line in build_policy_lines(rbac)):
        return False
    required = {"policy.default": rbac.default_role, "scopes": rbac.scopes}
    return all(value is None or data.get(name) == value for name, value in required.items())


def describe_policy_changes(before: PolicyTexts, after: PolicyTexts) -> list[str]:
    """Describe added and removed lines, and changed settings."""
    old, new = (before.policy or "").splitlines(), (after.policy or "").splitlines()
    rules = [f"+ {line}" for line in new if line not in old and not line.startswith("#")]
    rules += [f"- {line}" for line in old if line not in new and not line.startswith("#")]
    for name, old_value, new_value in (
        ("default role", before.default_role, after.default_role),
        ("scopes", before.scopes, after.scopes),
    ):
        if old_value != new_value:
            rules.append(f"{name}: {old_value or 'none'} → {new_value}")
    return rules


def _normalize_line(line: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split(","))


def _as_tuple(texts: PolicyTexts) -> tuple[str | None, str | None, str | None]:
    return texts.policy, texts.default_role, texts.scopes
