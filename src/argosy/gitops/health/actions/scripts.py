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

from argosy.gitops.health.bundled_rules import RULES_FOLDER
from argosy.gitops.health.setting_kind_names import render_kind
from argosy.gitops.health.settings import CustomActions
from argosy.kube.resource_key import GroupKind


class ActionScript(NamedTuple):
    """Text and location of a script. Bundled ones may run in this process."""

    text: str
    where: str
    is_bundled: bool


@dataclass(frozen=True, slots=True)
class ActionScripts:
    """The discovery scripts of a kind, in order of precedence, and its action scripts by name."""

    discoveries: tuple[ActionScript, ...] = ()
    definitions: Mapping[str, ActionScript] = field(default_factory=dict)


def find_action_scripts(group: str, kind: str, checks: Iterable[CustomActions]) -> ActionScripts:
    """Return the scripts of the settings and the bundled ones for this kind."""
    bundled = load_bundled_actions().get(GroupKind(group, kind), ActionScripts())
    # argo: actions need an exact key; wildcards work for health only
    check = next((check for check in checks if check.pattern == render_kind(group, kind)), None)
    if check is None:
        return bundled
    discoveries = (ActionScript(check.discovery, check.where, is_bundled=False),)
    user_definitions = {
        action: ActionScript(text, check.where, is_bundled=False) for action, text in check.definitions.items()
    }
    # argo: without mergeBuiltinActions the bundled actions are not listed, but a discovery may name and run them
    return ActionScripts(
        discoveries + (bundled.discoveries if check.merge_builtin else ()), {**bundled.definitions, **user_definitions}
    )


@cache
def load_bundled_actions() -> Mapping[GroupKind, ActionScripts]:
    """Return the bundled actions, by group and kind."""
    return load_actions(RULES_FOLDER)


def load_actions(folder: Path) -> dict[GroupKind, ActionScripts]:
    """Load the actions of a folder in Argo CD's layout. Core kinds have no folder for their group."""
    actions = {}
    for discovery in sorted(folder.glob("**/actions/discovery.lua")):
        *groups, kind = discovery.parent.parent.relative_to(folder).parts
        definitions = {
            script.parent.name: _load_script(script, folder) for script in sorted(discovery.parent.glob("*/action.lua"))
        }
        actions[GroupKind("/".join(groups), kind)] = ActionScripts((_load_script(discovery, folder),), definitions)
    return actions


def _load_script(file: Path, folder: Path) -> ActionScript:
    return ActionScript(
        file.read_text(encoding="utf-8"), f"bundled {file.relative_to(folder).as_posix()}", is_bundled=True
    )
