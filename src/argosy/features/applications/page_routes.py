"""All routes of the pages of Applications.

In: the caches of the list; routes of each page. Out: routes. Never: defines routes of its own, except
redirects from Argo CD's paths.
"""

from __future__ import annotations

from argosy.features.applications.diff import page as diff_page
from argosy.features.applications.edit import settings_page
from argosy.features.applications.events import page as events_page
from argosy.features.applications.list import bulk_sync_refresh_page
from argosy.features.applications.list import page as list_page
from argosy.features.applications.logs import page as logs_page
from argosy.features.applications.objects import action_and_deletion_page
from argosy.features.applications.objects import page as resource_page
from argosy.features.applications.page_parts.url_paths import application_path
from argosy.features.applications.parameters import page as parameters_page
from argosy.features.applications.refresh_hold_terminate_delete import page
from argosy.features.applications.rollback import page as history_page
from argosy.features.applications.sync import operation_page
from argosy.features.applications.sync import page as sync_page
from argosy.features.applications.tree import object_table_page
from argosy.features.applications.tree import page as tree_page
from argosy.web.request import RequestContext
from argosy.web.responses import RedirectResponse, WebResponse
from argosy.web.route import Route, SignedIn


async def redirect_home(request: RequestContext) -> WebResponse:
    return RedirectResponse(location="/apps")


async def redirect_argocd_path(request: RequestContext) -> WebResponse:
    """argo: Redirect Argo CD's path of an Application, so that old links keep working."""
    return RedirectResponse(location=application_path(request.path_parameters["ns"], request.path_parameters["name"]))


async def redirect_by_name(request: RequestContext) -> WebResponse:
    return RedirectResponse(
        location=application_path(request.service.control_namespace, request.path_parameters["name"])
    )


def build_routes(list_caches: list_page.ListCaches) -> tuple[Route, ...]:
    return (
        Route("GET", "/", SignedIn(), redirect_home, "Redirect to the list of applications"),
        Route("GET", "/applications", SignedIn(), redirect_home, "Argo CD's path of the list"),
        Route("GET", "/applications/{name}", SignedIn(), redirect_by_name, "Argo CD's path of an application"),
        Route("GET", "/applications/{ns}/{name}", SignedIn(), redirect_argocd_path, "Argo CD's path of an application"),
        *bulk_sync_refresh_page.ROUTES,
        *diff_page.ROUTES,
        *page.ROUTES,
        *events_page.ROUTES,
        *history_page.ROUTES,
        *list_page.build_routes(list_caches),
        *logs_page.ROUTES,
        *operation_page.ROUTES,
        *parameters_page.ROUTES,
        *action_and_deletion_page.ROUTES,
        *resource_page.ROUTES,
        *object_table_page.ROUTES,
        *settings_page.ROUTES,
        *sync_page.ROUTES,
        *tree_page.ROUTES,
    )
