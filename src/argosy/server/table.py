"""All routes, and all live parts of pages: one line for each part, in the order of the alphabet.

In: ROUTES and LIVE of each part. Out: TABLE and LIVES. Never: a route that is made elsewhere.
"""

from __future__ import annotations

from typing import Final

from argosy.server import files
from argosy.server.api import (
    about,
    account,
    applications,
    applications_about,
    applications_content,
    applications_logs,
    applications_objects,
    applications_operations,
    applications_writing,
    applicationsets,
    badge,
    certificates,
    client_settings,
    clusters,
    docs,
    metrics,
    notifications,
    openapi,
    own_applications,
    own_finding,
    own_models,
    own_notebooks,
    own_overview,
    projects,
    repositories,
    repository_content,
    role_tokens,
    session,
    stream_trees,
    streams,
    webhook,
)
from argosy.server.events import route as live
from argosy.server.events.live import Live
from argosy.server.pages import (
    activity,
    doctor,
    environments,
    living,
    login,
    model,
    models,
    notebook,
    notebooks,
    preferences,
    settings,
    settings_accounts,
    settings_clusters,
    settings_health,
    settings_projects,
    settings_repositories,
)
from argosy.server.pages.application import routes as pages_of_applications
from argosy.server.pages.application import watching
from argosy.server.routes import Route

TABLE: Final[tuple[Route, ...]] = (
    *about.ROUTES,
    *account.ROUTES,
    *activity.ROUTES,
    *applications.ROUTES,
    *applications_about.ROUTES,
    *applications_content.ROUTES,
    *applications_logs.ROUTES,
    *applications_objects.ROUTES,
    *applications_operations.ROUTES,
    *applications_writing.ROUTES,
    *applicationsets.ROUTES,
    *badge.ROUTES,
    *certificates.ROUTES,
    *client_settings.ROUTES,
    *clusters.ROUTES,
    *docs.ROUTES,
    *doctor.ROUTES,
    *environments.ROUTES,
    *files.ROUTES,
    *live.ROUTES,
    *login.ROUTES,
    *metrics.ROUTES,
    *model.ROUTES,
    *models.ROUTES,
    *notebook.ROUTES,
    *notebooks.ROUTES,
    *notifications.ROUTES,
    *openapi.ROUTES,
    *own_applications.ROUTES,
    *own_finding.ROUTES,
    *own_models.ROUTES,
    *own_notebooks.ROUTES,
    *own_overview.ROUTES,
    *pages_of_applications.ROUTES,
    *preferences.ROUTES,
    *projects.ROUTES,
    *repositories.ROUTES,
    *repository_content.ROUTES,
    *role_tokens.ROUTES,
    *session.ROUTES,
    *settings.ROUTES,
    *settings_accounts.ROUTES,
    *settings_clusters.ROUTES,
    *settings_health.ROUTES,
    *settings_projects.ROUTES,
    *settings_repositories.ROUTES,
    *stream_trees.ROUTES,
    *streams.ROUTES,
    *webhook.ROUTES,
)

LIVES: Final[tuple[Live, ...]] = (*living.LIVE, *watching.LIVE)
