"""RBAC policy lines for Argo CD, merged into the existing policy.

In: the RBAC section of argosy.yaml, and the live settings. Out: a patch, or None. Never: loses or moves a foreign line;
calls a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.coexistence.argocd_settings import CONFIG_MAP, Installation
from argosy.gitops.delivery_file.values import Rbac
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

POLICY: Final = "argocd-rbac-cm"
ADMINISTRATOR: Final = "role:admin"
# The names of the three texts in an ArgoCD resource, and in argocd-rbac-cm
IN_RESOURCE: Final = ("policy", "defaultPolicy", "scopes")
IN_CONFIG_MAP: Final = ("policy.csv", "policy.default", "scopes")


@dataclass(frozen=True)
class Texts:
    """The three policy settings; None if not set."""

    policy: str | None = None
    default_role: str | None = None
    scopes: str | None = None


def policy_key(installation: Installation) -> ResourceKey:
    """Return the key of the object to write to."""
    return installation.key if installation.is_operated else read_by_argocd(installation)


def read_by_argocd(installation: Installation) -> ResourceKey:
    return ResourceKey(*CONFIG_MAP, installation.namespace, POLICY)


def texts_of(installation: Installation, live: Manifest | None) -> Texts:
    if installation.is_operated:
        found = ((live or {}).get("spec") or {}).get("rbac") or {}
        return Texts(*(found.get(name) for name in IN_RESOURCE))
    found = (live or {}).get("data") or {}
    return Texts(*(found.get(name) for name in IN_CONFIG_MAP))


def patch_of(installation: Installation, before: Texts, after: Texts) -> dict[str, Any] | None:
    """Build a merge patch with the changed settings; None if nothing changed."""
    names = IN_RESOURCE if installation.is_operated else IN_CONFIG_MAP
    pairs = zip(names, _values(before), _values(after), strict=True)
    changed = {name: new for name, old, new in pairs if new is not None and new != old}
    if not changed:
        return None
    return {"spec": {"rbac": changed}} if installation.is_operated else {"data": changed}


def merged(before: Texts, rbac: Rbac, owner: str) -> Texts:
    """Put our lines into their own block, at its previous position or at the end."""
    return Texts(
        _with_block(before.policy, list(lines_of(rbac)), owner),
        rbac.default_role if rbac.default_role is not None else before.default_role,
        rbac.scopes if rbac.scopes is not None else before.scopes,
    )


def without(before: Texts, owner: str) -> Texts:
    """Remove our block; keep default role and scopes, because their previous values are unknown."""
    return Texts(_with_block(before.policy, [], owner), before.default_role, before.scopes)


def lines_of(rbac: Rbac) -> Iterator[str]:
    for who in rbac.admins:
        yield f"g, {who}, {ADMINISTRATOR}"
    for role in rbac.roles:
        for action in role.may:
            yield f"p, role:{role.name}, applications, {action}, {role.applications}, allow"
        for who in role.groups:
            yield f"g, {who}, role:{role.name}"


def _with_block(policy: str | None, lines: Sequence[str], owner: str) -> str | None:
    """Update our block; an unset policy stays unset if there are no lines."""
    return with_block(policy or "", lines, owner) or policy


def with_block(policy: str, lines: Sequence[str], owner: str) -> str:
    """Replace our block in a policy, without lines that already exist outside of it."""
    # argo: a line that begins with # is a comment
    first, last = f"# argosy-setup {owner}: begin", f"# argosy-setup {owner}: end"
    before, after, has_block = _around(policy.splitlines(), first, last)
    theirs = {_normal(line) for line in (*before, *after)}
    ours = [line for line in lines if _normal(line) not in theirs]
    if not ours and not has_block:
        return policy
    block = [first, *ours, last] if ours else []
    return "".join(f"{line}\n" for line in (*before, *block, *after))


def _around(lines: list[str], first: str, last: str) -> tuple[list[str], list[str], bool]:
    """Split the lines before and after our block. If its end marker is lost, keep all lines."""
    if first not in lines:
        return lines, [], False
    begin = lines.index(first)
    if last in lines[begin:]:
        return lines[:begin], lines[lines.index(last, begin) + 1 :], True
    return lines[:begin], lines[begin + 1 :], True


def holds(data: Mapping[str, str], rbac: Rbac) -> bool:
    """Return True if the data of argocd-rbac-cm contains all requested RBAC settings."""
    there = {_normal(line) for line in (data.get("policy.csv") or "").splitlines()}
    if any(_normal(line) not in there for line in lines_of(rbac)):
        return False
    wanted = {"policy.default": rbac.default_role, "scopes": rbac.scopes}
    return all(value is None or data.get(name) == value for name, value in wanted.items())


def added(before: Texts, after: Texts) -> list[str]:
    """Describe added and removed lines, and changed settings."""
    old, new = (before.policy or "").splitlines(), (after.policy or "").splitlines()
    rules = [f"+ {line}" for line in new if line not in old and not line.startswith("#")]
    rules += [f"- {line}" for line in old if line not in new and not line.startswith("#")]
    for name, was, will in (
        ("default role", before.default_role, after.default_role),
        ("scopes", before.scopes, after.scopes),
    ):
        if was != will:
            rules.append(f"{name}: {was or 'none'} → {will}")
    return rules


def _normal(line: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split(","))


def _values(texts: Texts) -> tuple[str | None, str | None, str | None]:
    return texts.policy, texts.default_role, texts.scopes
