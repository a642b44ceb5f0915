"""All routes, and all live parts of pages: one line for each part, in the order of the alphabet.

In: ROUTES and LIVE of each part. Out: TABLE and LIVES. Never: a route that is made elsewhere.
"""

from __future__ import annotations

from typing import Final

from argosy.web import static_files
from argosy.web.api import (
    account,
    api_page,
    applications,
    applications_content,
    applications_info,
    applications_logs,
    applications_objects,
    applications_operations,
    applications_write,
    applicationsets,
    argosy_applications,
    argosy_models,
    argosy_notebooks,
    badge,
    certificates,
    client_settings,
    clusters,
    environments_and_activity,
    metrics,
    notifications,
    openapi,
    projects,
    repositories,
    repository_content,
    role_tokens,
    search_and_doctor,
    session,
    stream_trees,
    streams,
    version_and_health,
    webhook,
)
from argosy.web.live_updates import event_stream
from argosy.web.live_updates.live_parts import Live
from argosy.web.pages import (
    activity,
    doctor,
    environments,
    live_parts,
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
from argosy.web.pages.application import live_parts as application_live_parts
from argosy.web.pages.application import routes as pages_of_applications
from argosy.web.route import Route

TABLE: Final[tuple[Route, ...]] = (
    *version_and_health.ROUTES,
    *account.ROUTES,
    *activity.ROUTES,
    *applications.ROUTES,
    *applications_info.ROUTES,
    *applications_content.ROUTES,
    *applications_logs.ROUTES,
    *applications_objects.ROUTES,
    *applications_operations.ROUTES,
    *applications_write.ROUTES,
    *applicationsets.ROUTES,
    *badge.ROUTES,
    *certificates.ROUTES,
    *client_settings.ROUTES,
    *clusters.ROUTES,
    *api_page.ROUTES,
    *doctor.ROUTES,
    *environments.ROUTES,
    *static_files.ROUTES,
    *event_stream.ROUTES,
    *login.ROUTES,
    *metrics.ROUTES,
    *model.ROUTES,
    *models.ROUTES,
    *notebook.ROUTES,
    *notebooks.ROUTES,
    *notifications.ROUTES,
    *openapi.ROUTES,
    *argosy_applications.ROUTES,
    *search_and_doctor.ROUTES,
    *argosy_models.ROUTES,
    *argosy_notebooks.ROUTES,
    *environments_and_activity.ROUTES,
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

LIVES: Final[tuple[Live, ...]] = (*live_parts.LIVE, *application_live_parts.LIVE)
