"""Version and health endpoints: /api/version, /healthz, /readyz.

In: a site. Out: its version, and ok. Never: tells unauthenticated callers more than Argo CD does.
"""

from __future__ import annotations

import platform

from argosy.web.request import Asked
from argosy.web.responses import Json, Text
from argosy.web.route import Public, Route


async def version(asked: Asked) -> Json:
    """argo: unauthenticated callers get the version only."""
    told = {"Version": asked.site.options.version}
    if not asked.caller.is_nobody:
        told |= {"Compiler": "cpython", "Platform": f"{platform.system().lower()}/{platform.machine()}"}
    return Json(told)


async def healthy(asked: Asked) -> Text:
    """Fail only if the watches ended; an unreachable cluster recovers by itself, and pages show it."""
    if asked.site.lookout.has_ended:
        return Text("the watches of the cluster ended", code=503)
    return Text("ok")


PLAIN = ("text/plain",)
VERSION = "Version of this server."
ROUTES = (
    Route("GET", "/api/version", Public("clients read it before they log in"), version, VERSION, gives="Version"),
    Route("GET", "/healthz", Public("kubelet probe"), healthy, "Liveness probe.", makes=PLAIN),
    Route("GET", "/readyz", Public("kubelet probe"), healthy, "Readiness probe.", makes=PLAIN),
)
