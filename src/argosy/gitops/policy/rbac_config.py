"""Reads argocd-rbac-cm.

In: its data. Out: grants, role members, and faults as sentences. Never: raises; decides a request: the web server does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from argosy.errors import UserError
from argosy.kube.objects import load

RBAC_CM: Final = "argocd-rbac-cm"
_OVERLAY: Final = ("policy.", ".csv")
_MODES: Final = ("glob", "regex")
_EFFECTS: Final = ("allow", "deny")
_WORDS_OF_A_GRANT: Final = 6
_FORMS: Final = "write 'p, subject, resource, action, object, allow' or 'g, subject, role'"


class Grant(NamedTuple):
    """argo: a policy line that starts with p."""

    subject: str
    resource: str
    action: str
    name: str
    effect: str


class Member(NamedTuple):
    """argo: a policy line that starts with g."""

    subject: str
    role: str


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    grants: tuple[Grant, ...] = ()
    members: tuple[Member, ...] = ()
    usual: str = ""  # argo: policy.default, the role of all users
    scopes: tuple[str, ...] = ("groups",)  # argo: the token claims that identify a user
    is_regex: bool = False  # argo: policy.matchMode; otherwise globs
    faults: tuple[str, ...] = ()
    is_broken: bool = False  # argo: an unreadable line removes all rights


def read_access(data: Mapping[str, str]) -> AccessPolicy:
    """argo: policy.csv, then each policy.*.csv in the order of their names."""
    begin, end = _OVERLAY
    overlays = sorted(name for name in data if name.startswith(begin) and name.endswith(end) and name != "policy.csv")
    grants: list[Grant] = []
    members: list[Member] = []
    faults: list[str] = []
    is_broken = False
    for name in ("policy.csv", *overlays):
        for number, line in enumerate(data.get(name, "").splitlines(), 1):
            match words_of(line):
                case []:
                    continue
                case ["p", subject, resource, action, thing, effect] if effect in _EFFECTS:
                    grants.append(Grant(subject, resource, action, thing, effect))
                case ["g", subject, role, *_]:
                    members.append(Member(subject, role))
                case words:
                    is_broken = is_broken or len(words) != _WORDS_OF_A_GRANT or words[0] != "p"
                    faults.append(f"{RBAC_CM}: {name} line {number}: {line.strip()!r} is not a rule; {_FORMS}")
    mode = data.get("policy.matchMode", "").strip() or _MODES[0]
    if mode not in _MODES:
        faults.append(f"{RBAC_CM}: policy.matchMode: {mode!r} is not valid; write glob or regex")
    scopes, fault = _scopes(data.get("scopes", ""))
    return AccessPolicy(
        tuple(grants),
        tuple(members),
        data.get("policy.default", "").strip(),
        scopes,
        mode == "regex",
        (*faults, *fault),
        is_broken,
    )


def words_of(line: str) -> list[str]:
    """argo: split one CSV line into trimmed fields; empty for a comment."""
    if not line.strip() or line.lstrip().startswith("#"):
        return []
    return [word.strip() for word in next(csv.reader([line], skipinitialspace=True))]


def _scopes(text: str) -> tuple[tuple[str, ...], list[str]]:
    usual = AccessPolicy().scopes
    if not text.strip():
        return usual, []
    try:
        given = load(text, where=f"{RBAC_CM}: scopes")
    except UserError as error:
        return usual, [str(error)]
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        return usual, [f"{RBAC_CM}: scopes: {text.strip()!r} is not a list of names; write it as '[groups, email]'"]
    return tuple(given), []
