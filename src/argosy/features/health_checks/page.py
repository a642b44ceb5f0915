"""Page `/settings/health`: health rules of all kinds, and a form to try a manifest and a check.

In: a request. Out: kinds with their rules; for a trial, the result. Never: runs a script in this process; stores one.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.health_checks import board
from argosy.features.health_checks.board import Tried
from argosy.gitops.health.settings import from_config_maps
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind, ResourceKey
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Route, SignedIn
from argosy.web.settings_page import CRUMB

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
EXAMPLE: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}
"""


async def page(asked: Asked) -> Page:
    return Page("health_checks/health_checks.html", values(asked))


def values(asked: Asked, verdict: Tried | None = None, fault: str = "") -> dict[str, Any]:
    rows, faults = board.kinds(_data(asked, "argocd-cm"), _data(asked, "argosy-cm"))
    wanted = asked.query.text("q").lower()
    shown = [each for each in rows if wanted in f"{each.group}/{each.kind} {each.source}".lower()]
    return {
        "title": "Health checks",
        "section": "settings",
        "state": "bad" if faults else "",
        "crumbs": [CRUMB],
        "rows": shown,
        "total": len(rows),
        "q": asked.query.text("q"),
        "faults": faults,
        "verdict": verdict,
        "fault": fault,
        "manifest": EXAMPLE,
        "script": "",
    }


async def tried(asked: Asked) -> Page:
    form = await asked.form()
    manifest, script = (form.text(name).replace("\r\n", "\n") for name in ("manifest", "script"))
    settings = from_config_maps(_data(asked, "argocd-cm"), _data(asked, "argosy-cm"))
    verdict, fault = None, ""
    try:
        found = board.read_one(manifest)
        verdict = await board.tried(asked.site.lookout.reader.pool, found, settings, script)
    except ArgosyError as error:
        fault = str(error)
    shown = {**values(asked, verdict, fault), "manifest": manifest[: board.MOST], "script": script[: board.MOST]}
    return Page("health_checks/health_checks.html", shown, is_callers_own=True)  # a script may print any text


def _data(asked: Asked, name: str) -> dict[str, str]:
    found = asked.site.lookout.cache.get(ResourceKey(*CONFIG_MAP, asked.site.desk.control, name))
    return {str(key): str(value) for key, value in mapping(mapping(found).get("data")).items()}


ROUTES = (
    Route("GET", "/settings/health", SignedIn(), page, "Health checks, as a page."),
    Route("POST", "/settings/health", SignedIn(), tried, "Assess the health of a pasted manifest."),
)
