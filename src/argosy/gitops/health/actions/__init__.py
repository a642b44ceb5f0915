"""Resource actions, defined by Lua scripts as in Argo CD.

In: a live manifest, the name of an action and its parameters. Out: the available actions; the objects that an action
creates or patches. Never: writes to a cluster; runs a user's script in this process.
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
