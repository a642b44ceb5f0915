"""Finds the health rule of a kind: the user's checks first, then argosy's.

In: customizations and a kind. Out: a Rule, or None if the kind has no health. Never: assesses an object.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.gitops.health import builtin, fallback
from argosy.gitops.health.bundled import Origin, Rule, bundled_rules, profile_rules
from argosy.gitops.health.kind_keys import is_wild, key_text
from argosy.gitops.health.kind_patterns import matches, read
from argosy.gitops.health.settings import Check, Customizations
from argosy.kube.names import GroupKind


class Rulebook:
    """The rules in force. Create a new one when the settings change."""

    def __init__(self, customizations: Customizations = Customizations()) -> None:  # noqa: B008
        exact = [check for check in customizations.checks if not is_wild(check.pattern)]
        self._exact = {check.pattern: check for check in reversed(exact)}
        # settings.py reports invalid patterns; here they match nothing.
        wild = [check for check in customizations.checks if is_wild(check.pattern)]
        self._patterns = [check for check in wild if _is_sound(check.pattern)]
        self._profiles = customizations.profiles
        self._falls_back = customizations.fallback
        self._known: dict[GroupKind, Rule | None] = {}

    def rule_for(self, group: str, kind: str) -> Rule | None:
        """Return the first rule of: argocd-cm, the chosen profile, bundled, built-in, fallback."""
        of = GroupKind(group, kind)
        if of not in self._known:
            self._known[of] = self._checked(of) or self._ours(of)
        return self._known[of]

    def _checked(self, of: GroupKind) -> Rule | None:
        text = key_text(*of)
        check = self._exact.get(text)
        if check is None:
            check = next((row for row in self._patterns if matches(row.pattern, text)), None)
        return _from_check(of, check) if check else None

    def _ours(self, of: GroupKind) -> Rule | None:
        chosen = self._profiles.get(key_text(*of), "")
        if chosen and (rule := profile_rules(chosen).get(of)):
            return rule
        if rule := bundled_rules().get(of):
            return rule
        if of in builtin.CHECKS:
            return Rule(*of, Origin.BUILT_IN)
        return Rule(*of, Origin.FALLBACK) if self._falls_back and fallback.is_custom(of.group) else None


def _from_check(of: GroupKind, check: Check) -> Rule:
    return Rule(*of, Origin.ARGOCD_CM, script=check.script, open_libs=check.open_libs, where=check.where)


def _is_sound(pattern: str) -> bool:
    try:
        read(pattern)
    except UserError:
        return False
    return True
