"""API route of the command palette: search pages, Applications, models and notebooks.

In: a request. Out: JSON. Never: returns a name that the caller may not see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NOTEBOOK_JOB
from argosy.web.api.request_response_schemas import STRING_SCHEMA, build_array_schema, build_object_schema
from argosy.web.objects_of_visible_applications import list_visible_objects
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import is_in_allowed_namespace
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, Route

MAX_RESULTS: Final = 20
MAX_QUERY_CHARACTERS: Final = 200  # characters of the query
PAGE_ITEMS: Final = (
    ("Apps", "/apps", "all Applications"),
    ("Models", "/models", "served models"),
    ("Notebooks", "/notebooks", "notebooks and their runs"),
    ("Environments", "/environments", "dev, staging, production"),
    ("Activity", "/activity", "recent events"),
    ("Settings", "/settings", "projects, repositories, clusters, health"),
    ("Doctor", "/doctor", "problems and fixes"),
    ("Accounts", "/settings/accounts", "accounts and their tokens"),
    ("Repositories", "/settings/repositories", "Git repositories"),
    ("Health checks", "/settings/health", "rules, and a test form"),
    ("Appearance", "/settings/appearance", "light, dark, keys"),
    ("API", "/api/docs", "REST API reference"),
)
WORD_SEPARATOR: Final = re.compile(r"[\s./-]+")


async def search_palette(request: RequestContext) -> JsonResponse:
    """Find items that contain all words; items with a part that starts with the first word come first."""
    words = request.query.get_text("q")[:MAX_QUERY_CHARACTERS].lower().split()
    items = [item for item in _iterate_items(request, words) if all(word in item["search"] for word in words)]
    if words:
        items.sort(key=lambda item: not any(part.startswith(words[0]) for part in WORD_SEPARATOR.split(item["search"])))
    return JsonResponse({"items": [{k: v for k, v in item.items() if k != "search"} for item in items[:MAX_RESULTS]]})


def _iterate_items(request: RequestContext, words: list[str]) -> Iterator[dict[str, Any]]:
    for text, url, about in PAGE_ITEMS:
        yield _build_item("page", text, url, about)
    control = request.service.control_namespace
    for row in request.cluster_view.list_rows():
        if words and not any(word in row.name.lower() for word in words):
            continue
        manifest = request.cluster_view.cache.get(row.key)
        if manifest is None or not is_in_allowed_namespace(request, manifest):
            continue
        if request.is_allowed("applications", "get", row.rbac_object(control)):
            yield _build_item("app", row.name, f"/apps/{row.namespace}/{row.name}", f"{row.sync}, {row.health}")
    yield from _iterate_objects(request, INFERENCE_SERVICE, "model", "models")
    yield from _iterate_objects(request, NOTEBOOK_JOB, "notebook", "notebooks")


def _iterate_objects(
    request: RequestContext, kind: GroupKind, item_kind: str, path_prefix: str
) -> Iterator[dict[str, Any]]:
    for manifest in list_visible_objects(request, kind):
        metadata = manifest["metadata"]
        namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
        yield _build_item(item_kind, name, f"/{path_prefix}/{namespace}/{name}", namespace)


def _build_item(kind: str, text: str, url: str, about: str) -> dict[str, Any]:
    return {"kind": kind, "text": text, "url": url, "about": about, "search": f"{kind} {text} {about}".lower()}


ROUTES = (
    Route(
        "GET",
        "/api/argosy/v1/palette",
        FilteredList("applications", "get"),
        search_palette,
        "Search by name.",
        query=(QueryParameter("q", "Search words."),),
        tag="argosy",
        response_schema=build_object_schema(
            "items",
            items=build_array_schema(
                build_object_schema(
                    "kind",
                    "text",
                    "url",
                    kind=STRING_SCHEMA,
                    text=STRING_SCHEMA,
                    url=STRING_SCHEMA,
                    about=STRING_SCHEMA,
                )
            ),
        ),
        operation_id="argosy_palette",
    ),
)
