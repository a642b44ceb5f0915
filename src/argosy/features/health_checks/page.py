"""Page `/settings/health`: health rules of all kinds, and a form to try a manifest and a check.

In: a request. Out: kinds with their rules; for a trial, the result. Never: runs a script in this process; stores one.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.health_checks import rule_list_and_health_trial
from argosy.features.health_checks.rule_list_and_health_trial import HealthTrialResult
from argosy.gitops.health.settings import read_config_maps
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import Route, SignedIn
from argosy.web.settings_overview_page import SETTINGS_BREADCRUMB

EXAMPLE_MANIFEST: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 2}
spec: {replicas: 2}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}
"""


async def render_page(request: RequestContext) -> PageResponse:
    return PageResponse("health_checks/health_checks.html", build_page_values(request))


def build_page_values(
    request: RequestContext, verdict: HealthTrialResult | None = None, fault: str = ""
) -> dict[str, Any]:
    rows, faults = rule_list_and_health_trial.list_kinds(
        _read_config_map(request, "argocd-cm"), _read_config_map(request, "argosy-cm")
    )
    search_text = request.query.get_text("q").lower()
    matching_rows = [row for row in rows if search_text in f"{row.group}/{row.kind} {row.source}".lower()]
    return {
        "title": "Health checks",
        "section": "settings",
        "state": "bad" if faults else "",
        "crumbs": [SETTINGS_BREADCRUMB],
        "rows": matching_rows,
        "total": len(rows),
        "q": request.query.get_text("q"),
        "faults": faults,
        "verdict": verdict,
        "fault": fault,
        "manifest": EXAMPLE_MANIFEST,
        "script": "",
    }


async def render_trial(request: RequestContext) -> PageResponse:
    form = await request.read_form()
    manifest, script = (form.get_text(name).replace("\r\n", "\n") for name in ("manifest", "script"))
    settings = read_config_maps(_read_config_map(request, "argocd-cm"), _read_config_map(request, "argosy-cm"))
    verdict, fault = None, ""
    try:
        parsed_manifest = rule_list_and_health_trial.read_first_manifest(manifest)
        verdict = await rule_list_and_health_trial.assess_pasted_manifest(
            request.cluster_view.reader.pool, parsed_manifest, settings, script
        )
    except ArgosyError as error:
        fault = str(error)
    page_values = {
        **build_page_values(request, verdict, fault),
        "manifest": manifest[: rule_list_and_health_trial.MAX_TEXT_CHARACTERS],
        "script": script[: rule_list_and_health_trial.MAX_TEXT_CHARACTERS],
    }
    # from the request only, because a script may print any text
    return PageResponse("health_checks/health_checks.html", page_values, is_from_request_only=True)


def _read_config_map(request: RequestContext, name: str) -> dict[str, str]:
    config_map = request.cluster_view.cache.get(ResourceKey(*CONFIG_MAP, request.service.control_namespace, name))
    return {str(key): str(value) for key, value in as_mapping(as_mapping(config_map).get("data")).items()}


ROUTES = (
    Route("GET", "/settings/health", SignedIn(), render_page, "Health checks, as a page."),
    Route("POST", "/settings/health", SignedIn(), render_trial, "Assess the health of a pasted manifest."),
)
