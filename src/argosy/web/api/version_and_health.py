"""What this server is and whether it is well: /api/version, /healthz, /readyz.

In: a site. Out: its version, and ok. Never: tells a stranger more than Argo CD does.
"""

from __future__ import annotations

import platform

from argosy.web.request import Asked
from argosy.web.responses import Json, Text
from argosy.web.route import Public, Route


async def version(asked: Asked) -> Json:
    """argo: who has not shown who they are learns the version alone."""
    told = {"Version": asked.site.options.version}
    if not asked.caller.is_nobody:
        told |= {"Compiler": "cpython", "Platform": f"{platform.system().lower()}/{platform.machine()}"}
    return Json(told)


async def healthy(asked: Asked) -> Text:
    """A cluster that is away comes back, and pages say so; watches that have ended do not."""
    if asked.site.lookout.has_ended:
        return Text("the watches of the cluster have ended", code=503)
    return Text("ok")


PLAIN = ("text/plain",)
VERSION = "The version of this server."
ROUTES = (
    Route("GET", "/api/version", Public("tools ask it before they log in"), version, VERSION, gives="Version"),
    Route("GET", "/healthz", Public("a kubelet asks it"), healthy, "Whether this process is alive.", makes=PLAIN),
    Route("GET", "/readyz", Public("a kubelet asks it"), healthy, "Whether requests should be sent here.", makes=PLAIN),
)
