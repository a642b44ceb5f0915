"""Who may do what in Argo CD: lines of its policy, merged into what is there.

In: what a delivery asks for, and the live settings. Out: a patch, or None. Never: loses or moves a line of somebody
else; asks a cluster.
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
    """None: not set."""

    policy: str | None = None
    default_role: str | None = None
    scopes: str | None = None


def policy_key(installation: Installation) -> ResourceKey:
    """What to write to."""
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
    """A merge patch with what is not the same; None where all is."""
    names = IN_RESOURCE if installation.is_operated else IN_CONFIG_MAP
    pairs = zip(names, _values(before), _values(after), strict=True)
    changed = {name: new for name, old, new in pairs if new is not None and new != old}
    if not changed:
        return None
    return {"spec": {"rbac": changed}} if installation.is_operated else {"data": changed}


def merged(before: Texts, rbac: Rbac, owner: str) -> Texts:
    """With our lines in a block of their own, at the place that it had; else at the end."""
    return Texts(
        _with_block(before.policy, list(lines_of(rbac)), owner),
        rbac.default_role if rbac.default_role is not None else before.default_role,
        rbac.scopes if rbac.scopes is not None else before.scopes,
    )


def without(before: Texts, owner: str) -> Texts:
    """Our block is gone; the default role and the scopes stay: what they were before is not known."""
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
    """A text that is not set stays so where there is nothing to say."""
    return with_block(policy or "", lines, owner) or policy


def with_block(policy: str, lines: Sequence[str], owner: str) -> str:
    """What somebody else's line says already is not said twice."""
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
    """What stands before and after our block. Where its end was lost, nobody knows which lines are ours: all stay."""
    if first not in lines:
        return lines, [], False
    begin = lines.index(first)
    if last in lines[begin:]:
        return lines[:begin], lines[lines.index(last, begin) + 1 :], True
    return lines[:begin], lines[begin + 1 :], True


def holds(data: Mapping[str, str], rbac: Rbac) -> bool:
    """Whether Argo CD reads all that is asked for, from argocd-rbac-cm."""
    there = {_normal(line) for line in (data.get("policy.csv") or "").splitlines()}
    if any(_normal(line) not in there for line in lines_of(rbac)):
        return False
    wanted = {"policy.default": rbac.default_role, "scopes": rbac.scopes}
    return all(value is None or data.get(name) == value for name, value in wanted.items())


def added(before: Texts, after: Texts) -> list[str]:
    """Sentences: which lines come and go, and which texts change."""
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
