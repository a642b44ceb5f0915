"""RBAC escalation check: which permissions of a role a user does not hold.

In: the user's own rules and the rules to grant. Out: the permissions that no own rule covers, and the message that
lists them. Never: reads the store. `tests/data/rbac/covers.jsonl.gz` records what Kubernetes' own code answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Rule = dict[str, Any]
_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("ResourceNames", "resourceNames"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("Verbs", "verbs"),
)


def single_permissions(rule: Rule) -> Iterator[Rule]:
    """One rule for each verb on each thing."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield {"nonResourceURLs": [path], "verbs": [verb]}
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or (None,):
                    named = {"resourceNames": [name]} if name is not None else {}
                    yield {"apiGroups": [group], "resources": [resource], **named, "verbs": [verb]}


def find_uncovered(own: Sequence[Rule], granted: Sequence[Rule]) -> list[Rule]:
    """Single permissions of `granted` that no rule of `own` covers.

    k8s: `Covers` of component-helpers/auth/rbac/validation. It compares rules, not requests: a rule without resource
    names is covered only by a rule without resource names, although a request without a name matches
    `resourceNames: [""]`.
    """
    permissions = (permission for rule in granted for permission in single_permissions(rule))
    return [permission for permission in permissions if not any(_covers(rule, permission) for rule in own)]


def path_matches(pattern: str, path: str) -> bool:
    """True if a nonResourceURL, which may end in `*`, matches the path. k8s: all trailing stars are cut."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _covers(own: Rule, permission: Rule) -> bool:
    own_names, names = own.get("resourceNames") or (), permission.get("resourceNames") or ()
    return (
        _has_all(own.get("verbs"), permission["verbs"])
        and _has_all(own.get("apiGroups"), permission.get("apiGroups", ()))
        and all(_resource_covered(own.get("resources") or (), path) for path in permission.get("resources", ()))
        and all(_path_covered(own.get("nonResourceURLs") or (), path) for path in permission.get("nonResourceURLs", ()))
        and (not own_names or (bool(names) and all(name in own_names for name in names)))
    )


def _has_all(values: Sequence[str] | None, wanted: Sequence[str]) -> bool:
    values = values or ()
    return "*" in values or all(value in values for value in wanted)


def _resource_covered(resources: Sequence[str], path: str) -> bool:
    _, slash, subresource = path.partition("/")
    return "*" in resources or path in resources or (bool(slash) and f"*/{subresource}" in resources)


def _path_covered(patterns: Sequence[str], path: str) -> bool:
    return any(path_matches(pattern, path) for pattern in patterns)


def shown(missing: Sequence[Rule]) -> str:
    """k8s: permissions on the same resource become one line; the lines are sorted."""
    lines: dict[tuple[str, ...], Rule] = {}
    for rule in missing:
        key = tuple(_quoted(rule.get(name) or ()) for _, name in _PARTS[:4])
        if "nonResourceURLs" in rule:
            key = (*key, *rule["verbs"])
        known = lines.setdefault(key, {**rule, "verbs": []})
        known["verbs"] += [verb for verb in rule["verbs"] if verb not in known["verbs"]]
    return "\n".join(sorted({_line(rule) for rule in lines.values()}))


def quoted_groups(groups: Sequence[str]) -> str:
    return _quoted(groups)


def _line(rule: Rule) -> str:
    return "{" + ", ".join(f"{label}:{_quoted(rule[name])}" for label, name in _PARTS if rule.get(name)) + "}"


def _quoted(values: Sequence[str]) -> str:
    """As Go's `%q` shows strings in a list."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
