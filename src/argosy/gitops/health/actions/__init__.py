"""Resource actions: what people can do to a live manifest beside syncing it, as Argo CD's Lua scripts say.

In: a live manifest, an action's name and its parameters. Out: which actions there are; what an action would create or
patch. Never: writes to a cluster; runs a user's script in this process.
"""

from __future__ import annotations

from argosy.gitops.health.actions.action_results import Action, Impact, actions_of, impacts_of, merged
from argosy.gitops.health.actions.patches import patch_of, split_status
from argosy.gitops.health.actions.runner import Actions
from argosy.gitops.health.actions.scripts import ActionScripts, bundled_actions

__all__ = [
    "Action",
    "ActionScripts",
    "Actions",
    "Impact",
    "actions_of",
    "bundled_actions",
    "impacts_of",
    "merged",
    "patch_of",
    "split_status",
]
