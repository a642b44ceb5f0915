"""What of a role somebody may not hand out, as a real server lists it: by resource, with the verbs that are missing."""

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
