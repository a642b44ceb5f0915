"""Catalog of health rules and the rule in force for each kind.

In: settings. Out: rows and rendered rules. Never: assesses an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.health_checks.kinds import find_kind, kind_of, known_kinds
from argosy.gitops.health.bundled import Origin, Rule, profile_rules, profiles, profiles_of
from argosy.gitops.health.kind_keys import is_wild, key_text
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import Check, Customizations
from argosy.gitops.health.settings_location import MAP_KEY
from argosy.kube.names import GroupKind

OPERATED: Final = "ArgoCD"
BUILT_IN: Final[Mapping[str, str]] = {
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
class Row:
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
        if not self.source or self.source == Origin.FALLBACK:
            return ""
        if is_wild(f"{self.group}/{self.kind}"):
            return key_text(self.group, self.kind)
        return f"{self.kind}.{self.group}" if self.group else f"core/{self.kind}"

    def as_data(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "kind": self.kind,
            "profile": self.profile,
            "source": self.source,
            "also": list(self.also),
            "where": self.where,
        }


def rows(customizations: Customizations, profile: str = "") -> list[Row]:
    """List all kinds, or with a profile, the kinds that have it."""
    if profile:
        check_profile(profile)
        return [_row(of, rule) for of, rule in sorted(profile_rules(profile).items())]
    rulebook = Rulebook(customizations)
    found = [_row(of, rulebook.rule_for(*of)) for of in known_kinds(customizations)]
    wild = [check for check in customizations.checks if is_wild(check.pattern)]
    found += [_row(kind_of(check.pattern), _wild_rule(check)) for check in wild]
    if customizations.fallback:
        found.append(Row("*", "*", "", str(Origin.FALLBACK), (), "argosy-cm health.fallback"))
    return found


def _row(of: GroupKind, rule: Rule | None) -> Row:
    profile = rule.profile if rule else ""
    also = tuple(name for name in profiles_of(of) if name != profile)
    return Row(of.group, of.kind, profile, source_of(rule) if rule else "", also, rule.where if rule else "")


def source_of(rule: Rule) -> str:
    """Return where a rule is defined. Checks of an ArgoCD resource have origin argocd-cm but are in the resource."""
    return OPERATED if rule.where.startswith(f"{OPERATED}/") else str(rule.origin)


def called(rule: str) -> str:
    """Render a rule name; drop the prefix argocd-cm if the rule is in a script file or in an ArgoCD resource."""
    place = rule.removeprefix(f"{Origin.ARGOCD_CM} ")
    return rule if place.startswith(MAP_KEY) else place


def check_profile(profile: str) -> None:
    if profile not in profiles():
        raise UserError(f"unknown profile {profile!r}; choose one of {', '.join(profiles())}")


def find_rule(word: str, customizations: Customizations, profile: str = "") -> tuple[GroupKind, Rule]:
    """Find the kind that a word names, and its rule in force or its rule in a profile."""
    for check in customizations.checks:
        if check.pattern == word and is_wild(word) and not profile:
            return kind_of(word), _wild_rule(check)
    of = find_kind(word, known_kinds(customizations))
    if profile:
        return of, _of_profile(of, profile)
    rule = Rulebook(customizations).rule_for(*of)
    if rule is None:
        choices = ", ".join(profiles_of(of))
        raise UserError(f"{of} has no default health rule; add --profile with one of {choices}")
    return of, rule


def _wild_rule(check: Check) -> Rule:
    return Rule(*kind_of(check.pattern), Origin.ARGOCD_CM, "", check.script, check.open_libs, check.where)


def _of_profile(of: GroupKind, profile: str) -> Rule:
    check_profile(profile)
    rule = profile_rules(profile).get(of)
    if rule is None:
        has = profiles_of(of)
        advice = f"choose one of {', '.join(has)}" if has else "leave --profile out"
        raise UserError(f"{of} has no profile {profile!r}; {advice}")
    return rule


def shown(rule: Rule) -> str:
    """Render a rule: its script, or a description of a built-in rule."""
    if rule.script:
        return rule.script if rule.script.endswith("\n") else rule.script + "\n"
    return BUILT_IN.get(key_text(rule.group, rule.kind), "Assessed by common conditions and phases.") + "\n"


def with_profile(customizations: Customizations, profile: str) -> Customizations:
    """Select a profile for every kind that has it, and drop the users' checks of these kinds."""
    check_profile(profile)
    chosen = {key_text(*of): profile for of in profile_rules(profile)}
    kept = tuple(check for check in customizations.checks if check.pattern not in chosen)
    return Customizations(
        kept,
        customizations.actions,
        {**customizations.profiles, **chosen},
        customizations.fallback,
        customizations.problems,
    )


def with_script(script: str, kinds: set[GroupKind], *, open_libs: bool, where: str) -> Customizations:
    """Build settings that use one script for these kinds."""
    return Customizations(tuple(Check(key_text(*of), script, open_libs, where) for of in sorted(kinds)))
