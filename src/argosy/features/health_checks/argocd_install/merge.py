"""Merge of requested health checks into the health checks of an Argo CD.

In: kinds, a profile, and the existing entries. Out: requested checks, and the merged entries. Never: calls a cluster;
loses an entry that others wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.health.bundled import USUAL_PROFILE, Rule, bundled_rules, profile_rules, profiles, profiles_of
from argosy.gitops.health.kind_keys import joined, key_text
from argosy.kube.names import GroupKind

KSERVE: Final = "serving.kserve.io"
INFERENCE_SERVICE: Final = GroupKind(KSERVE, "InferenceService")
USUAL_KINDS: Final = (INFERENCE_SERVICE, GroupKind(KSERVE, "ServingRuntime"))
KEY_PREFIX: Final = "resource.customizations.health."

Entry = Mapping[str, Any]  # of spec.resourceHealthChecks: group, kind, check


@dataclass(frozen=True)
class Check:
    """The health check script to install for one kind."""

    of: GroupKind
    script: str = field(repr=False)
    profile: str = ""  # empty: the kind has one rule only

    @property
    def key(self) -> str:
        """Key of the check in argocd-cm."""
        return KEY_PREFIX + joined(*self.of)

    @property
    def entry(self) -> dict[str, str]:
        """Entry of the check in an ArgoCD resource."""
        return {"group": self.of.group, "kind": self.of.kind, "check": self.script}

    @property
    def name(self) -> str:
        return f"{key_text(*self.of)}{f' (profile {self.profile})' if self.profile else ''}"


@dataclass(frozen=True)
class Change:
    """The effect of a requested check on the existing entry of its kind."""

    check: Check
    before: str | None = field(repr=False)  # the existing script

    @property
    def is_needed(self) -> bool:
        return self.before != self.check.script

    @property
    def sentence(self) -> str:
        if self.before is None:
            return f"{self.check.name}: new"
        if not self.is_needed:
            return f"{self.check.name}: already up to date"
        profile = profile_with(self.check.of, self.before)
        return f"{self.check.name}: replaces {f'profile {profile}' if profile else 'another script'}"


def wanted_checks(kinds: Iterable[GroupKind], profile: str = USUAL_PROFILE) -> tuple[Check, ...]:
    """Build one check per kind. A kind without this profile uses its only bundled rule."""
    if profile not in profiles():
        raise UserError(f"unknown profile {profile}; choose one of {', '.join(profiles())}", where="--profile")
    rules = {of: _rule(of, profile) for of in kinds}
    return tuple(Check(of, rule.script, rule.profile) for of, rule in rules.items())


def _rule(of: GroupKind, profile: str) -> Rule:
    if rule := profile_rules(profile).get(of) or bundled_rules().get(of):
        return rule
    match profiles_of(of):
        case (only,):
            return profile_rules(only)[of]
        case ():
            what = "Argo CD has a built-in health check for this kind, so argosy has no script for it"
            raise UserError(f"{what}; leave it out", where=f"--kinds {of}")
        case several:
            raise UserError(f"has no profile {profile}; choose one of {', '.join(several)}", where=f"--kinds {of}")


def profile_with(of: GroupKind, script: str) -> str:
    """Return the profile that a script is from, or "" if it is not a bundled script."""
    found = (name for name in profiles_of(of) if profile_rules(name)[of].script.strip() == script.strip())
    return next(found, "")


def kind_in(entry: Any) -> GroupKind | None:
    """Return the kind of a health check entry, or None if the entry is malformed."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("kind"), str):
        return None
    return GroupKind(str(entry.get("group") or ""), entry["kind"])


def scripts_of_entries(entries: Sequence[Any]) -> dict[GroupKind, str]:
    # argo: if one kind has two entries, the last one wins
    return {of: str(entry.get("check") or "") for entry in entries if (of := kind_in(entry))}


def scripts_of_data(data: Mapping[str, str]) -> dict[GroupKind, str]:
    """Read the checks in argocd-cm that use one key per kind."""
    found = {}
    for key, script in data.items():
        if key.startswith(KEY_PREFIX):
            group, _, kind = key.removeprefix(KEY_PREFIX).rpartition("_")
            found[GroupKind(group, kind)] = script
    return found


def changes(there: Mapping[GroupKind, str], wanted: Iterable[Check]) -> tuple[Change, ...]:
    return tuple(Change(check, there.get(check.of)) for check in wanted)


def concerned(there: Iterable[GroupKind], wanted: Iterable[Check]) -> list[GroupKind]:
    """List existing kinds that the request touches; if it touches a KServe kind, every KServe kind counts."""
    asked = {check.of for check in wanted}
    whole_groups = {of.group for of in asked} & {KSERVE}
    return [of for of in there if of in asked or of.group in whole_groups]


def merged(entries: Sequence[Any], wanted: Iterable[Check]) -> list[Any]:
    """Merge checks into the list: foreign entries stay unchanged, ours are replaced in place, new ones are appended."""
    left = {check.of: check for check in wanted}
    ours = frozenset(left)
    result: list[Any] = []
    for entry in entries:
        of = kind_in(entry)
        if of not in ours:
            result.append(entry)
        elif of in left:
            result.append({**entry, "check": left.pop(of).script})
    return [*result, *(check.entry for check in left.values())]


def missing_from(data: Mapping[str, str], wanted: Iterable[Check]) -> list[Check]:
    """List the checks whose exact script is not in argocd-cm."""
    return [check for check in wanted if data.get(check.key) != check.script]
