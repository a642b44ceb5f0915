"""All routes of the pages of Applications.

In: ROUTES of each page. Out: ROUTES. Never: defines routes of its own, except redirects from Argo CD's paths.
"""

from __future__ import annotations

from argosy.features.applications.actions import page
from argosy.features.applications.diff import page as diff_page
from argosy.features.applications.edit import settings_page
from argosy.features.applications.events import page as events_page
from argosy.features.applications.list import bulk_page
from argosy.features.applications.list import page as list_page
from argosy.features.applications.logs import page as logs_page
from argosy.features.applications.objects import actions_page
from argosy.features.applications.objects import page as resource_page
from argosy.features.applications.page_parts.addresses import of_app
from argosy.features.applications.parameters import page as parameters_page
from argosy.features.applications.rollback import page as history_page
from argosy.features.applications.sync import operation_page
from argosy.features.applications.sync import page as sync_page
from argosy.features.applications.tree import page as tree_page
from argosy.features.applications.tree import resources_page
from argosy.web.request import Asked
from argosy.web.responses import Answer, Redirect
from argosy.web.route import Route, SignedIn


async def home(asked: Asked) -> Answer:
    return Redirect(where="/apps")


async def theirs(asked: Asked) -> Answer:
    """argo: Redirect Argo CD's path of an Application, so that old links keep working."""
    return Redirect(where=of_app(asked.values["ns"], asked.values["name"]))


async def by_name(asked: Asked) -> Answer:
    return Redirect(where=of_app(asked.site.desk.control, asked.values["name"]))


ROUTES = (
    Route("GET", "/", SignedIn(), home, "Redirect to the list of applications"),
    Route("GET", "/applications", SignedIn(), home, "Argo CD's path of the list"),
    Route("GET", "/applications/{name}", SignedIn(), by_name, "Argo CD's path of an application"),
    Route("GET", "/applications/{ns}/{name}", SignedIn(), theirs, "Argo CD's path of an application"),
    *bulk_page.ROUTES,
    *diff_page.ROUTES,
    *page.ROUTES,
    *events_page.ROUTES,
    *history_page.ROUTES,
    *list_page.ROUTES,
    *logs_page.ROUTES,
    *operation_page.ROUTES,
    *parameters_page.ROUTES,
    *actions_page.ROUTES,
    *resource_page.ROUTES,
    *resources_page.ROUTES,
    *settings_page.ROUTES,
    *sync_page.ROUTES,
    *tree_page.ROUTES,
)
