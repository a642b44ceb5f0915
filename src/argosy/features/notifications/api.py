"""API that lists the notification services, templates and triggers of an installation.

In: a request. Out: names of services, templates and triggers, in Argo CD's shape. Never: returns their content, because
services contain secrets.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import ResourceKey
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, part
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Route, SignedIn

SETTINGS: Final = "argocd-notifications-cm"


async def named(asked: Asked, prefix: str) -> Json:
    """List the names below a key prefix. argo: a service may have its own name after its type."""
    found = asked.site.lookout.cache.get(ResourceKey("", "ConfigMap", asked.site.desk.control, SETTINGS))
    keys = [str(key) for key in mapping((found or {}).get("data")) if str(key).startswith(f"{prefix}.")]
    names = [key.removeprefix(f"{prefix}.") for key in keys]
    if prefix == "service":
        names = [name.partition(".")[2] or name for name in names]
    return part(asked, [{"name": name} for name in sorted(set(names) - {""})])


def _route(word: str, prefix: str, operation: str) -> Route:
    return Route(
        "GET", f"/api/v1/notifications/{word}", SignedIn(), partial(named, prefix=prefix),
        f"List the names of notification {word}.", query=ARGO_PAGING,
        gives=schema.fields(items=schema.many(schema.fields(name=schema.TEXT))),
        tag="notifications", operation=f"NotificationService_{operation}",
    )  # fmt: skip


ROUTES = (
    _route("services", "service", "ListServices"),
    _route("templates", "template", "ListTemplates"),
    _route("triggers", "trigger", "ListTriggers"),
)
