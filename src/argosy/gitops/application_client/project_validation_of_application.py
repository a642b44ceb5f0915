"""Validates an Application against its project before it is written.

In: an ApplicationService, a manifest. Out: nothing, or an error that names the rule. Never: reads Git: the engine may
reach other hosts than this machine.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import ClusterError, PolicyError, UserError
from argosy.gitops.application import read_application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.policy.projects import list_violations
from argosy.kube.well_known_kinds import APP_PROJECT

SKIP_ADVICE = "skip this check with --validate=false"


async def check_project_permits(service: ApplicationService, manifest: dict[str, Any]) -> None:
    """argo: refuse a project that does not exist or does not permit the Application."""
    from argosy.gitops.application_client.app_state_reader import open_reader

    app = read_application(manifest)
    try:
        await service.cluster.list(APP_PROJECT, namespace=service.control_namespace)
    except ClusterError:
        return  # no permission to read projects: left to the engine
    async with open_reader(service) as reader:
        project = reader.reconciler_settings.projects.get(app.project)
        app = reader.reconciler_settings.clusters.resolve_destination(
            app
        )  # rules may use the cluster's name or its URL
    if project is None and app.project == "default":
        return  # the engine creates it
    problems = list_violations(project, app, control_namespace=service.control_namespace)
    if project is None:
        raise UserError(f"{problems[0]}; list projects: argosy proj list; or {SKIP_ADVICE}")
    if problems:
        raise PolicyError(f"{', '.join(problems)}; see: argosy proj list, or {SKIP_ADVICE}")
