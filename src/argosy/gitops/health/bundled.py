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

from argosy.gitops.health.kind_keys import key_text
from argosy.gitops.health.table_rules import to_lua
from argosy.kube.names import GroupKind
from argosy.kube.objects import load

RULES: Final = Path(__file__).parent / "rules"
PROFILES: Final = Path(__file__).parent / "profiles"
USUAL_PROFILE: Final = "strict"  # for checks installed into an Argo CD
# Profile name of the rule in `rules`, for kinds with several profiles.
DEFAULT_PROFILES: Final = {
    GroupKind("serving.kserve.io", "InferenceService"): "argocd",
    GroupKind("mlops.mlops.dev", "NotebookValidationJob"): "basic",
}


class Origin(enum.StrEnum):
    """Where a rule comes from, in order of precedence."""

    ARGOCD_CM = "argocd-cm"
    BUNDLED = "bundled"
    BUILT_IN = "built-in"
    FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Rule:
    """The health rule of one kind: a script, or a Python function for built-in kinds."""

    group: str
    kind: str
    origin: Origin
    profile: str = ""
    script: str = field(default="", repr=False)
    open_libs: bool = False
    where: str = ""  # the key of a ConfigMap, or the file

    @property
    def name(self) -> str:
        """Name of the rule for messages."""
        place = f" {self.where}" if self.origin is Origin.ARGOCD_CM else f" {key_text(self.group, self.kind)}"
        return f"{self.origin}{place}{f' ({self.profile})' if self.profile else ''}"


@cache
def bundled_rules() -> Mapping[GroupKind, Rule]:
    """Return the default rules, by kind."""
    return {of: _rule(folder, of, DEFAULT_PROFILES.get(of, "")) for of, folder in _folders(RULES)}


@cache
def profile_rules(profile: str) -> Mapping[GroupKind, Rule]:
    """Return the rules of a profile, by kind; empty if there is no such profile."""
    chosen = {of: rule for of, rule in bundled_rules().items() if rule.profile == profile and profile}
    if profile in profiles():
        chosen |= {of: _rule(folder, of, profile) for of, folder in _folders(PROFILES / profile)}
    return chosen


@cache
def profiles() -> tuple[str, ...]:
    """Return the names of all profiles."""
    return tuple(sorted({*DEFAULT_PROFILES.values(), *(folder.name for folder in PROFILES.iterdir())}))


def profiles_of(of: GroupKind) -> tuple[str, ...]:
    """Return the profiles that have a rule for this kind."""
    return tuple(profile for profile in profiles() if of in profile_rules(profile))


def _folders(tree: Path) -> Iterator[tuple[GroupKind, Path]]:
    """Yield the folders with a rule, by kind. Core kinds have no folder for their group."""
    for file in sorted(tree.rglob("health.*")):
        if file.name in ("health.lua", "health.yaml"):
            *group, kind = file.parent.relative_to(tree).parts
            yield GroupKind("/".join(group), kind), file.parent


def _rule(folder: Path, of: GroupKind, profile: str) -> Rule:
    script, table = folder / "health.lua", folder / "health.yaml"
    text = script.read_text() if script.exists() else to_lua(of.kind, load(table.read_text()))
    where = str(folder.relative_to(RULES.parent))
    # argo: bundled scripts have all libraries
    return Rule(*of, Origin.BUNDLED, profile, text, open_libs=True, where=where)
