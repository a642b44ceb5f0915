"""`/apps/{ns}/{name}/parameters` and `/manifest`: source parameters, and desired, live and last applied manifests.

In: a request. Out: pages. Never: a value of a Secret.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.applications.page_parts.addresses import of_resource
from argosy.features.applications.page_parts.frame import app_of, framed
from argosy.features.applications.page_parts.manifest_text import last_applied, without_managers
from argosy.features.applications.parameters.values import parameters_of
from argosy.gitops.application_client.resource_actions import Choice, chosen_objects
from argosy.gitops.diff import masked
from argosy.kube.objects import Manifest, dump, key_of_source
from argosy.web.caller_clients import reader_of
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

SIDES = ("desired", "live", "last-applied")
MOST_LINES = 20_000


async def parameters_page(asked: Asked) -> Answer:
    return Page("applications/parameters.html", await framed(asked, "parameters", sources=parameters_of(app_of(asked))))


async def manifest_page(asked: Asked) -> Answer:
    app, reader = app_of(asked), reader_of(asked)
    side = asked.query.text("side") if asked.query.text("side") in SIDES else SIDES[0]
    fault = ""
    found: list[Manifest] = []
    try:
        found = list((await reader.assemble(app)).desired) if side == SIDES[0] else await _live(asked)
    except UserError as error:
        fault = str(error)
    if side == SIDES[2]:
        found = [each for live in found if (each := last_applied(live)) is not None]
    shown = [each for each in masked(found, reader.rules.compare.masked_annotations) if each is not None]
    mask = masks_of(asked).for_request(asked)
    shown = [mask.hide_values(each) for each in shown]
    texts = [(_title(each), of_resource(app.namespace, app.name, key_of_source(each)), _lines(each)) for each in shown]
    values = await framed(asked, "manifest", side=side, sides=SIDES, texts=texts, fault=fault)
    return Page("applications/manifest.html", values)


async def _live(asked: Asked) -> list[Manifest]:
    return await chosen_objects(reader_of(asked), app_of(asked), Choice())


def _title(manifest: Manifest) -> str:
    return f"{manifest.get('kind')}/{manifest['metadata'].get('name') or manifest['metadata'].get('generateName')}"


def _lines(manifest: Manifest) -> list[str]:
    return dump(without_managers(manifest)).splitlines()[:MOST_LINES]


NEEDS = May("applications", "get", application)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}/parameters", NEEDS, parameters_page, "Parameters of the sources"),
    Route("GET", "/apps/{ns}/{name}/manifest", NEEDS, manifest_page, "Manifests"),
)
