"""All routes and live page parts, collected from the modules that feature_table lists.

In: ROUTES and LIVE of each module. Out: ROUTE_TABLE and LIVE_PAGES. Never: contains a route that is defined elsewhere.
"""

from __future__ import annotations

import importlib
from typing import Final

from argosy import feature_table
from argosy.web.live_updates.live_page_definitions import LivePage
from argosy.web.route import Route

_MODULES: Final = [importlib.import_module(name) for name in feature_table.ROUTES]
ROUTE_TABLE: Final[tuple[Route, ...]] = tuple(route for module in _MODULES for route in getattr(module, "ROUTES", ()))
LIVE_PAGES: Final[tuple[LivePage, ...]] = tuple(
    live_page for module in _MODULES for live_page in getattr(module, "LIVE", ())
)
