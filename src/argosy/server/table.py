"""All routes, from all parts: one line each, in the order of the alphabet.

In: ROUTES of each part. Out: TABLE. Never: a route that is made elsewhere.
"""

from __future__ import annotations

from typing import Final

from argosy.server import files
from argosy.server.api import (
    about,
    applications,
    metrics,
    openapi,
)
from argosy.server.routes import Route

TABLE: Final[tuple[Route, ...]] = (
    *about.ROUTES,
    *applications.ROUTES,
    *files.ROUTES,
    *metrics.ROUTES,
    *openapi.ROUTES,
)
