"""Reads argocd-rbac-cm.

In: its data. Out: grants, role members, and faults as sentences. Never: raises; decides a request: the web server does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.errors import UserError
from argosy.kube.objects import read_yaml

RBAC_CM: Final = "argocd-rbac-cm"
_OVERLAY_AFFIXES: Final = ("policy.", ".csv")
_MATCH_MODES: Final = ("glob", "regex")
_EFFECTS: Final = ("allow", "deny")
_GRANT_FIELD_COUNT: Final = 6
_RULE_SYNTAX: Final = "write 'p, subject, resource, action, object, allow' or 'g, subject, role'"


class RbacGrant(NamedTuple):
    """argo: a policy line that starts with p."""

    subject: str
    resource: str
    action: str
    name: str
    effect: str


class RoleMember(NamedTuple):
    """argo: a policy line that starts with g."""

    subject: str
    role: str


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    grants: tuple[RbacGrant, ...] = ()
    members: tuple[RoleMember, ...] = ()
    default_role: str = ""  # argo: policy.default, the role of all users
    scopes: tuple[str, ...] = ("groups",)  # argo: the token claims that identify a user
    is_regex: bool = False  # argo: policy.matchMode; otherwise globs
    faults: tuple[str, ...] = ()
    is_broken: bool = False  # argo: an unreadable line removes all rights


def read_access_policy(data: Mapping[str, str]) -> AccessPolicy:
    """argo: policy.csv, then each policy.*.csv in the order of their names."""
    prefix, suffix = _OVERLAY_AFFIXES
    overlays = sorted(
        name for name in data if name.startswith(prefix) and name.endswith(suffix) and name != "policy.csv"
    )
    grants: list[RbacGrant] = []
    members: list[RoleMember] = []
    faults: list[str] = []
    is_broken = False
    for name in ("policy.csv", *overlays):
        for number, line in enumerate(data.get(name, "").splitlines(), 1):
            match split_policy_line(line):
                case []:
                    continue
                case ["p", subject, resource, action, object_name, effect] if effect in _EFFECTS:
                    grants.append(RbacGrant(subject, resource, action, object_name, effect))
                case ["g", subject, role, *_]:
                    members.append(RoleMember(subject, role))
                case fields:
                    is_broken = is_broken or len(fields) != _GRANT_FIELD_COUNT or fields[0] != "p"
                    faults.append(f"{RBAC_CM}: {name} line {number}: {line.strip()!r} is not a rule; {_RULE_SYNTAX}")
    mode = data.get("policy.matchMode", "").strip() or _MATCH_MODES[0]
    if mode not in _MATCH_MODES:
        faults.append(f"{RBAC_CM}: policy.matchMode: {mode!r} is not valid; write glob or regex")
    scopes, fault = _read_scopes(data.get("scopes", ""))
    return AccessPolicy(
        tuple(grants),
        tuple(members),
        data.get("policy.default", "").strip(),
        scopes,
        mode == "regex",
        (*faults, *fault),
        is_broken,
    )


def split_policy_line(line: str) -> list[str]:
    """argo: split one CSV line into trimmed fields; empty for a comment."""
    if not line.strip() or line.lstrip().startswith("#"):
        return []
    return [field.strip() for field in next(csv.reader([line], skipinitialspace=True))]


def _read_scopes(text: str) -> tuple[tuple[str, ...], list[str]]:
    defaults = AccessPolicy().scopes
    if not text.strip():
        return defaults, []
    try:
        names = read_yaml(text, where=f"{RBAC_CM}: scopes")
    except UserError as error:
        return defaults, [str(error)]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return defaults, [f"{RBAC_CM}: scopes: {text.strip()!r} is not a list of names; write it as '[groups, email]'"]
    return tuple(names), []
