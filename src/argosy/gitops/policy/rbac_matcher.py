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
from argosy.gitops.policy.builtin_and_project_roles import RbacRule
from argosy.gitops.policy.rbac_object_url_spellings import ADDRESS_RESOURCES, ObjectSpellings
from argosy.languages.globs import compile_glob, escape_ipv6
from argosy.languages.go_regexp import InvalidGoRegexp, compile_go_regexp

NameMatcher = Callable[[str], object]

_MAX_CACHED_PATTERNS: Final = 4_096
_MAX_PATTERN_LENGTH: Final = 1_000  # characters of a pattern, and of a name in regex mode: no object has a longer one
_ONLY_STARS: Final = re.compile(r"[^?\[\]{}\\,!]*")  # a glob with no other special character than *
_MATCH_ALL_EXPRESSIONS: Final = frozenset({".*", "^.*$"})
_PLAIN_NAME: Final = re.compile(r"[^*?\[\]{}\\,!]*")  # argo: a glob without special characters matches only itself


class NamePatterns(NamedTuple):
    """The name patterns of the rules for one action on one resource; `denied` is None if all are denied."""

    allowed: frozenset[str]
    denied: frozenset[str] | None


class PatternMatcher:
    """argo: policy.matchMode; a regular expression may match anywhere, a glob matches the whole name."""

    def __init__(self, is_regex: bool) -> None:
        self.is_regex = is_regex
        self._matchers: dict[str, NameMatcher | None] = {}

    def find_matcher(self, pattern: str) -> NameMatcher | None:
        """Return the matcher of a pattern; None if it is invalid."""
        if pattern not in self._matchers:
            if len(self._matchers) >= _MAX_CACHED_PATTERNS:
                self._matchers.clear()
            self._matchers[pattern] = self._build_matcher(pattern)
        return self._matchers[pattern]

    def build_any_matcher(self, patterns: Iterable[str]) -> NameMatcher:
        """Return a matcher for any of the valid patterns."""
        valid_patterns = [pattern for pattern in sorted(set(patterns)) if self.find_matcher(pattern) is not None]
        matchers = [self.find_matcher(pattern) for pattern in valid_patterns]
        if _match_all in matchers:
            return _match_all
        if self.is_regex:
            return _combine_matchers([matcher for matcher in matchers if matcher])
        plain = frozenset(pattern for pattern in valid_patterns if _PLAIN_NAME.fullmatch(pattern))
        globs = [compile_glob(pattern, "").pattern for pattern in valid_patterns if pattern not in plain]
        match_globs = re.compile("|".join(globs), re.DOTALL).fullmatch if globs else None
        return _combine_matchers(
            [matcher for matcher in (plain.__contains__ if plain else None, match_globs) if matcher]
        )

    def object_pattern(self, resource: str, pattern: str) -> str:
        """Return the pattern for objects of a resource. The case of addresses does not matter."""
        if resource not in ADDRESS_RESOURCES:
            return pattern
        return f"(?i){pattern}" if self.is_regex else escape_ipv6(pattern.lower())

    def pattern_covers(self, wide: str, narrow: str) -> bool:
        """True if one pattern matches everything that the other matches; False also if that cannot be proven."""
        if wide == narrow:
            return self.find_matcher(wide) is not None
        if self.is_regex:
            return wide in _MATCH_ALL_EXPRESSIONS
        if wide == "*":
            return True
        # Then a * of the wide pattern matches each * of the narrow one.
        only_stars = _ONLY_STARS.fullmatch(wide) and _ONLY_STARS.fullmatch(narrow)
        matcher = self.find_matcher(wide)
        return bool(only_stars and matcher and matcher(narrow))

    def _build_matcher(self, pattern: str) -> NameMatcher | None:
        if len(pattern) > _MAX_PATTERN_LENGTH:
            return None
        if self.is_regex:
            return _compile_expression(pattern)
        if pattern == "*":
            return _match_all
        if _PLAIN_NAME.fullmatch(pattern):
            return pattern.__eq__
        try:
            return compile_glob(pattern, "").fullmatch
        except UserError:
            return None


def build_access_matcher(rule_patterns: Iterable[NamePatterns], matcher: PatternMatcher) -> NameMatcher:
    """Return a matcher for the names that one of the subjects may use; subjects without denials are combined."""
    undenied: set[str] = set()
    restricted: list[tuple[NameMatcher, NameMatcher]] = []
    for patterns in rule_patterns:
        if patterns.denied is None or not patterns.allowed:
            continue
        if not patterns.denied:
            undenied |= patterns.allowed
        else:
            restricted.append((matcher.build_any_matcher(patterns.allowed), matcher.build_any_matcher(patterns.denied)))
    match_undenied = matcher.build_any_matcher(undenied)
    if matcher.is_regex:
        return lambda text: (
            len(text) <= _MAX_PATTERN_LENGTH and (match_undenied(text) or _is_allowed_by_any(restricted, text))
        )
    return (
        match_undenied if not restricted else lambda text: match_undenied(text) or _is_allowed_by_any(restricted, text)
    )


def is_address_allowed(
    rule_patterns: Iterable[NamePatterns], matcher: PatternMatcher, spellings: ObjectSpellings
) -> bool:
    """Decide for all spellings of an address: one allowed spelling is enough, and one denied spelling decides."""
    if any(len(text) > _MAX_PATTERN_LENGTH for text in spellings.denied_as):
        return False
    rules = [
        (matcher.build_any_matcher(patterns.allowed), matcher.build_any_matcher(patterns.denied))
        for patterns in rule_patterns
        if patterns.denied is not None and patterns.allowed
    ]
    return any(
        any(map(allowed, spellings.allowed_as)) and not any(map(denied, spellings.denied_as))
        for allowed, denied in rules
    )


def _is_allowed_by_any(restricted: Sequence[tuple[NameMatcher, NameMatcher]], text: str) -> bool:
    return any(allowed(text) and not denied(text) for allowed, denied in restricted)


class RbacRuleSet:
    """All rules of one subject."""

    def __init__(self, rules: frozenset[RbacRule], matcher: PatternMatcher) -> None:
        self._rules = rules
        self._matcher = matcher
        self._patterns: dict[tuple[str, str], NamePatterns] = {}
        self.allows_any = any(rule.is_allowed for rule in rules)

    def find_patterns(self, resource: str, action: str) -> NamePatterns:
        patterns = self._patterns.get((resource, action))
        if patterns is None:
            if len(self._patterns) >= _MAX_CACHED_PATTERNS:
                self._patterns.clear()
            patterns = self._patterns[resource, action] = self._collect_patterns(resource, action)
        return patterns

    @cached_property
    def digest(self) -> str:
        mode = "regex" if self._matcher.is_regex else "glob"
        return hashlib.sha256(repr((mode, sorted(self._rules))).encode()).hexdigest()

    def covers(self, other: RbacRuleSet) -> bool:
        """True if these rules allow everything that the others allow; False also if that cannot be proven."""
        allowed, denied = self._split_by_effect()
        other_allowed, other_denied = other._split_by_effect()
        covered = all(any(self._rule_covers(own_rule, rule) for own_rule in allowed) for rule in other_allowed)
        return covered and denied <= other_denied

    def _split_by_effect(self) -> tuple[frozenset[RbacRule], frozenset[RbacRule]]:
        """Return allow rules and deny rules."""
        allowed = frozenset(rule for rule in self._rules if rule.is_allowed)
        return allowed, self._rules - allowed

    def _rule_covers(self, wide: RbacRule, narrow: RbacRule) -> bool:
        if wide.name != narrow.name and not self._matcher.is_regex:
            wide, narrow = wide._replace(name=wide.name.lower()), narrow._replace(name=narrow.name.lower())
        patterns = ((wide.resource, narrow.resource), (wide.action, narrow.action), (wide.name, narrow.name))
        return all(
            self._matcher.pattern_covers(wide_pattern, narrow_pattern) for wide_pattern, narrow_pattern in patterns
        )

    def _collect_patterns(self, resource: str, action: str) -> NamePatterns:
        allowed: list[str] = []
        denied: list[str] = []
        for rule in self._rules:
            is_match = self._matches_rule(rule, resource, action)
            if is_match is None and (self._matcher.is_regex or not rule.is_allowed):
                return NamePatterns(frozenset(), None)
            if is_match:
                (allowed if rule.is_allowed else denied).append(self._matcher.object_pattern(resource, rule.name))
        return NamePatterns(frozenset(allowed), frozenset(denied))

    def _matches_rule(self, rule: RbacRule, resource: str, action: str) -> bool | None:
        """Return None if a pattern that would decide is invalid, or the text too long for it."""
        for pattern, text in ((rule.resource, resource), (rule.action, action)):
            if self._matcher.is_regex and len(text) > _MAX_PATTERN_LENGTH:
                return None
            if (matcher := self._matcher.find_matcher(pattern)) is None:
                return None
            if not matcher(text):
                return False
        pattern = self._matcher.object_pattern(resource, rule.name)
        return None if self._matcher.find_matcher(pattern) is None else True


def _compile_expression(pattern: str) -> NameMatcher | None:
    try:
        return compile_go_regexp(pattern)
    except InvalidGoRegexp:
        return None


def _combine_matchers(matchers: Sequence[NameMatcher]) -> NameMatcher:
    match matchers:
        case []:
            return _match_none
        case [first]:
            return first
        case [first, second]:
            return lambda text: first(text) or second(text)
    return lambda text: any(matcher(text) for matcher in matchers)


def _match_all(_text: str) -> bool:
    return True


def _match_none(_text: str) -> bool:
    return False
