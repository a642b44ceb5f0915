"""Site: what start-up code builds for one installation, and the ASGI application serves.

In: services, options, and the state of the server. Out: Site. Never: reaches a handler; a handler gets the fields of
its RequestContext, and what its route was built with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from argosy.gitops.application_client.application_service import ApplicationService
from argosy.web.request import LiveUpdates
from argosy.web.serve_options import ServeOptions
from argosy.web.server_audit_counters_and_limits import ServerState

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import ClusterView
    from argosy.web.auth.authenticator import Authenticator


@dataclass(frozen=True)
class Site:
    service: ApplicationService
    cluster_view: ClusterView
    authenticator: Authenticator
    live_updates: LiveUpdates | None = None  # None: no live updates
    options: ServeOptions = field(default_factory=ServeOptions)
    state: ServerState = field(default_factory=ServerState, repr=False)
