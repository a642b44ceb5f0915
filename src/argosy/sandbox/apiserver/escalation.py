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

from argosy.sandbox.apiserver import status_errors

MAX_LISTED_PERMISSIONS = 5_000
MAX_COMPARISONS = 100_000  # of values that different held rules cover: about 50 ms
Rule = dict[str, Any]
_PARTS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("ResourceNames", "resourceNames"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("Verbs", "verbs"),
)
_ESCAPES = {
    '"': r"\"", "\\": r"\\", "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
}  # fmt: skip


def find_uncovered(own: Sequence[Rule], granted: Sequence[Rule]) -> list[Rule]:
    """Single permissions of the granted rules that no held rule covers, at most MAX_LISTED_PERMISSIONS of them.

    k8s: `Covers` of component-helpers/auth/rbac/validation. It compares rules, not requests: a rule without resource
    names is covered only by a rule without resource names, although a request without a name matches
    `resourceNames: [""]`. Kubernetes multiplies verbs, resources and names; here values that the same held rules cover
    are compared together.
    """
    coverage = _Coverage(own)
    found = (item for number, rule in enumerate(granted) for item in coverage.find_uncovered(number, rule))
    return [permission for _, permission in sorted(islice(found, MAX_LISTED_PERMISSIONS), key=itemgetter(0))]


class _Coverage:
    """Which held rules cover a value. A set of rules is an integer with one bit per rule."""

    def __init__(self, own: Sequence[Rule]) -> None:
        self._verbs, self._groups, self._resources = (_index(own, name) for name in ("verbs", "apiGroups", "resources"))
        self._names, self._paths = (_index(own, name) for name in ("resourceNames", "nonResourceURLs"))
        self._nameless = sum(1 << number for number, rule in enumerate(own) if not rule.get("resourceNames"))
        self._prefixes: dict[str, int] = {}  # of paths that end in a star
        for pattern, rules in self._paths.items():
            if pattern.endswith("*"):
                prefix = pattern.rstrip("*")
                self._prefixes[prefix] = self._prefixes.get(prefix, 0) | rules
        self._prefix_lengths = sorted({len(prefix) for prefix in self._prefixes})
        self._steps = 0

    def find_uncovered(self, number: int, rule: Rule) -> Iterator[tuple[tuple[int, ...], Rule]]:
        """The uncovered single permissions of a granted rule, each with a sort key for Kubernetes' order."""
        verbs = [(value, _starred(self._verbs, value)) for value in rule.get("verbs") or ()]
        paths = [(value, self._covering_path(value)) for value in rule.get("nonResourceURLs") or ()]
        for (verb_at, verb), (at, path) in self._uncovered([verbs, paths]):
            yield (number, verb_at, 0, at), {"nonResourceURLs": [path], "verbs": [verb]}
        groups = [(value, _starred(self._groups, value)) for value in rule.get("apiGroups") or ()]
        resources = [(value, self._covering_resource(value)) for value in rule.get("resources") or ()]
        names = [(value, self._nameless | self._names.get(value, 0)) for value in rule.get("resourceNames") or ()]
        parts = [verbs, groups, resources, names or [("", self._nameless)]]
        for (verb_at, verb), (group_at, group), (at, resource), (name_at, name) in self._uncovered(parts):
            named = {"resourceNames": [name]} if names else {}
            permission = {"apiGroups": [group], "resources": [resource], **named, "verbs": [verb]}
            yield (number, verb_at, 1, group_at, at, name_at), permission

    def _covering_resource(self, path: str) -> int:
        _, slash, subresource = path.partition("/")
        return _starred(self._resources, path) | (self._resources.get(f"*/{subresource}", 0) if slash else 0)

    def _covering_path(self, path: str) -> int:
        rules = self._paths.get(path, 0)
        for length in self._prefix_lengths:
            if length > len(path):
                break
            rules |= self._prefixes.get(path[:length], 0)
        return rules & self._nameless

    def _uncovered(self, parts: Sequence[Sequence[tuple[str, int]]]) -> Iterator[tuple[tuple[int, str], ...]]:
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

        def search(at: int, rules: int, chosen: tuple[list[tuple[int, str]], ...]) -> Iterator[Any]:
            if rules & covering_rest[at]:
                return
            if at == len(classes):
                yield from product(*chosen)
                return
            for more, values in classes[at].items():
                self._count_step()
                yield from search(at + 1, rules & more, (*chosen, values))

        return search(0, -1, ())

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MAX_COMPARISONS:
            why = "the rules have too many combinations of verbs, resources and names to compare with the user's rules"
            raise status_errors.bad_request(f"{why}: split them into several roles")


def _index(own: Sequence[Rule], part: str) -> dict[str, int]:
    """The held rules that have a value in this field."""
    index: dict[str, int] = {}
    for number, rule in enumerate(own):
        for value in rule.get(part) or ():
            index[value] = index.get(value, 0) | 1 << number
    return index


def _starred(index: dict[str, int], value: str) -> int:
    return index.get(value, 0) | index.get("*", 0)


def path_matches(pattern: str, path: str) -> bool:
    """True if a nonResourceURL, which may end in `*`, matches the path. k8s: all trailing stars are removed."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def shown(missing: Sequence[Rule]) -> str:
    """k8s: one sorted line per resource; a verb is repeated as often as it is granted."""
    lines: dict[tuple[str, ...], Rule] = {}
    for rule in missing:
        key = tuple(quote_list(rule.get(name) or ()) for _, name in _PARTS[:4])
        if "nonResourceURLs" in rule:
            lines[*key, *rule["verbs"]] = rule
        else:
            lines.setdefault(key, {**rule, "verbs": []})["verbs"] += rule["verbs"]
    listed = sorted({_line(rule) for rule in lines.values()})
    return "\n".join([*listed, "and more"] if len(missing) >= MAX_LISTED_PERMISSIONS else listed)


def _line(rule: Rule) -> str:
    return "{" + ", ".join(f"{label}:{quote_list(rule[name])}" for label, name in _PARTS if rule.get(name)) + "}"


def quote_list(values: Sequence[str]) -> str:
    """A list of strings as formatted by Go's `%q`."""
    return "[" + " ".join(map(quote, values)) + "]"


def quote(text: str) -> str:
    """A string as formatted by Go's `%q`."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
