"""`/apps/{ns}/{name}/parameters` and `/manifest`: source parameters, and desired, live and last applied manifests.

In: a request. Out: pages. Never: a value of a Secret.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.applications.page_parts.last_applied_and_managed_fields import (
    drop_managed_fields,
    find_last_applied,
)
from argosy.features.applications.page_parts.shared_page_values import build_page_values, get_application
from argosy.features.applications.page_parts.url_paths import resource_path
from argosy.features.applications.parameters.source_parameter_rows import list_source_parameters
from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector, load_selected_objects
from argosy.gitops.diff import mask_secrets
from argosy.kube.objects import Manifest, dump_yaml, key_of_desired
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route
from argosy.web.secret_mask_by_request_scope import find_request_mask

MANIFEST_SIDES = ("desired", "live", "last-applied")
MAX_MANIFEST_LINES = 20_000


async def render_parameters_page(request: RequestContext) -> WebResponse:
    return PageResponse(
        "applications/parameters.html",
        await build_page_values(request, "parameters", sources=list_source_parameters(get_application(request))),
    )


async def render_manifest_page(request: RequestContext) -> WebResponse:
    app, reader = get_application(request), build_reader(request)
    side = request.query.get_text("side") if request.query.get_text("side") in MANIFEST_SIDES else MANIFEST_SIDES[0]
    fault = ""
    manifests: list[Manifest] = []
    try:
        manifests = (
            list((await reader.load_compared_state(app)).manifests)
            if side == MANIFEST_SIDES[0]
            else await _load_live(request)
        )
    except UserError as error:
        fault = str(error)
    if side == MANIFEST_SIDES[2]:
        manifests = [manifest for live in manifests if (manifest := find_last_applied(live)) is not None]
    masked_manifests = [
        manifest
        for manifest in mask_secrets(manifests, reader.reconciler_settings.diff.masked_annotations)
        if manifest is not None
    ]
    mask = find_request_mask(request)
    masked_manifests = [mask.mask_manifest(manifest) for manifest in masked_manifests]
    texts = [
        (
            _format_title(manifest),
            resource_path(app.namespace, app.name, key_of_desired(manifest)),
            _render_lines(manifest),
        )
        for manifest in masked_manifests
    ]
    values = await build_page_values(request, "manifest", side=side, sides=MANIFEST_SIDES, texts=texts, fault=fault)
    return PageResponse("applications/manifest.html", values)


async def _load_live(request: RequestContext) -> list[Manifest]:
    return await load_selected_objects(build_reader(request), get_application(request), ObjectSelector())


def _format_title(manifest: Manifest) -> str:
    return f"{manifest.get('kind')}/{manifest['metadata'].get('name') or manifest['metadata'].get('generateName')}"


def _render_lines(manifest: Manifest) -> list[str]:
    return dump_yaml(drop_managed_fields(manifest)).splitlines()[:MAX_MANIFEST_LINES]


READ_PERMISSION = RequiresPermission("applications", "get", resolve_application)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}/parameters", READ_PERMISSION, render_parameters_page, "Parameters of the sources"),
    Route("GET", "/apps/{ns}/{name}/manifest", READ_PERMISSION, render_manifest_page, "Manifests"),
)
