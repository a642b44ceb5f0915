"""Matches RBAC rules against a request.

In: rules and a request. Out: True or False. Never: raises; ignores a deny rule.

A deny rule with an invalid pattern denies everything. An allow rule with one allows nothing; in regex mode it denies
too, as in Argo CD.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.policy.rbac_addresses import ADDRESS_RESOURCES, Spellings
from argosy.gitops.policy.roles import Rule
from argosy.languages.globs import escape_ipv6, glob_pattern
from argosy.languages.go_regexp import Unreadable, expression

Fits = Callable[[str], object]

_MOST_KNOWN: Final = 4_096
_LONGEST: Final = 1_000  # characters of a pattern, and of a name in regex mode: no object has a longer one
_ONLY_STARS: Final = re.compile(r"[^?\[\]{}\\,!]*")  # a glob with no other special character than *
_ANY_TEXT: Final = frozenset({".*", "^.*$"})
_PLAIN: Final = re.compile(r"[^*?\[\]{}\\,!]*")  # argo: a glob without special characters matches only itself


class Objects(NamedTuple):
    """The name patterns of the rules for one action on one resource; `denied` is None if all are denied."""

    allowed: frozenset[str]
    denied: frozenset[str] | None


class Matching:
    """argo: policy.matchMode; a regular expression may match anywhere, a glob matches the whole name."""

    def __init__(self, is_regex: bool) -> None:
        self.is_regex = is_regex
        self._known: dict[str, Fits | None] = {}

    def fitting(self, pattern: str) -> Fits | None:
        """Return the matcher of a pattern; None if it is invalid."""
        if pattern not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[pattern] = self._made(pattern)
        return self._known[pattern]

    def any_of(self, patterns: Iterable[str]) -> Fits:
        """Return a matcher for any of the valid patterns."""
        readable = [each for each in sorted(set(patterns)) if self.fitting(each) is not None]
        made = [self.fitting(each) for each in readable]
        if _everything in made:
            return _everything
        if self.is_regex:
            return _first_of([fits for fits in made if fits])
        plain = frozenset(each for each in readable if _PLAIN.fullmatch(each))
        globs = [glob_pattern(each, "").pattern for each in readable if each not in plain]
        together = re.compile("|".join(globs), re.DOTALL).fullmatch if globs else None
        return _first_of([fits for fits in (plain.__contains__ if plain else None, together) if fits])

    def object_pattern(self, resource: str, pattern: str) -> str:
        """Return the pattern for objects of a resource. The case of addresses does not matter."""
        if resource not in ADDRESS_RESOURCES:
            return pattern
        return f"(?i){pattern}" if self.is_regex else escape_ipv6(pattern.lower())

    def pattern_covers(self, wide: str, narrow: str) -> bool:
        """True if one pattern matches everything that the other matches; False also if that cannot be proven."""
        if wide == narrow:
            return self.fitting(wide) is not None
        if self.is_regex:
            return wide in _ANY_TEXT
        if wide == "*":
            return True
        # Then a * of the wide pattern matches each * of the narrow one.
        only_stars = _ONLY_STARS.fullmatch(wide) and _ONLY_STARS.fullmatch(narrow)
        fits = self.fitting(wide)
        return bool(only_stars and fits and fits(narrow))

    def _made(self, pattern: str) -> Fits | None:
        if len(pattern) > _LONGEST:
            return None
        if self.is_regex:
            return _expression(pattern)
        if pattern == "*":
            return _everything
        if _PLAIN.fullmatch(pattern):
            return pattern.__eq__
        try:
            return glob_pattern(pattern, "").fullmatch
        except UserError:
            return None


def judge(voices: Iterable[Objects], matching: Matching) -> Fits:
    """Return a matcher for the names that one of the subjects may use; subjects without denials are combined."""
    free: set[str] = set()
    bound: list[tuple[Fits, Fits]] = []
    for objects in voices:
        if objects.denied is None or not objects.allowed:
            continue
        if not objects.denied:
            free |= objects.allowed
        else:
            bound.append((matching.any_of(objects.allowed), matching.any_of(objects.denied)))
    freely = matching.any_of(free)
    if matching.is_regex:
        return lambda text: len(text) <= _LONGEST and (freely(text) or _is_any(bound, text))
    return freely if not bound else lambda text: freely(text) or _is_any(bound, text)


def judge_address(voices: Iterable[Objects], matching: Matching, spellings: Spellings) -> bool:
    """Decide for all spellings of an address: one allowed spelling is enough, and one denied spelling decides."""
    if any(len(text) > _LONGEST for text in spellings.denied_as):
        return False
    rules = [
        (matching.any_of(objects.allowed), matching.any_of(objects.denied))
        for objects in voices
        if objects.denied is not None and objects.allowed
    ]
    return any(
        any(map(allowed, spellings.allowed_as)) and not any(map(denied, spellings.denied_as))
        for allowed, denied in rules
    )


def _is_any(bound: Sequence[tuple[Fits, Fits]], text: str) -> bool:
    return any(allowed(text) and not denied(text) for allowed, denied in bound)


class RuleSet:
    """All rules of one subject."""

    def __init__(self, rules: frozenset[Rule], matching: Matching) -> None:
        self._rules = rules
        self._matching = matching
        self._known: dict[tuple[str, str], Objects] = {}
        self.allows_any = any(rule.is_allowed for rule in rules)

    def objects(self, resource: str, action: str) -> Objects:
        objects = self._known.get((resource, action))
        if objects is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            objects = self._known[resource, action] = self._objects(resource, action)
        return objects

    @cached_property
    def digest(self) -> str:
        mode = "regex" if self._matching.is_regex else "glob"
        return hashlib.sha256(repr((mode, sorted(self._rules))).encode()).hexdigest()

    def covers(self, other: RuleSet) -> bool:
        """True if these rules allow everything that the others allow; False also if that cannot be proven."""
        allowed, denied = self._split()
        other_allowed, other_denied = other._split()
        covered = all(any(self._rule_covers(own, rule) for own in allowed) for rule in other_allowed)
        return covered and denied <= other_denied

    def _split(self) -> tuple[frozenset[Rule], frozenset[Rule]]:
        """Return allow rules and deny rules."""
        allowed = frozenset(rule for rule in self._rules if rule.is_allowed)
        return allowed, self._rules - allowed

    def _rule_covers(self, wide: Rule, narrow: Rule) -> bool:
        if wide.name != narrow.name and not self._matching.is_regex:
            wide, narrow = wide._replace(name=wide.name.lower()), narrow._replace(name=narrow.name.lower())
        patterns = ((wide.resource, narrow.resource), (wide.action, narrow.action), (wide.name, narrow.name))
        return all(self._matching.pattern_covers(one, other) for one, other in patterns)

    def _objects(self, resource: str, action: str) -> Objects:
        allowed: list[str] = []
        denied: list[str] = []
        for rule in self._rules:
            fits = self._fits(rule, resource, action)
            if fits is None and (self._matching.is_regex or not rule.is_allowed):
                return Objects(frozenset(), None)
            if fits:
                (allowed if rule.is_allowed else denied).append(self._matching.object_pattern(resource, rule.name))
        return Objects(frozenset(allowed), frozenset(denied))

    def _fits(self, rule: Rule, resource: str, action: str) -> bool | None:
        """Return None if a pattern that would decide is invalid."""
        for pattern, text in ((rule.resource, resource), (rule.action, action)):
            if (fits := self._matching.fitting(pattern)) is None:
                return None
            if not fits(text):
                return False
        pattern = self._matching.object_pattern(resource, rule.name)
        return None if self._matching.fitting(pattern) is None else True


def _expression(pattern: str) -> Fits | None:
    try:
        return expression(pattern)
    except Unreadable:
        return None


def _first_of(made: Sequence[Fits]) -> Fits:
    match made:
        case []:
            return _nothing
        case [one]:
            return one
        case [one, other]:
            return lambda text: one(text) or other(text)
    return lambda text: any(fits(text) for fits in made)


def _everything(_text: str) -> bool:
    return True


def _nothing(_text: str) -> bool:
    return False
