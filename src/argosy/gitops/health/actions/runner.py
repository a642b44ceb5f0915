"""Discovers and runs the actions of a live object.

In: a live manifest, the name of an action, its parameters. Out: ResourceActions, or ActionImpacts; a UserError names
the object, the action, the problem and the available actions. Never: runs a user's script in this process; applies an
impact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.errors import UserError
from argosy.gitops.health.actions.action_results import Action, Impact, actions_of, impacts_of, merged
from argosy.gitops.health.actions.scripts import ActionScripts, Script, scripts_for
from argosy.gitops.health.lua import EVALUATE, Confined, answer_of, run_value
from argosy.gitops.health.settings import ActionsCheck
from argosy.kube.objects import Manifest, key_of


class Actions:
    """Runs the actions in force: those of the settings, and the bundled ones."""

    def __init__(self, pool: Confined, checks: Iterable[ActionsCheck] = ()) -> None:
        self._pool = pool
        self._checks = tuple(checks)

    async def discover(self, manifest: Manifest) -> list[Action]:
        """Return the available actions of the object, sorted by name."""
        found: list[Action] = []
        for script in self._scripts(manifest).discoveries:
            try:
                found = merged(found, actions_of(await self._value(script, manifest, {})))
            except UserError as error:
                told = f"cannot list its actions: {error} ({script.where})"
                raise UserError(told, where=_name(manifest)) from error
        return found

    async def run(self, manifest: Manifest, action: str, parameters: Mapping[str, str]) -> list[Impact]:
        """Return the changes that the action requests. argo: a disabled action can be run, too."""
        definitions = self._scripts(manifest).definitions
        script = definitions.get(action)
        if script is None:
            known = f"its actions are {', '.join(sorted(definitions))}" if definitions else "its kind has no actions"
            raise UserError(f"no action {action!r}; {known}", where=_name(manifest))
        try:
            return impacts_of(await self._value(script, manifest, parameters), manifest)
        except UserError as error:
            raise UserError(f"action {action!r} failed: {error} ({script.where})", where=_name(manifest)) from error

    def _scripts(self, manifest: Manifest) -> ActionScripts:
        key = key_of(manifest)
        return scripts_for(key.group, key.kind, self._checks)

    async def _value(self, script: Script, manifest: Manifest, parameters: Mapping[str, str]) -> Any:
        if script.is_ours:
            return run_value(script.text, manifest, params=parameters)
        payload = {"script": script.text, "manifest": manifest, "params": dict(parameters), "facts": {}, "open": False}
        answers = await self._pool.run_batch(EVALUATE, [payload])
        return answer_of(answers[0]).value


def _name(manifest: Manifest) -> str:
    return str(key_of(manifest))
