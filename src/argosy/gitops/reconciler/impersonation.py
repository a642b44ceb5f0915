"""Impersonates the service account of a project for the writes of a sync.

In: a cluster client, an Application, its project and the settings. Out: the same client with the rights of the service
account that the project names. Never: uses the controller's own rights if an account is required and none matches.
"""

from __future__ import annotations

from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.settings import Rules
from argosy.kube.client import User


def user_to_impersonate(app: Application, project: Project, rules: Rules) -> str:
    """Return the user to impersonate; empty for none. Raises NoServiceAccount."""
    known = rules.clusters.find(app.destination)
    server = known.server if known is not None else app.destination.known.server
    return rules.impersonation.user_for(project, app, server)


def impersonate(cluster: Doorway, app: Application, project: Project, rules: Rules) -> Doorway:
    """Raises NoServiceAccount."""
    user = user_to_impersonate(app, project, rules)
    return cluster.acting_as(User(user)) if user else cluster
