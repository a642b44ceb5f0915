"""Who may do what by argocd-rbac-cm, as its author wrote it.

In: its data. Out: grants, members of roles, and what cannot be read, as sentences. Never: raises; decides for anybody:
that is the matter of whoever opens a door for people, and the engine opens none.
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
    """argo: what a line that begins with p says."""

    subject: str
    resource: str
    action: str
    name: str
    effect: str


class Member(NamedTuple):
    """argo: what a line that begins with g says."""

    subject: str
    role: str


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    grants: tuple[Grant, ...] = ()
    members: tuple[Member, ...] = ()
    usual: str = ""  # argo: policy.default, the role of those who have no other
    scopes: tuple[str, ...] = ("groups",)  # argo: which claims of a token say who somebody is
    is_regex: bool = False  # argo: policy.matchMode; globs else
    faults: tuple[str, ...] = ()
    is_broken: bool = False  # argo: a line that cannot be read at all leaves nobody any right


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
                    faults.append(f"{RBAC_CM}: {name} line {number}: {line.strip()!r} is no rule; {_FORMS}")
    mode = data.get("policy.matchMode", "").strip() or _MODES[0]
    if mode not in _MODES:
        faults.append(f"{RBAC_CM}: policy.matchMode: {mode!r} is none; write glob or regex")
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
    """argo: fields of one line of CSV, without the space around them; nothing for a comment."""
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
        return usual, [f"{RBAC_CM}: scopes: {text.strip()!r} is no list of names; write it as '[groups, email]'"]
    return tuple(given), []
