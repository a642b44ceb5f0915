"""Version and health endpoints: /api/version, /healthz, /readyz.

In: a site. Out: its version, and ok. Never: tells unauthenticated callers more than Argo CD does.
"""

from __future__ import annotations

import platform

from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse, TextResponse
from argosy.web.route import Public, Route


async def get_version(request: RequestContext) -> JsonResponse:
    """argo: unauthenticated callers get the version only."""
    document = {"Version": request.options.version}
    if not request.caller.is_nobody:
        document |= {"Compiler": "cpython", "Platform": f"{platform.system().lower()}/{platform.machine()}"}
    return JsonResponse(document)


async def get_health(request: RequestContext) -> TextResponse:
    """Fail only if the watches ended; an unreachable cluster recovers by itself, and pages show it."""
    if request.cluster_view.has_stopped:
        return TextResponse("the watches of the cluster ended", code=503)
    return TextResponse("ok")


PLAIN_TEXT = ("text/plain",)
VERSION_SUMMARY = "Version of this server."
ROUTES = (
    Route(
        "GET",
        "/api/version",
        Public("clients read it before they log in"),
        get_version,
        VERSION_SUMMARY,
        response_schema="Version",
        operation_id="version_version",
    ),
    Route(
        "GET",
        "/healthz",
        Public("kubelet probe"),
        get_health,
        "Liveness probe.",
        response_media_types=PLAIN_TEXT,
        operation_id="healthz_healthy",
    ),
    Route(
        "GET",
        "/readyz",
        Public("kubelet probe"),
        get_health,
        "Readiness probe.",
        response_media_types=PLAIN_TEXT,
        operation_id="readyz_healthy",
    ),
)
