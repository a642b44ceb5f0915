"""Builds the web application of one cluster: its services, routes and live updates.

In: a cluster, serve options, a private folder. Out: an open WebApplication. Never: starts an engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from argosy.cli.application_service_connection import open_cluster
from argosy.features.serve.routes import build_route_table
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.control_namespace import find_control_namespace
from argosy.gitops.cluster_view.cluster_view import open_cluster_view
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import Cluster
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.login_codes import LoginCodes
from argosy.web.live_updates.hub import LivePageHub
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.serve_options import ServeOptions
from argosy.web.server_audit_counters_and_limits import ServerState
from argosy.web.site_services import Site


@asynccontextmanager
async def open_web_application(
    cluster: Cluster,
    cluster_name: str,
    options: ServeOptions,
    folder: Path,
    namespace: str = "",
    repositories: Repositories | None = None,
    process_pool: ProcessPool | None = None,
) -> AsyncIterator[WebApplication]:
    control = namespace or await find_control_namespace(cluster)
    service = ApplicationService(
        cluster, cluster_name, control, control, opener=open_cluster, plugin_sockets=options.plugin_sockets
    )
    codes = LoginCodes(folder) if options.is_loopback else None  # one-time codes only on loopback
    async with open_cluster_view(service, repositories, process_pool) as cluster_view:
        identities = Authenticator(cluster, cluster_view, control, cookie=session_cookie_name(options), codes=codes)
        await identities.prepare()
        state = ServerState()
        table = build_route_table(state)
        hub = LivePageHub(cluster_view, table.live_pages)
        try:
            yield WebApplication(Site(service, cluster_view, identities, hub, options, state), table.routes)
        finally:
            await hub.close()


def session_cookie_name(options: ServeOptions) -> str:
    """Session cookie name; with the port, because servers on one host share cookies."""
    return "__Host-argosy" if options.is_tls else f"argosy-{options.port}"
