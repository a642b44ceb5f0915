"""Finds the health rule of a kind: the user's checks first, then argosy's.

In: customizations and a kind. Out: a Rule, or None if the kind has no health. Never: assesses an object.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.gitops.health import builtin, fallback
from argosy.gitops.health.bundled_rules import HealthRule, RuleOrigin, load_bundled_rules, load_profile_rules
from argosy.gitops.health.kind_patterns import matches_kind_pattern, parse_kind_pattern
from argosy.gitops.health.setting_kind_names import has_wildcard, render_kind
from argosy.gitops.health.settings import CustomHealthCheck, Customizations
from argosy.kube.resource_key import GroupKind


class HealthRules:
    """The rules in force. Create a new one when the settings change."""

    def __init__(self, customizations: Customizations = Customizations()) -> None:  # noqa: B008
        exact = [check for check in customizations.checks if not has_wildcard(check.pattern)]
        self._checks_by_kind = {check.pattern: check for check in reversed(exact)}
        # settings.py reports invalid patterns; here they match nothing.
        wildcard_checks = [check for check in customizations.checks if has_wildcard(check.pattern)]
        self._wildcard_checks = [check for check in wildcard_checks if _is_valid_pattern(check.pattern)]
        self._profiles = customizations.profiles
        self._uses_fallback = customizations.fallback
        self._rules_by_kind: dict[GroupKind, HealthRule | None] = {}

    def find_rule(self, group: str, kind: str) -> HealthRule | None:
        """Return the first rule of: argocd-cm, the chosen profile, bundled, built-in, fallback."""
        group_kind = GroupKind(group, kind)
        if group_kind not in self._rules_by_kind:
            self._rules_by_kind[group_kind] = self._find_user_rule(group_kind) or self._find_argosy_rule(group_kind)
        return self._rules_by_kind[group_kind]

    def _find_user_rule(self, group_kind: GroupKind) -> HealthRule | None:
        text = render_kind(*group_kind)
        check = self._checks_by_kind.get(text)
        if check is None:
            check = next(
                (candidate for candidate in self._wildcard_checks if matches_kind_pattern(candidate.pattern, text)),
                None,
            )
        return _build_rule(group_kind, check) if check else None

    def _find_argosy_rule(self, group_kind: GroupKind) -> HealthRule | None:
        profile = self._profiles.get(render_kind(*group_kind), "")
        if profile and (rule := load_profile_rules(profile).get(group_kind)):
            return rule
        if rule := load_bundled_rules().get(group_kind):
            return rule
        if group_kind in builtin.BUILTIN_CHECKS:
            return HealthRule(*group_kind, RuleOrigin.BUILT_IN)
        return (
            HealthRule(*group_kind, RuleOrigin.FALLBACK)
            if self._uses_fallback and fallback.is_custom_resource_group(group_kind.group)
            else None
        )


def _build_rule(group_kind: GroupKind, check: CustomHealthCheck) -> HealthRule:
    return HealthRule(
        *group_kind, RuleOrigin.ARGOCD_CM, script=check.script, open_libs=check.open_libs, where=check.where
    )


def _is_valid_pattern(pattern: str) -> bool:
    try:
        parse_kind_pattern(pattern)
    except UserError:
        return False
    return True
