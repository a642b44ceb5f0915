"""Which scripts serve a kind's actions.

In: the actions of the settings, and the folders `rules/<group>/<Kind>/actions`. Out: scripts, each with who wrote it.
Never: runs one; makes a path of what a manifest says.
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
    """A script's text and where it stands. Ours may run in this process."""

    text: str
    where: str
    is_ours: bool


@dataclass(frozen=True, slots=True)
class ActionScripts:
    """The discovery scripts of a kind, the most important first, and its actions by name."""

    discoveries: tuple[Script, ...] = ()
    definitions: Mapping[str, Script] = field(default_factory=dict)


def scripts_for(group: str, kind: str, checks: Iterable[ActionsCheck]) -> ActionScripts:
    """What serves this kind, all told."""
    bundled = bundled_actions().get(GroupKind(group, kind), ActionScripts())
    # argo: for actions only the exact key counts; patterns with wildcards are for health
    check = next((check for check in checks if check.pattern == key_text(group, kind)), None)
    if check is None:
        return bundled
    discoveries = (Script(check.discovery, check.where, is_ours=False),)
    users = {action: Script(text, check.where, is_ours=False) for action, text in check.definitions.items()}
    # argo: without mergeBuiltinActions the bundled ones are not shown, yet a discovery may name them and they run
    return ActionScripts(
        discoveries + (bundled.discoveries if check.merge_builtin else ()), {**bundled.definitions, **users}
    )


@cache
def bundled_actions() -> Mapping[GroupKind, ActionScripts]:
    """The actions that come with argosy, by group and kind."""
    return actions_below(RULES)


def actions_below(folder: Path) -> dict[GroupKind, ActionScripts]:
    """The actions of a tree in Argo CD's layout. A kind of the core group has no folder for its group."""
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
