"""Serves the environments over argosy's own API.

In: a request. Out: JSON. Never: shows an environment whose Application the caller may not see.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.promote.board import Stage
from argosy.features.promote.visible_board import looked
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import PAGING, page
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, Route

TAG: Final = "overview"
STAGE: Final = schema.fields(
    name=schema.TEXT, after=schema.TEXT, application=schema.TEXT, namespace=schema.TEXT, release=schema.TEXT,
    runs=schema.TEXT, health=schema.TEXT, sync=schema.TEXT, since=schema.TEXT, models=schema.many(schema.TEXT),
    images=schema.many(schema.TEXT), problem=schema.TEXT, isByHand=schema.FLAG, coming={"type": ["object", "null"]},
    gates=schema.many(schema.ANY), holds=schema.many(schema.ANY),
)  # fmt: skip


def stage(given: Stage) -> dict[str, Any]:
    coming = given.coming
    return {
        "name": given.name,
        "after": given.after,
        "application": given.application,
        "namespace": given.namespace,
        "release": given.release,
        "runs": given.runs,
        "health": given.health,
        "sync": given.sync,
        "since": given.since,
        "models": list(given.models),
        "images": list(given.images),
        "problem": given.problem,
        "isByHand": given.is_by_hand,
        "coming": {"release": coming.release, "commit": coming.commit, "isOpen": coming.is_open} if coming else None,
        "gates": [asdict(each) for each in coming.gates] if coming else [],
        "holds": [asdict(each) for each in given.holds],
    }


async def environments(asked: Asked) -> Json:
    board, problem = await looked(asked)
    found = [(place, stage(each)) for place, each in enumerate(board.stages)] if board else []
    if not found and problem:
        raise UserError(problem)
    return page(asked, found, lambda each: f"{each[0]:06}", tell=lambda each: each[1])


SEEN: Final = "Only environments whose Applications the caller may see."
ROUTES = (
    Route(
        "GET", "/api/argosy/v1/environments", Filtered("applications", "get"), environments,
        f"List environments with their releases and pending promotions. {SEEN}", query=PAGING,
        gives=schema.fields(metadata=schema.ANY, items=schema.many(STAGE)), tag=TAG, operation="ListEnvironments",
    ),
)  # fmt: skip
