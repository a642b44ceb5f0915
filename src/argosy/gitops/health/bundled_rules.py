"""Loads the bundled health rules, stored next to this file in Argo CD's folder layout.

In: the folders `rules` and `profiles`. Out: Rules. Never: reads a rule before it is needed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from argosy.gitops.health.setting_kind_names import render_kind
from argosy.gitops.health.table_rule_compiler import table_to_lua
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB

RULES_FOLDER: Final = Path(__file__).parent / "rules"
PROFILES_FOLDER: Final = Path(__file__).parent / "profiles"
DEFAULT_INSTALL_PROFILE: Final = "strict"  # for checks installed into an Argo CD
# Profile name of the rule in `rules`, for kinds with several profiles.
DEFAULT_PROFILES: Final = {
    INFERENCE_SERVICE: "argocd",
    NOTEBOOK_JOB: "basic",
}


class RuleOrigin(enum.StrEnum):
    """Where a rule comes from, in order of precedence."""

    ARGOCD_CM = "argocd-cm"
    BUNDLED = "bundled"
    BUILT_IN = "built-in"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class HealthRule:
    """The health rule of one kind: a script, or a Python function for built-in kinds."""

    group: str
    kind: str
    origin: RuleOrigin
    profile: str = ""
    script: str = field(default="", repr=False)
    open_libs: bool = False
    where: str = ""  # the key of a ConfigMap, or the file

    @property
    def name(self) -> str:
        """Name of the rule for messages."""
        subject = f" {self.where}" if self.origin is RuleOrigin.ARGOCD_CM else f" {render_kind(self.group, self.kind)}"
        return f"{self.origin}{subject}{f' ({self.profile})' if self.profile else ''}"


@cache
def load_bundled_rules() -> Mapping[GroupKind, HealthRule]:
    """Return the default rules, by kind."""
    return {
        group_kind: _load_rule(folder, group_kind, DEFAULT_PROFILES.get(group_kind, ""))
        for group_kind, folder in _list_rule_folders(RULES_FOLDER)
    }


@cache
def load_profile_rules(profile: str) -> Mapping[GroupKind, HealthRule]:
    """Return the rules of a profile, by kind; empty if there is no such profile."""
    rules = {
        group_kind: rule for group_kind, rule in load_bundled_rules().items() if rule.profile == profile and profile
    }
    if profile in list_profiles():
        rules |= {
            group_kind: _load_rule(folder, group_kind, profile)
            for group_kind, folder in _list_rule_folders(PROFILES_FOLDER / profile)
        }
    return rules


@cache
def list_profiles() -> tuple[str, ...]:
    """Return the names of all profiles."""
    return tuple(sorted({*DEFAULT_PROFILES.values(), *(folder.name for folder in PROFILES_FOLDER.iterdir())}))


def list_profiles_of_kind(group_kind: GroupKind) -> tuple[str, ...]:
    """Return the profiles that have a rule for this kind."""
    return tuple(profile for profile in list_profiles() if group_kind in load_profile_rules(profile))


def _list_rule_folders(root: Path) -> Iterator[tuple[GroupKind, Path]]:
    """Yield the folders with a rule, by kind. Core kinds have no folder for their group."""
    for file in sorted(root.rglob("health.*")):
        if file.name in ("health.lua", "health.yaml"):
            *group, kind = file.parent.relative_to(root).parts
            yield GroupKind("/".join(group), kind), file.parent


def _load_rule(folder: Path, group_kind: GroupKind, profile: str) -> HealthRule:
    script, table = folder / "health.lua", folder / "health.yaml"
    text = script.read_text() if script.exists() else table_to_lua(group_kind.kind, read_yaml(table.read_text()))
    where = str(folder.relative_to(RULES_FOLDER.parent))
    # argo: bundled scripts have all libraries
    return HealthRule(*group_kind, RuleOrigin.BUNDLED, profile, text, open_libs=True, where=where)
