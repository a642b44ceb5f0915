"""Builds the Site: application service, cluster view, identities and live updates of one cluster.

In: a cluster, serve options, a private folder. Out: an open Site. Never: starts an engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from argosy.cli.connection import opened
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.control_namespace import control_namespace
from argosy.gitops.cluster_view.cluster_view import open_lookout
from argosy.gitops.source.repositories import Repositories
from argosy.isolation.process_pool import Crew
from argosy.kube.client import Cluster
from argosy.web.auth.authenticator import Identities
from argosy.web.auth.login_codes import Codes
from argosy.web.live_updates.hub import Hub
from argosy.web.route_table import LIVES
from argosy.web.site import ServeOptions, Site


@asynccontextmanager
async def opened_site(
    cluster: Cluster,
    where: str,
    options: ServeOptions,
    folder: Path,
    namespace: str = "",
    repositories: Repositories | None = None,
    crew: Crew | None = None,
) -> AsyncIterator[Site]:
    control = namespace or await control_namespace(cluster)
    desk = Desk(cluster, where, control, control, opener=opened)
    codes = Codes(folder) if options.is_loopback else None  # one-time codes only on loopback
    async with open_lookout(desk, repositories, crew) as lookout:
        identities = Identities(cluster, lookout, control, cookie=cookie_of(options), codes=codes)
        await identities.prepare()
        hub = Hub(lookout, LIVES)
        try:
            yield Site(desk, lookout, identities, hub, options)
        finally:
            await hub.close()


def cookie_of(options: ServeOptions) -> str:
    """Session cookie name; with the port, because servers on one host share cookies."""
    return "__Host-argosy" if options.is_tls else f"argosy-{options.port}"
