"""Resource actions, defined by Lua scripts as in Argo CD.

In: a live manifest, the name of an action and its parameters. Out: the available actions; the objects that an action
creates or patches. Never: writes to a cluster; runs a user's script in this process.
"""

from __future__ import annotations

from argosy.gitops.health.actions.action_results import (
    ActionImpact,
    ResourceAction,
    merge_actions,
    read_actions,
    read_impacts,
)
from argosy.gitops.health.actions.patches import build_patch, split_status
from argosy.gitops.health.actions.runner import ActionRunner
from argosy.gitops.health.actions.scripts import ActionScripts, load_bundled_actions

__all__ = [
    "ActionImpact",
    "ActionRunner",
    "ActionScripts",
    "ResourceAction",
    "build_patch",
    "load_bundled_actions",
    "merge_actions",
    "read_actions",
    "read_impacts",
    "split_status",
]
