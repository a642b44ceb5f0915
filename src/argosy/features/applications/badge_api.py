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
from argosy.gitops.application import APPLICATION
from argosy.gitops.application.step_results import Health
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.web.object_lookup import is_at_home, project_of
from argosy.web.request import Asked
from argosy.web.responses import Answer, Text
from argosy.web.route import Parameter, Public, Route

ENABLED: Final = "statusbadge.enabled"  # argo
MEDIA: Final = "image/svg+xml"
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
COLOURS: Final = {
    "Healthy": "#0d7a5f", "Progressing": "#0b6fbf", "Degraded": "#c0394a", "Suspended": "#5a6b7b",
    "Missing": "#8f6a00", "Unknown": "#5b6570", "Synced": "#0d7a5f", "OutOfSync": "#9a6400",
}  # fmt: skip
GREY: Final = "#3d4650"
WORST: Final = [each.value for each in Health]  # from best to worst
CHARACTER, PADDING, HEIGHT = 7, 12, 20
SHORT, LONG = 7, 64  # digits of a revision
WIDEST: Final = 2000
MOST_PROJECTS: Final = 20


class Piece(NamedTuple):
    text: str
    colour: str

    @property
    def width(self) -> int:
        return len(self.text) * CHARACTER + PADDING


async def drawn(asked: Asked) -> Answer:
    if not _is_enabled(asked):  # argo: an Unknown badge, so that a README shows no broken image
        return _picture(_pieces((), is_one=True, shows=False))
    query = asked.query
    name, projects = query.text("name"), query.all("project")
    namespace = query.text("namespace") or asked.site.desk.control
    for each in (*filter(None, (name, namespace)), *projects):
        if not NAME.fullmatch(each):
            raise UserError("name, namespace and project must be valid object names; correct them")
    if len(projects) > MOST_PROJECTS:
        raise UserError(f"a badge covers at most {MOST_PROJECTS} projects; name fewer", where="project")
    found = _one(asked, namespace, name) if name else _of_projects(asked, set(projects))
    digits = LONG if query.flag("keepFullRevision") else SHORT
    pieces = _pieces(found, is_one=bool(name), shows=query.flag("revision"), digits=digits)
    if query.flag("showAppName") and found and name:  # the name of a missing one is not echoed
        pieces = [Piece(name, GREY), *pieces]
    return _picture(pieces, query.number("width", 0, most=WIDEST))


def _picture(pieces: list[Piece], width: int = 0) -> Text:
    return Text(svg(pieces, width), MEDIA, headers=(("cache-control", "private, no-store"),))


def _is_enabled(asked: Asked) -> bool:
    found = asked.site.lookout.cache.get(ResourceKey("", "ConfigMap", asked.site.desk.control, "argocd-cm"))
    return str(mapping((found or {}).get("data")).get(ENABLED, "")).strip() == "true"


def _one(asked: Asked, namespace: str, name: str) -> list[Manifest]:
    found = asked.site.lookout.cache.get(ResourceKey(*APPLICATION, namespace, name))
    wanted = set(asked.query.all("project"))
    is_meant = found is not None and is_at_home(asked, found) and (not wanted or project_of(found) in wanted)
    return [found] if found is not None and is_meant else []


def _of_projects(asked: Asked, projects: set[str]) -> list[Manifest]:
    every = asked.site.lookout.cache.list(GroupKind(*APPLICATION))
    return [each for each in every if project_of(each) in projects and is_at_home(asked, each)]


def _pieces(found: Iterable[Manifest], *, is_one: bool, shows: bool, digits: int = SHORT) -> list[Piece]:
    """argo: Several Applications show their worst status; none shows Unknown."""
    states = [mapping(each.get("status")) for each in found]
    healths = [_word(mapping(each.get("health")).get("status")) for each in states]
    syncs = [_word(mapping(each.get("sync")).get("status")) for each in states]
    health = max(healths, key=lambda each: WORST.index(each) if each in WORST else len(WORST), default="Unknown")
    sync = next((each for each in ("OutOfSync", "Unknown") if each in syncs), "Synced" if syncs else "Unknown")
    pieces = [Piece(each, COLOURS.get(each, COLOURS["Unknown"])) for each in (health, sync)]
    revision = str(mapping(states[0].get("sync")).get("revision") or "") if is_one and states else ""
    return [*pieces, Piece(revision[:digits], GREY)] if shows and revision else pieces


def _word(given: Any) -> str:
    return given if isinstance(given, str) and given in COLOURS else "Unknown"


def svg(pieces: Iterable[Piece], shown: int = 0) -> str:
    """Render the segments side by side, scaled to `shown_width` pixels unless that is 0."""
    pieces = list(pieces)
    width = sum(each.width for each in pieces)
    size = f'width="{shown}" viewBox="0 0 {width} {HEIGHT}"' if shown else f'width="{width}"'
    told = escape(" ".join(each.text for each in pieces))
    parts, at = [], 0
    for each in pieces:
        parts.append(f'<rect x="{at}" width="{each.width}" height="{HEIGHT}" fill="{each.colour}"/>')
        middle = at + each.width / 2
        parts.append(f'<text x="{middle:g}" y="14" textLength="{each.width - PADDING}">{escape(each.text)}</text>')
        at += each.width
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} height="{HEIGHT}" role="img" aria-label="{told}">'
        f"<title>{told}</title>"
        f'<clipPath id="r"><rect width="{width}" height="{HEIGHT}" rx="4"/></clipPath>'
        '<g clip-path="url(#r)" fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11">{"".join(parts)}</g></svg>\n'
    )


ROUTES = (
    Route(
        "GET", "/api/badge", Public("for READMEs; only if statusbadge.enabled is true"), drawn,
        "The status badge of an Application or of projects. Unknown unless statusbadge.enabled is true.",
        query=(
            Parameter("name", "The Application."), Parameter("namespace", "Its namespace."),
            Parameter("project", "Its project; without a name, all Applications of these projects.", "array"),
            Parameter("revision", "Also show the revision.", "boolean"),
            Parameter("showAppName", "Also show the name.", "boolean"),
            Parameter("keepFullRevision", "Show all digits of the revision.", "boolean"),
            Parameter("width", "Width of the badge in pixels.", "integer"),
        ),
        tag="badge", operation="Badge", makes=(MEDIA,),
    ),
)  # fmt: skip
