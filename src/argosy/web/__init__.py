"""Web pages and REST API of an argosy installation.

In: a Site (the services of the installation) and HTTP requests. Out: responses, redacted as the last step.
Never: answers a request that did not pass the middleware; accesses a cluster except through an ApplicationService.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.web.middleware.asgi import WebApplication
    from argosy.web.site_services import Site


def build_application(site: Site) -> WebApplication:
    """Build the ASGI application. Imports are local so that other commands do not load the web framework."""
    from argosy.web.middleware.asgi import WebApplication
    from argosy.web.route_table import ROUTE_TABLE

    return WebApplication(site, ROUTE_TABLE)
