"""All routes of the pages of Applications.

In: ROUTES of each page. Out: ROUTES. Never: a route of its own, but those that lead from Argo CD's addresses to ours.
"""

from __future__ import annotations

from argosy.web.pages.application import (
    actions,
    bulk_page,
    diff_page,
    events_page,
    history_page,
    list_page,
    logs_page,
    operation_page,
    parameters_page,
    resource_actions,
    resource_page,
    resources_page,
    settings_page,
    sync_page,
    tree_page,
)
from argosy.web.pages.application.addresses import of_app
from argosy.web.request import Asked
from argosy.web.responses import Answer, Redirect
from argosy.web.route import Route, SignedIn


async def home(asked: Asked) -> Answer:
    return Redirect(where="/apps")


async def theirs(asked: Asked) -> Answer:
    """argo: links that people have written down lead on."""
    return Redirect(where=of_app(asked.values["ns"], asked.values["name"]))


async def by_name(asked: Asked) -> Answer:
    return Redirect(where=of_app(asked.site.desk.control, asked.values["name"]))


ROUTES = (
    Route("GET", "/", SignedIn(), home, "The beginning"),
    Route("GET", "/applications", SignedIn(), home, "Argo CD's address of the list"),
    Route("GET", "/applications/{name}", SignedIn(), by_name, "Argo CD's address of an application"),
    Route("GET", "/applications/{ns}/{name}", SignedIn(), theirs, "Argo CD's address of an application"),
    *bulk_page.ROUTES,
    *diff_page.ROUTES,
    *actions.ROUTES,
    *events_page.ROUTES,
    *history_page.ROUTES,
    *list_page.ROUTES,
    *logs_page.ROUTES,
    *operation_page.ROUTES,
    *parameters_page.ROUTES,
    *resource_actions.ROUTES,
    *resource_page.ROUTES,
    *resources_page.ROUTES,
    *settings_page.ROUTES,
    *sync_page.ROUTES,
    *tree_page.ROUTES,
)
