"""Finds the scripts of the actions of a kind.

In: the actions of the settings, and the folders `rules/<group>/<Kind>/actions`. Out: scripts with their origin.
Never: runs one; builds a path from the content of a manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from argosy.gitops.health.bundled import RULES
from argosy.gitops.health.kind_keys import key_text
from argosy.gitops.health.settings import ActionsCheck
from argosy.kube.names import GroupKind


class Script(NamedTuple):
    """Text and location of a script. Bundled ones may run in this process."""

    text: str
    where: str
    is_ours: bool


@dataclass(frozen=True, slots=True)
class ActionScripts:
    """The discovery scripts of a kind, in order of precedence, and its action scripts by name."""

    discoveries: tuple[Script, ...] = ()
    definitions: Mapping[str, Script] = field(default_factory=dict)


def scripts_for(group: str, kind: str, checks: Iterable[ActionsCheck]) -> ActionScripts:
    """Return the scripts of the settings and the bundled ones for this kind."""
    bundled = bundled_actions().get(GroupKind(group, kind), ActionScripts())
    # argo: actions need an exact key; wildcards work for health only
    check = next((check for check in checks if check.pattern == key_text(group, kind)), None)
    if check is None:
        return bundled
    discoveries = (Script(check.discovery, check.where, is_ours=False),)
    users = {action: Script(text, check.where, is_ours=False) for action, text in check.definitions.items()}
    # argo: without mergeBuiltinActions the bundled actions are not listed, but a discovery may name and run them
    return ActionScripts(
        discoveries + (bundled.discoveries if check.merge_builtin else ()), {**bundled.definitions, **users}
    )


@cache
def bundled_actions() -> Mapping[GroupKind, ActionScripts]:
    """Return the bundled actions, by group and kind."""
    return actions_below(RULES)


def actions_below(folder: Path) -> dict[GroupKind, ActionScripts]:
    """Load the actions of a folder in Argo CD's layout. Core kinds have no folder for their group."""
    found = {}
    for discovery in sorted(folder.glob("**/actions/discovery.lua")):
        *groups, kind = discovery.parent.parent.relative_to(folder).parts
        definitions = {
            script.parent.name: _ours(script, folder) for script in sorted(discovery.parent.glob("*/action.lua"))
        }
        found[GroupKind("/".join(groups), kind)] = ActionScripts((_ours(discovery, folder),), definitions)
    return found


def _ours(file: Path, folder: Path) -> Script:
    return Script(file.read_text(encoding="utf-8"), f"bundled {file.relative_to(folder).as_posix()}", is_ours=True)
