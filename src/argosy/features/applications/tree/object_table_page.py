"""`/apps/{ns}/{name}/resources`: the objects of an Application as a sortable table.

In: a request. Out: a page, its live parts. Never: writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.features.applications.page_parts.shared_page_values import build_page_values, render_head_parts
from argosy.features.applications.tree.page import load_tree
from argosy.features.applications.tree.page_values import TreeObject
from argosy.web import page_templates
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

MAX_ROWS_PER_PAGE = 500  # rows of a page
HEALTH_ORDER = {"Degraded": 0, "Missing": 1, "Unknown": 2, "Progressing": 3, "Suspended": 4, "Healthy": 5, "": 6}
SORT_KEYS: dict[str, Callable[[TreeObject], Any]] = {
    "kind": lambda leaf: (leaf.key.kind, leaf.key.name),
    "name": lambda leaf: (leaf.key.name, leaf.key.kind),
    "namespace": lambda leaf: (leaf.key.namespace, leaf.key.kind, leaf.key.name),
    "sync": lambda leaf: ({"OutOfSync": 0, "Synced": 1}.get(leaf.status, 2), leaf.key),
    "health": lambda leaf: (HEALTH_ORDER.get(leaf.health, 2), leaf.key),
    "wave": lambda leaf: (leaf.wave is None, leaf.wave or 0, leaf.key),
    "age": lambda leaf: (leaf.created, leaf.key),
}


def filter_and_sort(
    leaves: list[TreeObject], sort: str, *, only_problems: bool, kind: str, text: str
) -> list[TreeObject]:
    matching = [
        leaf
        for leaf in leaves
        if (not only_problems or leaf.is_problem)
        and (not kind or leaf.key.kind == kind)
        and text.lower() in f"{leaf.key.kind}/{leaf.key.name}".lower()
    ]
    order = SORT_KEYS.get(sort.removeprefix("-"), SORT_KEYS["health"])
    return sorted(matching, key=order, reverse=sort.startswith("-"))


async def _load_rows(request: RequestContext) -> tuple[list[TreeObject], list[TreeObject]]:
    query = request.query
    all_objects = list((await load_tree(request))[0].values())
    matching = filter_and_sort(
        all_objects,
        query.get_text("sort") or "health",
        only_problems=query.get_text("show") == "problems",
        kind=query.get_text("kind"),
        text=query.get_text("q").strip(),
    )
    return all_objects, matching


def _read_page_number(request: RequestContext, matching: list[TreeObject]) -> tuple[int, int]:
    """Return the current page and the number of pages."""
    pages = max(1, -(-len(matching) // MAX_ROWS_PER_PAGE))
    return min(request.query.get_int("page", 1, minimum=1), pages), pages


async def render_resources_page(request: RequestContext) -> WebResponse:
    all_objects, matching = await _load_rows(request)
    query = request.query
    page, pages = _read_page_number(request, matching)
    values = await build_page_values(
        request,
        "resources",
        rows=matching[(page - 1) * MAX_ROWS_PER_PAGE : page * MAX_ROWS_PER_PAGE],
        matching=len(matching),
        total=len(all_objects),
        page=page,
        pages=pages,
        first=(page - 1) * MAX_ROWS_PER_PAGE + 1 if matching else 0,
        kinds=sorted({leaf.key.kind for leaf in all_objects}),
        sort=query.get_text("sort") or "health",
        chosen={"show": query.get_text("show") or "all", "kind": query.get_text("kind"), "q": query.get_text("q")},
    )
    return PageResponse("applications/resources.html", values)


async def render_resources_parts(request: RequestContext) -> dict[str, str]:
    _, matching = await _load_rows(request)
    parts = await render_head_parts(request)
    page, _ = _read_page_number(request, matching)
    for leaf in matching[(page - 1) * MAX_ROWS_PER_PAGE : page * MAX_ROWS_PER_PAGE]:
        parts[leaf.id] = page_templates.render_macro("applications/parts_tree.html", "leaf_row", leaf)
    return parts


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/resources",
        RequiresPermission("applications", "get", resolve_application),
        render_resources_page,
        "The objects",
    ),
)
