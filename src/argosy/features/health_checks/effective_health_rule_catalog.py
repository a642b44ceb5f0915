"""Catalog of health rules and the rule in force for each kind.

In: settings. Out: rows and rendered rules. Never: assesses an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.kind_name_lookup import find_kind, list_known_kinds, parse_kind_pattern
from argosy.gitops.health.argocd_cm_entries_with_locations import CUSTOMIZATIONS_KEY
from argosy.gitops.health.bundled_rules import (
    HealthRule,
    RuleOrigin,
    list_profiles,
    list_profiles_of_kind,
    load_profile_rules,
)
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.setting_kind_names import has_wildcard, render_kind
from argosy.gitops.health.settings import CustomHealthCheck, Customizations
from argosy.kube.resource_key import GroupKind

ARGOCD_KIND: Final = "ArgoCD"
BUILTIN_RULE_TEXTS: Final[Mapping[str, str]] = {
    "apps/Deployment": "Suspended while paused; Degraded past its progress deadline; Progressing until the newest "
    "template is observed and all replicas are updated and available; then Healthy.",
    "apps/StatefulSet": "Progressing until the newest template is observed, all replicas are ready and the rolling "
    "update is through (with OnDelete: ready is enough); then Healthy.",
    "apps/DaemonSet": "Progressing until the newest template is observed and Pods are updated and available on all "
    "nodes (with OnDelete: observed is enough); then Healthy.",
    "apps/ReplicaSet": "Degraded on ReplicaFailure; Progressing until all replicas are available; then Healthy.",
    "Pod": "Degraded where a container that should run waits with an error or the Pod failed; Healthy once ready or "
    "succeeded; otherwise Progressing.",
    "Service": "Progressing while a LoadBalancer has no address; otherwise Healthy.",
    "PersistentVolumeClaim": "Healthy when Bound, Progressing when Pending, Degraded when Lost.",
    "batch/Job": "Degraded when Failed, Suspended when suspended, Healthy when Complete, otherwise Progressing.",
    "networking.k8s.io/Ingress": "Healthy once the load balancer has an address, until then Progressing.",
    "extensions/Ingress": "Healthy once the load balancer has an address, until then Progressing.",
    "autoscaling/HorizontalPodAutoscaler": "Degraded where metrics or scaling fail, Healthy when it is able to scale "
    "or at a limit, otherwise Progressing.",
    "apiregistration.k8s.io/APIService": "Healthy when Available, otherwise Progressing.",
    "argoproj.io/Workflow": "Healthy when Succeeded, Degraded when Failed or in Error, otherwise Progressing.",
}


@dataclass(frozen=True)
class HealthRuleRow:
    """One kind, the health rule in force for it, and its other profiles."""

    group: str
    kind: str
    profile: str
    source: str  # empty: no rule unless a profile is chosen
    also: tuple[str, ...]
    where: str

    @property
    def name(self) -> str:
        """Argument for `argosy health show`; empty if there is no rule to show."""
        if not self.source or self.source == RuleOrigin.FALLBACK:
            return ""
        if has_wildcard(f"{self.group}/{self.kind}"):
            return render_kind(self.group, self.kind)
        return f"{self.kind}.{self.group}" if self.group else f"core/{self.kind}"

    def to_wire(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "kind": self.kind,
            "profile": self.profile,
            "source": self.source,
            "also": list(self.also),
            "where": self.where,
        }


def list_rule_rows(customizations: Customizations, profile: str = "") -> list[HealthRuleRow]:
    """List all kinds, or with a profile, the kinds that have it."""
    if profile:
        check_profile(profile)
        return [_build_row(group_kind, rule) for group_kind, rule in sorted(load_profile_rules(profile).items())]
    rulebook = HealthRules(customizations)
    rule_rows = [
        _build_row(group_kind, rulebook.find_rule(*group_kind)) for group_kind in list_known_kinds(customizations)
    ]
    wildcard_checks = [check for check in customizations.checks if has_wildcard(check.pattern)]
    rule_rows += [
        _build_row(parse_kind_pattern(check.pattern), _build_wildcard_rule(check)) for check in wildcard_checks
    ]
    if customizations.fallback:
        rule_rows.append(HealthRuleRow("*", "*", "", str(RuleOrigin.FALLBACK), (), "argosy-cm health.fallback"))
    return rule_rows


def _build_row(group_kind: GroupKind, rule: HealthRule | None) -> HealthRuleRow:
    profile = rule.profile if rule else ""
    also = tuple(name for name in list_profiles_of_kind(group_kind) if name != profile)
    return HealthRuleRow(
        group_kind.group,
        group_kind.kind,
        profile,
        find_rule_source(rule) if rule else "",
        also,
        rule.where if rule else "",
    )


def find_rule_source(rule: HealthRule) -> str:
    """Return where a rule is defined. Checks of an ArgoCD resource have origin argocd-cm but are in the resource."""
    return ARGOCD_KIND if rule.where.startswith(f"{ARGOCD_KIND}/") else str(rule.origin)


def render_rule_name(rule_name: str) -> str:
    """Render a rule name; drop the prefix argocd-cm if the rule is in a script file or in an ArgoCD resource."""
    location = rule_name.removeprefix(f"{RuleOrigin.ARGOCD_CM} ")
    return rule_name if location.startswith(CUSTOMIZATIONS_KEY) else location


def check_profile(profile: str) -> None:
    if profile not in list_profiles():
        raise UserError(f"unknown profile {profile!r}; choose one of {', '.join(list_profiles())}")


def find_rule(word: str, customizations: Customizations, profile: str = "") -> tuple[GroupKind, HealthRule]:
    """Find the kind that a word names, and its rule in force or its rule in a profile."""
    for check in customizations.checks:
        if check.pattern == word and has_wildcard(word) and not profile:
            return parse_kind_pattern(word), _build_wildcard_rule(check)
    group_kind = find_kind(word, list_known_kinds(customizations))
    if profile:
        return group_kind, _find_profile_rule(group_kind, profile)
    rule = HealthRules(customizations).find_rule(*group_kind)
    if rule is None:
        profile_names = ", ".join(list_profiles_of_kind(group_kind))
        raise UserError(f"{group_kind} has no default health rule; add --profile with one of {profile_names}")
    return group_kind, rule


def _build_wildcard_rule(check: CustomHealthCheck) -> HealthRule:
    return HealthRule(
        *parse_kind_pattern(check.pattern), RuleOrigin.ARGOCD_CM, "", check.script, check.open_libs, check.where
    )


def _find_profile_rule(group_kind: GroupKind, profile: str) -> HealthRule:
    check_profile(profile)
    rule = load_profile_rules(profile).get(group_kind)
    if rule is None:
        kind_profiles = list_profiles_of_kind(group_kind)
        advice = f"choose one of {', '.join(kind_profiles)}" if kind_profiles else "leave --profile out"
        raise UserError(f"{group_kind} has no profile {profile!r}; {advice}")
    return rule


def render_rule(rule: HealthRule) -> str:
    """Render a rule: its script, or a description of a built-in rule."""
    if rule.script:
        return rule.script if rule.script.endswith("\n") else rule.script + "\n"
    return (
        BUILTIN_RULE_TEXTS.get(render_kind(rule.group, rule.kind), "Assessed by common conditions and phases.") + "\n"
    )


def select_profile(customizations: Customizations, profile: str) -> Customizations:
    """Select a profile for every kind that has it, and drop the users' checks of these kinds."""
    check_profile(profile)
    profile_by_pattern = {render_kind(*group_kind): profile for group_kind in load_profile_rules(profile)}
    kept_checks = tuple(check for check in customizations.checks if check.pattern not in profile_by_pattern)
    return Customizations(
        kept_checks,
        customizations.actions,
        {**customizations.profiles, **profile_by_pattern},
        customizations.fallback,
        customizations.problems,
    )


def build_script_settings(script: str, kinds: set[GroupKind], *, open_libs: bool, where: str) -> Customizations:
    """Build settings that use one script for these kinds."""
    return Customizations(
        tuple(CustomHealthCheck(render_kind(*group_kind), script, open_libs, where) for group_kind in sorted(kinds))
    )
