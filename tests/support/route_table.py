"""The routes of the web server, for tests that only read them. They keep what they remember in this process.

In: nothing. Out: ROUTE_TABLE. Never: served; `build_routes` gives each server its own.
"""

from __future__ import annotations

from argosy.features.serve.routes import build_route_table
from argosy.web.route import Route
from argosy.web.server_audit_counters_and_limits import ServerState
from argosy.web.site_services import Site

ROUTE_TABLE = build_route_table(ServerState()).routes


def build_routes(site: Site) -> tuple[Route, ...]:
    return build_route_table(site.state).routes
