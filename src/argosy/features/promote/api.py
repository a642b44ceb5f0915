"""Serves the environments over argosy's own API.

In: a request. Out: JSON. Never: shows an environment whose Application the caller may not see.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.promote.environments_board import EnvironmentStage
from argosy.features.promote.visible_board import EnvironmentBoards
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import PAGING, build_page
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, Route

TAG: Final = "overview"
STAGE: Final = schema.build_object_schema(
    name=schema.STRING_SCHEMA,
    after=schema.STRING_SCHEMA,
    application=schema.STRING_SCHEMA,
    namespace=schema.STRING_SCHEMA,
    release=schema.STRING_SCHEMA,
    runs=schema.STRING_SCHEMA,
    health=schema.STRING_SCHEMA,
    sync=schema.STRING_SCHEMA,
    since=schema.STRING_SCHEMA,
    models=schema.build_array_schema(schema.STRING_SCHEMA),
    images=schema.build_array_schema(schema.STRING_SCHEMA),
    problem=schema.STRING_SCHEMA,
    isByHand=schema.BOOLEAN_SCHEMA,
    coming={"type": ["object", "null"]},
    gates=schema.build_array_schema(schema.OBJECT_SCHEMA),
    holds=schema.build_array_schema(schema.OBJECT_SCHEMA),
)


def stage_to_wire(stage: EnvironmentStage) -> dict[str, Any]:
    coming = stage.coming
    return {
        "name": stage.name,
        "after": stage.after,
        "application": stage.application,
        "namespace": stage.namespace,
        "release": stage.release,
        "runs": stage.runs,
        "health": stage.health,
        "sync": stage.sync,
        "since": stage.since,
        "models": list(stage.models),
        "images": list(stage.images),
        "problem": stage.problem,
        "isByHand": stage.is_by_hand,
        "coming": {"release": coming.release, "commit": coming.commit, "isOpen": coming.is_open} if coming else None,
        "gates": [asdict(gate) for gate in coming.gates] if coming else [],
        "holds": [asdict(gate) for gate in stage.holds],
    }


async def list_environments(boards: EnvironmentBoards, request: RequestContext) -> JsonResponse:
    board, problem = await boards.load_visible(request)
    items = [(index, stage_to_wire(item)) for index, item in enumerate(board.stages)] if board else []
    if not items and problem:
        raise UserError(problem)
    return build_page(request, items, lambda item: f"{item[0]:06}", to_wire=lambda item: item[1])


VISIBILITY_NOTE: Final = "Only environments whose Applications the caller may see."


def build_routes(boards: EnvironmentBoards) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/api/argosy/v1/environments",
            FilteredList("applications", "get"),
            partial(list_environments, boards),
            f"List environments with their releases and pending promotions. {VISIBILITY_NOTE}",
            query=PAGING,
            response_schema=schema.build_object_schema(
                metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(STAGE)
            ),
            tag=TAG,
            operation_id="ListEnvironments",
        ),
    )
