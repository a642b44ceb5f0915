"""Discovers and runs the actions of a live object.

In: a live manifest, the name of an action, its parameters. Out: ResourceActions, or ActionImpacts; a UserError names
the object, the action, the problem and the available actions. Never: runs a user's script in this process; applies an
impact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.errors import UserError
from argosy.gitops.health.actions.action_results import (
    ActionImpact,
    ResourceAction,
    merge_actions,
    read_actions,
    read_impacts,
)
from argosy.gitops.health.actions.scripts import ActionScript, ActionScripts, find_action_scripts
from argosy.gitops.health.lua import EVALUATE_FUNCTION, BatchRunner, read_script_result, run_script
from argosy.gitops.health.settings import CustomActions
from argosy.kube.objects import Manifest, key_of


class ActionRunner:
    """Runs the actions in force: those of the settings, and the bundled ones."""

    def __init__(self, pool: BatchRunner, checks: Iterable[CustomActions] = ()) -> None:
        self._pool = pool
        self._checks = tuple(checks)

    async def discover(self, manifest: Manifest) -> list[ResourceAction]:
        """Return the available actions of the object, sorted by name."""
        actions: list[ResourceAction] = []
        for script in self._find_scripts(manifest).discoveries:
            try:
                actions = merge_actions(actions, read_actions(await self._run_script(script, manifest, {})))
            except UserError as error:
                message = f"cannot list its actions: {error} ({script.where})"
                raise UserError(message, where=_object_name(manifest)) from error
        return actions

    async def run(self, manifest: Manifest, action: str, parameters: Mapping[str, str]) -> list[ActionImpact]:
        """Return the changes that the action requests. argo: a disabled action can be run, too."""
        definitions = self._find_scripts(manifest).definitions
        script = definitions.get(action)
        if script is None:
            available = (
                f"its actions are {', '.join(sorted(definitions))}" if definitions else "its kind has no actions"
            )
            raise UserError(f"no action {action!r}; {available}", where=_object_name(manifest))
        try:
            return read_impacts(await self._run_script(script, manifest, parameters), manifest)
        except UserError as error:
            raise UserError(
                f"action {action!r} failed: {error} ({script.where})", where=_object_name(manifest)
            ) from error

    def _find_scripts(self, manifest: Manifest) -> ActionScripts:
        key = key_of(manifest)
        return find_action_scripts(key.group, key.kind, self._checks)

    async def _run_script(self, script: ActionScript, manifest: Manifest, parameters: Mapping[str, str]) -> Any:
        if script.is_bundled:
            return run_script(script.text, manifest, params=parameters)
        payload = {"script": script.text, "manifest": manifest, "params": dict(parameters), "facts": {}, "open": False}
        results = await self._pool.run_batch(EVALUATE_FUNCTION, [payload])
        return read_script_result(results[0]).value


def _object_name(manifest: Manifest) -> str:
    return str(key_of(manifest))
