"""RBAC escalation check: which permissions of a role a user does not hold.

In: the rules that the user holds and the rules to grant. Out: the permissions that no held rule covers, and the
message that lists them. Never: reads the store. `tests/data/rbac/covers.jsonl.gz` has answers of Kubernetes' code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice, product
from operator import and_, itemgetter, or_
from typing import Any

from argosy.kube.objects.go_format import quote_list
from argosy.sandbox.apiserver import status_errors

MAX_LISTED_PERMISSIONS = 5_000
MAX_COMPARISONS = 100_000  # of values that different held rules cover: about 50 ms
Rule = dict[str, Any]
_RULE_FIELDS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("ResourceNames", "resourceNames"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("Verbs", "verbs"),
)


def find_uncovered(held_rules: Sequence[Rule], granted_rules: Sequence[Rule]) -> list[Rule]:
    """Single permissions of the granted rules that no held rule covers, at most MAX_LISTED_PERMISSIONS of them.

    k8s: `Covers` of component-helpers/auth/rbac/validation. It compares rules, not requests: a rule without resource
    names is covered only by a rule without resource names, although a request without a name matches
    `resourceNames: [""]`. Kubernetes multiplies verbs, resources and names; here values that the same held rules cover
    are compared together.
    """
    coverage = _Coverage(held_rules)
    uncovered = (item for number, rule in enumerate(granted_rules) for item in coverage.find_uncovered(number, rule))
    return [permission for _, permission in sorted(islice(uncovered, MAX_LISTED_PERMISSIONS), key=itemgetter(0))]


class _Coverage:
    """Which held rules cover a value. A set of rules is an integer with one bit per rule."""

    def __init__(self, held_rules: Sequence[Rule]) -> None:
        self._verbs, self._groups, self._resources = (
            _index_rules(held_rules, name) for name in ("verbs", "apiGroups", "resources")
        )
        self._names, self._paths = (_index_rules(held_rules, name) for name in ("resourceNames", "nonResourceURLs"))
        self._nameless = sum(1 << number for number, rule in enumerate(held_rules) if not rule.get("resourceNames"))
        self._prefixes: dict[str, int] = {}  # of paths that end in a star
        for pattern, rules in self._paths.items():
            if pattern.endswith("*"):
                prefix = pattern.rstrip("*")
                self._prefixes[prefix] = self._prefixes.get(prefix, 0) | rules
        self._prefix_lengths = sorted({len(prefix) for prefix in self._prefixes})
        self._comparisons = 0

    def find_uncovered(self, number: int, rule: Rule) -> Iterator[tuple[tuple[int, ...], Rule]]:
        """The uncovered single permissions of a granted rule, each with a sort key for Kubernetes' order."""
        verbs = [(value, _rules_with_value_or_star(self._verbs, value)) for value in rule.get("verbs") or ()]
        paths = [(value, self._rules_covering_path(value)) for value in rule.get("nonResourceURLs") or ()]
        for (verb_position, verb), (position, path) in self._find_uncovered_combinations([verbs, paths]):
            yield (number, verb_position, 0, position), {"nonResourceURLs": [path], "verbs": [verb]}
        groups = [(value, _rules_with_value_or_star(self._groups, value)) for value in rule.get("apiGroups") or ()]
        resources = [(value, self._rules_covering_resource(value)) for value in rule.get("resources") or ()]
        names = [(value, self._nameless | self._names.get(value, 0)) for value in rule.get("resourceNames") or ()]
        parts = [verbs, groups, resources, names or [("", self._nameless)]]
        for (verb_position, verb), (group_position, group), (position, resource), (
            name_position,
            name,
        ) in self._find_uncovered_combinations(parts):
            name_field = {"resourceNames": [name]} if names else {}
            permission = {"apiGroups": [group], "resources": [resource], **name_field, "verbs": [verb]}
            yield (number, verb_position, 1, group_position, position, name_position), permission

    def _rules_covering_resource(self, path: str) -> int:
        _, slash, subresource = path.partition("/")
        return _rules_with_value_or_star(self._resources, path) | (
            self._resources.get(f"*/{subresource}", 0) if slash else 0
        )

    def _rules_covering_path(self, path: str) -> int:
        rules = self._paths.get(path, 0)
        for length in self._prefix_lengths:
            if length > len(path):
                break
            rules |= self._prefixes.get(path[:length], 0)
        return rules & self._nameless

    def _find_uncovered_combinations(
        self, parts: Sequence[Sequence[tuple[str, int]]]
    ) -> Iterator[tuple[tuple[int, str], ...]]:
        """The combinations of one value per part that no held rule covers, as positions and values."""
        relevant = -1  # rules that cover at least one value of every part; others cover no combination
        for part in parts:
            relevant &= reduce(or_, (rules for _, rules in part), 0)
        classes: list[dict[int, list[tuple[int, str]]]] = [{} for _ in parts]
        for part, by_rules in zip(parts, classes, strict=True):
            for position, (value, rules) in enumerate(part):
                by_rules.setdefault(rules & relevant, []).append((position, value))
        covering_rest = [-1]  # rules that cover every value of the parts from here on
        for by_rules in reversed(classes):
            covering_rest.append(reduce(and_, by_rules, covering_rest[-1]))
        covering_rest.reverse()

        def search_part(at: int, rules: int, chosen: tuple[list[tuple[int, str]], ...]) -> Iterator[Any]:
            if rules & covering_rest[at]:
                return
            if at == len(classes):
                yield from product(*chosen)
                return
            for class_rules, values in classes[at].items():
                self._count_comparison()
                yield from search_part(at + 1, rules & class_rules, (*chosen, values))

        return search_part(0, -1, ())

    def _count_comparison(self) -> None:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            reason = (
                "the rules have too many combinations of verbs, resources and names to compare with the user's rules"
            )
            raise status_errors.bad_request(f"{reason}: split them into several roles")


def _index_rules(held_rules: Sequence[Rule], field: str) -> dict[str, int]:
    """The held rules that have a value in this field."""
    index: dict[str, int] = {}
    for number, rule in enumerate(held_rules):
        for value in rule.get(field) or ():
            index[value] = index.get(value, 0) | 1 << number
    return index


def _rules_with_value_or_star(index: dict[str, int], value: str) -> int:
    return index.get(value, 0) | index.get("*", 0)


def matches_path(pattern: str, path: str) -> bool:
    """True if a nonResourceURL, which may end in `*`, matches the path. k8s: all trailing stars are removed."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def format_permissions(permissions: Sequence[Rule]) -> str:
    """k8s: one sorted line per resource; a verb is repeated as often as it is granted."""
    lines: dict[tuple[str, ...], Rule] = {}
    for rule in permissions:
        key = tuple(quote_list(rule.get(name) or ()) for _, name in _RULE_FIELDS[:4])
        if "nonResourceURLs" in rule:
            lines[*key, *rule["verbs"]] = rule
        else:
            lines.setdefault(key, {**rule, "verbs": []})["verbs"] += rule["verbs"]
    listed = sorted({_format_rule(rule) for rule in lines.values()})
    return "\n".join([*listed, "and more"] if len(permissions) >= MAX_LISTED_PERMISSIONS else listed)


def _format_rule(rule: Rule) -> str:
    return "{" + ", ".join(f"{label}:{quote_list(rule[name])}" for label, name in _RULE_FIELDS if rule.get(name)) + "}"
