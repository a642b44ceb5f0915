"""`/api/badge`: the status badge of an Application or of projects, as SVG.

In: an Application name or project names. Out: SVG. Never: shows more than health, sync status and revision; reveals
whether an Application is missing or not visible; shows a status unless statusbadge.enabled is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, CONFIG_MAP
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import is_in_allowed_namespace, read_project_name
from argosy.web.responses import TextResponse, WebResponse
from argosy.web.route import Public, QueryParameter, Route

BADGE_ENABLED_KEY: Final = "statusbadge.enabled"  # argo
SVG_MEDIA_TYPE: Final = "image/svg+xml"
OBJECT_NAME_PATTERN: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
STATUS_COLOURS: Final = {
    "Healthy": "#0d7a5f", "Progressing": "#0b6fbf", "Degraded": "#c0394a", "Suspended": "#5a6b7b",
    "Missing": "#8f6a00", "Unknown": "#5b6570", "Synced": "#0d7a5f", "OutOfSync": "#9a6400",
}  # fmt: skip
GREY: Final = "#3d4650"
HEALTH_FROM_BEST_TO_WORST: Final = [health.value for health in HealthStatus]  # from best to worst
CHARACTER_WIDTH_PIXELS, PADDING_PIXELS, HEIGHT_PIXELS = 7, 12, 20
SHORT_REVISION_DIGITS, LONG_REVISION_DIGITS = 7, 64  # digits of a revision
MAX_WIDTH_PIXELS: Final = 2000
MAX_PROJECTS: Final = 20


class BadgeSegment(NamedTuple):
    text: str
    colour: str

    @property
    def width(self) -> int:
        return len(self.text) * CHARACTER_WIDTH_PIXELS + PADDING_PIXELS


async def get_badge(request: RequestContext) -> WebResponse:
    if not _is_enabled(request):  # argo: an Unknown badge, so that a README shows no broken image
        return _svg_response(_build_segments((), is_single_application=True, shows_revision=False))
    query = request.query
    name, projects = query.get_text("name"), query.get_all("project")
    namespace = query.get_text("namespace") or request.service.control_namespace
    for object_name in (*filter(None, (name, namespace)), *projects):
        if not OBJECT_NAME_PATTERN.fullmatch(object_name):
            raise UserError("name, namespace and project must be valid object names; correct them")
    if len(projects) > MAX_PROJECTS:
        raise UserError(f"a badge covers at most {MAX_PROJECTS} projects; name fewer", where="project")
    manifests = _find_application(request, namespace, name) if name else _list_applications_of(request, set(projects))
    digits = LONG_REVISION_DIGITS if query.get_bool("keepFullRevision") else SHORT_REVISION_DIGITS
    segments = _build_segments(
        manifests, is_single_application=bool(name), shows_revision=query.get_bool("revision"), digits=digits
    )
    if query.get_bool("showAppName") and manifests and name:  # the name of a missing one is not echoed
        segments = [BadgeSegment(name, GREY), *segments]
    return _svg_response(segments, query.get_int("width", 0, maximum=MAX_WIDTH_PIXELS))


def _svg_response(segments: list[BadgeSegment], width: int = 0) -> TextResponse:
    return TextResponse(render_svg(segments, width), SVG_MEDIA_TYPE, headers=(("cache-control", "private, no-store"),))


def _is_enabled(request: RequestContext) -> bool:
    config_map = request.cluster_view.cache.get(
        ResourceKey(*CONFIG_MAP, request.service.control_namespace, "argocd-cm")
    )
    return str(as_mapping((config_map or {}).get("data")).get(BADGE_ENABLED_KEY, "")).strip() == "true"


def _find_application(request: RequestContext, namespace: str, name: str) -> list[Manifest]:
    manifest = request.cluster_view.cache.get(ResourceKey(*APPLICATION, namespace, name))
    projects = set(request.query.get_all("project"))
    is_visible = (
        manifest is not None
        and is_in_allowed_namespace(request, manifest)
        and (not projects or read_project_name(manifest) in projects)
    )
    return [manifest] if manifest is not None and is_visible else []


def _list_applications_of(request: RequestContext, projects: set[str]) -> list[Manifest]:
    manifests = request.cluster_view.cache.list(GroupKind(*APPLICATION))
    return [
        manifest
        for manifest in manifests
        if read_project_name(manifest) in projects and is_in_allowed_namespace(request, manifest)
    ]


def _build_segments(
    manifests: Iterable[Manifest],
    *,
    is_single_application: bool,
    shows_revision: bool,
    digits: int = SHORT_REVISION_DIGITS,
) -> list[BadgeSegment]:
    """argo: Several Applications show their worst status; none shows Unknown."""
    statuses = [as_mapping(item.get("status")) for item in manifests]
    healths = [_known_status(as_mapping(item.get("health")).get("status")) for item in statuses]
    syncs = [_known_status(as_mapping(item.get("sync")).get("status")) for item in statuses]
    health = max(
        healths,
        key=lambda item: (
            HEALTH_FROM_BEST_TO_WORST.index(item)
            if item in HEALTH_FROM_BEST_TO_WORST
            else len(HEALTH_FROM_BEST_TO_WORST)
        ),
        default="Unknown",
    )
    sync = next((item for item in ("OutOfSync", "Unknown") if item in syncs), "Synced" if syncs else "Unknown")
    segments = [BadgeSegment(item, STATUS_COLOURS.get(item, STATUS_COLOURS["Unknown"])) for item in (health, sync)]
    revision = (
        str(as_mapping(statuses[0].get("sync")).get("revision") or "") if is_single_application and statuses else ""
    )
    return [*segments, BadgeSegment(revision[:digits], GREY)] if shows_revision and revision else segments


def _known_status(value: Any) -> str:
    return value if isinstance(value, str) and value in STATUS_COLOURS else "Unknown"


def render_svg(segments: Iterable[BadgeSegment], shown_width: int = 0) -> str:
    """Render the segments side by side, scaled to `shown_width` pixels unless that is 0."""
    segments = list(segments)
    width = sum(segment.width for segment in segments)
    size = f'width="{shown_width}" viewBox="0 0 {width} {HEIGHT_PIXELS}"' if shown_width else f'width="{width}"'
    label = escape(" ".join(segment.text for segment in segments))
    parts, x = [], 0
    for segment in segments:
        parts.append(f'<rect x="{x}" width="{segment.width}" height="{HEIGHT_PIXELS}" fill="{segment.colour}"/>')
        middle = x + segment.width / 2
        parts.append(
            f'<text x="{middle:g}" y="14" textLength="{segment.width - PADDING_PIXELS}">{escape(segment.text)}</text>'
        )
        x += segment.width
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} height="{HEIGHT_PIXELS}" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<clipPath id="r"><rect width="{width}" height="{HEIGHT_PIXELS}" rx="4"/></clipPath>'
        '<g clip-path="url(#r)" fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11">{"".join(parts)}</g></svg>\n'
    )


ROUTES = (
    Route(
        "GET", "/api/badge", Public("for READMEs; only if statusbadge.enabled is true"), get_badge,
        "The status badge of an Application or of projects. Unknown unless statusbadge.enabled is true.",
        query=(
            QueryParameter("name", "The Application."), QueryParameter("namespace", "Its namespace."),
            QueryParameter("project", "Its project; without a name, all Applications of these projects.", "array"),
            QueryParameter("revision", "Also show the revision.", "boolean"),
            QueryParameter("showAppName", "Also show the name.", "boolean"),
            QueryParameter("keepFullRevision", "Show all digits of the revision.", "boolean"),
            QueryParameter("width", "Width of the badge in pixels.", "integer"),
        ),
        tag="badge", operation_id="Badge", response_media_types=(SVG_MEDIA_TYPE,),
    ),
)  # fmt: skip
