"""Impersonates the service account of a project for the writes of a sync.

In: a cluster client, an Application, its project and the settings. Out: the same client with the rights of the service
account that the project names. Never: uses the controller's own rights if an account is required and none matches.
"""

from __future__ import annotations

from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.kube.client import User


def user_to_impersonate(app: Application, project: Project, settings: ReconcilerSettings) -> str:
    """Return the user to impersonate; empty for none. Raises NoServiceAccount."""
    cluster = settings.clusters.find(app.destination)
    server = cluster.server if cluster is not None else app.destination.with_in_cluster_alias.server
    return settings.impersonation.find_user(project, app, server)


def impersonate_service_account(
    cluster: ReadYourWritesClient, app: Application, project: Project, settings: ReconcilerSettings
) -> ReadYourWritesClient:
    """Raises NoServiceAccount."""
    user = user_to_impersonate(app, project, settings)
    return cluster.acting_as(User(user)) if user else cluster
