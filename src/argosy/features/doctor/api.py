"""Serves the doctor's diagnosis over argosy's own API.

In: a request. Out: JSON. Never: findings about the installation, except for callers who may see all of it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from argosy.features.doctor.examination_of_visible_applications import examine_visible
from argosy.features.doctor.service import DoctorOptions
from argosy.gitops.redaction.per_application_secret_masks import mask_texts
from argosy.web.api.request_response_schemas import build_array_schema, build_object_schema
from argosy.web.objects_of_visible_applications import resolve_whole_installation
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, Route

EXAMINATION_TIMEOUT_SECONDS: Final = 20.0


async def show_diagnosis(lock: asyncio.Lock, request: RequestContext) -> JsonResponse:
    query = request.query
    names = tuple(item for item in query.get_all("app") if item)
    options = DoctorOptions(
        names, query.get_text("match"), is_quick=query.get_bool("quick"), seconds=EXAMINATION_TIMEOUT_SECONDS
    )
    document = (await examine_visible(request, options, lock)).to_wire(has_checklist=False)
    masks = request.masks
    gates = [
        mask_texts(item, masks.get_mask_for_application(str(item.get("application") or "")))
        for item in document["gates"]
    ]
    proofs = {name: mask_texts(item, masks.get_mask_for_application(name)) for name, item in document["proofs"].items()}
    return JsonResponse({**document, "gates": gates, "proofs": proofs})


def build_routes(lock: asyncio.Lock) -> tuple[Route, ...]:
    """`lock` allows one examination at a time."""
    return (
        Route(
            "GET",
            "/api/argosy/v1/doctor",
            RequiresPermission("applications", "get", resolve_whole_installation),
            partial(show_diagnosis, lock),
            "What is wrong with the installation and its Applications, and what helps.",
            query=(
                QueryParameter("app", "Only these.", "array"),
                QueryParameter("match", "Only those with this in their names; | between several."),
                QueryParameter("quick", "Compare none: what statuses tell is enough.", "boolean"),
            ),
            response_schema=build_object_schema(
                "checks",
                "findings",
                checks=build_array_schema(build_object_schema()),
                findings=build_array_schema(build_object_schema()),
            ),
            tag="argosy",
            operation_id="argosy_doctor",
        ),
    )
