"""All routes and live pages of the web server, and what features keep between requests, built once per server.

In: the state that routes share with the middleware. Out: RouteTable. Never: defines a route; is imported before a
server starts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from argosy.features.accounts import api as accounts_api
from argosy.features.accounts import login_page, session_api
from argosy.features.accounts import page as accounts_page
from argosy.features.activity import api as activity_api
from argosy.features.activity import page as activity_page
from argosy.features.activity.visible_activity import ActivitySources
from argosy.features.applications import badge_api, live_page_change_filters, page_routes, webhook_api
from argosy.features.applications.edit import api as edit_api
from argosy.features.applications.list.page import ListCaches
from argosy.features.applications.logs import api as logs_api
from argosy.features.applications.objects import api as objects_api
from argosy.features.applications.read import api as read_api
from argosy.features.applications.read import events_windows_api, manifests_tree_api, sent_files_api
from argosy.features.applications.streams import api as streams_api
from argosy.features.applications.streams import tree_api
from argosy.features.applications.sync import api as sync_api
from argosy.features.applicationsets import api as applicationsets_api
from argosy.features.clusters import api as clusters_api
from argosy.features.clusters import page as clusters_page
from argosy.features.clusters.connection_state import ClusterStateCache
from argosy.features.doctor import api as doctor_api
from argosy.features.doctor import page as doctor_page
from argosy.features.doctor.error_finding_cache import ExaminationCache
from argosy.features.explain import api as explain_api
from argosy.features.health_checks import page as health_checks_page
from argosy.features.models import api as models_api
from argosy.features.models import detail_page as models_detail_page
from argosy.features.models import list_page as models_list_page
from argosy.features.notebooks import api as notebooks_api
from argosy.features.notebooks import list_page as notebooks_list_page
from argosy.features.notebooks import run_detail_page as notebooks_detail_page
from argosy.features.notebooks.cell_sources_from_git import NotebookSources
from argosy.features.notifications import api as notifications_api
from argosy.features.projects import api as projects_api
from argosy.features.projects import page as projects_page
from argosy.features.projects import role_tokens_api
from argosy.features.promote import api as promote_api
from argosy.features.promote import page as promote_page
from argosy.features.promote.visible_board import EnvironmentBoards
from argosy.features.repositories import api as repositories_api
from argosy.features.repositories import certificates_and_gpg_keys_api, content_api
from argosy.features.repositories import page as repositories_page
from argosy.features.repositories.connection_test import RepositoryStateCache
from argosy.features.search import api as search_api
from argosy.web import display_preference_form, settings_overview_page, static_files
from argosy.web.api import api_docs_page, metrics, openapi, settings_endpoint, version_and_health
from argosy.web.api.openapi import OpenApiDocument
from argosy.web.live_updates import event_stream
from argosy.web.live_updates.live_page_definitions import LivePage
from argosy.web.route import Route
from argosy.web.server_audit_counters_and_limits import ServerState


class RouteTable(NamedTuple):
    routes: tuple[Route, ...]
    live_pages: tuple[LivePage, ...]


@dataclass(frozen=True)
class SharedState:
    """What several modules of routes keep between requests."""

    server: ServerState
    openapi: OpenApiDocument
    activity: ActivitySources
    examination_lock: asyncio.Lock  # one examination of the doctor at a time
    list_caches: ListCaches
    cluster_states: ClusterStateCache
    repository_states: RepositoryStateCache
    notebook_sources: NotebookSources


def build_route_table(server: ServerState) -> RouteTable:
    routes: list[Route] = []
    lock = asyncio.Lock()
    shared = SharedState(
        server=server,
        openapi=OpenApiDocument(lambda: routes),
        activity=ActivitySources(EnvironmentBoards(), server.audit_trail),
        examination_lock=lock,
        list_caches=ListCaches(ExaminationCache(lock)),
        cluster_states=ClusterStateCache(),
        repository_states=RepositoryStateCache(),
        notebook_sources=NotebookSources(),
    )
    routes += _build_routes(shared)
    return RouteTable(tuple(routes), _build_live_pages(shared))


def _build_routes(shared: SharedState) -> tuple[Route, ...]:
    return (
        *version_and_health.ROUTES,
        *accounts_api.ROUTES,
        *activity_page.build_routes(shared.activity),
        *read_api.build_routes(shared.server.concurrency_limits),
        *events_windows_api.ROUTES,
        *manifests_tree_api.ROUTES,
        *sent_files_api.build_routes(shared.server.concurrency_limits),
        *logs_api.ROUTES,
        *objects_api.ROUTES,
        *sync_api.ROUTES,
        *edit_api.ROUTES,
        *applicationsets_api.ROUTES,
        *badge_api.ROUTES,
        *certificates_and_gpg_keys_api.ROUTES,
        *settings_endpoint.ROUTES,
        *clusters_api.build_routes(shared.cluster_states),
        *api_docs_page.build_routes(shared.openapi),
        *doctor_page.build_routes(shared.examination_lock),
        *promote_page.build_routes(shared.activity.boards),
        *static_files.ROUTES,
        *event_stream.build_routes(shared.server.concurrency_limits),
        *login_page.ROUTES,
        *metrics.build_routes(shared.server),
        *models_detail_page.ROUTES,
        *models_list_page.ROUTES,
        *notebooks_detail_page.build_routes(shared.notebook_sources),
        *notebooks_list_page.ROUTES,
        *notifications_api.ROUTES,
        *openapi.build_routes(shared.openapi),
        *explain_api.ROUTES,
        *search_api.ROUTES,
        *doctor_api.build_routes(shared.examination_lock),
        *models_api.ROUTES,
        *notebooks_api.ROUTES,
        *promote_api.build_routes(shared.activity.boards),
        *activity_api.build_routes(shared.activity),
        *page_routes.build_routes(shared.list_caches),
        *display_preference_form.ROUTES,
        *projects_api.ROUTES,
        *repositories_api.build_routes(shared.repository_states),
        *content_api.ROUTES,
        *role_tokens_api.ROUTES,
        *session_api.ROUTES,
        *settings_overview_page.ROUTES,
        *accounts_page.ROUTES,
        *clusters_page.build_routes(shared.cluster_states),
        *health_checks_page.ROUTES,
        *projects_page.ROUTES,
        *repositories_page.build_routes(shared.repository_states),
        *tree_api.ROUTES,
        *streams_api.ROUTES,
        *webhook_api.build_routes(webhook_api.WebhookReceiver()),
    )


def _build_live_pages(shared: SharedState) -> tuple[LivePage, ...]:
    return (
        *activity_page.build_live_pages(shared.activity),
        *promote_page.build_live_pages(shared.activity.boards),
        *models_detail_page.LIVE,
        *models_list_page.LIVE,
        *notebooks_detail_page.build_live_pages(shared.notebook_sources),
        *notebooks_list_page.LIVE,
        *live_page_change_filters.build_live_pages(shared.list_caches),
    )
