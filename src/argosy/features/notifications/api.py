"""API that lists the notification services, templates and triggers of an installation.

In: a request. Out: names of services, templates and triggers, in Argo CD's shape. Never: returns their content, because
services contain secrets.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, build_argo_page
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import Route, SignedIn

SETTINGS_CONFIG_MAP: Final = "argocd-notifications-cm"


async def list_names(request: RequestContext, prefix: str) -> JsonResponse:
    """List the names below a key prefix. argo: a service may have its own name after its type."""
    config_map = request.cluster_view.cache.get(
        ResourceKey(*CONFIG_MAP, request.service.control_namespace, SETTINGS_CONFIG_MAP)
    )
    keys = [str(key) for key in as_mapping((config_map or {}).get("data")) if str(key).startswith(f"{prefix}.")]
    names = [key.removeprefix(f"{prefix}.") for key in keys]
    if prefix == "service":
        names = [name.partition(".")[2] or name for name in names]
    return build_argo_page(request, [{"name": name} for name in sorted(set(names) - {""})])


def _build_route(collection: str, prefix: str, operation: str) -> Route:
    return Route(
        "GET", f"/api/v1/notifications/{collection}", SignedIn(), partial(list_names, prefix=prefix),
        f"List the names of notification {collection}.", query=ARGO_PAGING,
        response_schema=schema.build_object_schema(items=schema.build_array_schema(schema.build_object_schema(name=schema.STRING_SCHEMA))),
        tag="notifications", operation_id=f"NotificationService_{operation}",
    )  # fmt: skip


ROUTES = (
    _build_route("services", "service", "ListServices"),
    _build_route("templates", "template", "ListTemplates"),
    _build_route("triggers", "trigger", "ListTriggers"),
)
