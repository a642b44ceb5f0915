"""Validates an Application against its project before it is written.

In: an ApplicationService, a manifest. Out: nothing, or an error that names the rule. Never: reads Git: the engine may
reach other hosts than this machine.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import ClusterError, PolicyError, UserError
from argosy.gitops.application import read_application
from argosy.gitops.application_client.client import Desk
from argosy.gitops.policy.projects import violations
from argosy.gitops.reconciler.settings_watch import PROJECT

ANYWAY = "skip this check with --validate=false"


async def check_project(desk: Desk, manifest: dict[str, Any]) -> None:
    """argo: refuse a project that does not exist or does not permit the Application."""
    from argosy.gitops.application_client.reader import open_reader

    app = read_application(manifest)
    try:
        await desk.cluster.list(PROJECT, namespace=desk.control)
    except ClusterError:
        return  # no permission to read projects: left to the engine
    async with open_reader(desk) as reader:
        project = reader.rules.projects.get(app.project)
        app = reader.rules.clusters.placed(app)  # rules may use the cluster's name or its URL
    if project is None and app.project == "default":
        return  # the engine creates it
    found = violations(project, app, control_namespace=desk.control)
    if project is None:
        raise UserError(f"{found[0]}; list projects: argosy proj list; or {ANYWAY}")
    if found:
        raise PolicyError(f"{', '.join(found)}; see: argosy proj list, or {ANYWAY}")
