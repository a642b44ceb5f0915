"""The cluster as a sync of one Application may change it.

In: a cluster, an Application, its project and the rules. Out: the same cluster, with the rights of the service account
that the project names. Never: the engine's own rights where an account is needed and none matches.
"""

from __future__ import annotations

from argosy.kube.client import User
from argosy.model.application import Application
from argosy.model.project import Project
from argosy.pipeline.doorway import Doorway
from argosy.pipeline.rules import Rules


def user_to_impersonate(app: Application, project: Project, rules: Rules) -> str:
    """Empty: nobody. Raises NoServiceAccount."""
    known = rules.clusters.find(app.destination)
    server = known.server if known is not None else app.destination.known.server
    return rules.impersonation.user_for(project, app, server)


def impersonate(cluster: Doorway, app: Application, project: Project, rules: Rules) -> Doorway:
    """Raises NoServiceAccount."""
    user = user_to_impersonate(app, project, rules)
    return cluster.acting_as(User(user)) if user else cluster
