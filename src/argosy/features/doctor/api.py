"""Serves the doctor's diagnosis over argosy's own API.

In: a request. Out: JSON. Never: findings about the installation, except for callers who may see all of it.
"""

from __future__ import annotations

from typing import Final

from argosy.features.doctor.service import Wanted
from argosy.features.doctor.visible_report import examined
from argosy.web.api.json_schemas import fields, many
from argosy.web.middleware.application_masks import mask_texts, masks_of
from argosy.web.owned_objects import everything
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import May, Parameter, Route

SECONDS: Final = 20.0


async def doctor(asked: Asked) -> Json:
    query = asked.query
    names = tuple(each for each in query.all("app") if each)
    wanted = Wanted(names, query.text("match"), is_quick=query.flag("quick"), seconds=SECONDS)
    document = (await examined(asked, wanted)).document(has_checklist=False)
    masks = masks_of(asked)
    gates = [mask_texts(each, masks.by_name(str(each.get("application") or ""))) for each in document["gates"]]
    proofs = {name: mask_texts(each, masks.by_name(name)) for name, each in document["proofs"].items()}
    return Json({**document, "gates": gates, "proofs": proofs})


ROUTES = (
    Route(
        "GET", "/api/argosy/v1/doctor", May("applications", "get", everything), doctor,
        "What is wrong with the installation and its Applications, and what helps.",
        query=(
            Parameter("app", "Only these.", "array"),
            Parameter("match", "Only those with this in their names; | between several."),
            Parameter("quick", "Compare none: what statuses tell is enough.", "boolean"),
        ),
        gives=fields("checks", "findings", checks=many(fields()), findings=many(fields())), tag="argosy",
    ),
)  # fmt: skip
