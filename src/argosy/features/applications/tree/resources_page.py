"""`/apps/{ns}/{name}/resources`: the objects of an Application as a sortable table.

In: a request. Out: a page, its live parts. Never: writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.features.applications.page_parts.frame import framed, head_parts
from argosy.features.applications.tree.nodes import Leaf
from argosy.features.applications.tree.page import found
from argosy.web import page_templates
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

MOST = 500  # rows of a page
HEALTH = {"Degraded": 0, "Missing": 1, "Unknown": 2, "Progressing": 3, "Suspended": 4, "Healthy": 5, "": 6}
ORDERS: dict[str, Callable[[Leaf], Any]] = {
    "kind": lambda leaf: (leaf.key.kind, leaf.key.name),
    "name": lambda leaf: (leaf.key.name, leaf.key.kind),
    "namespace": lambda leaf: (leaf.key.namespace, leaf.key.kind, leaf.key.name),
    "sync": lambda leaf: ({"OutOfSync": 0, "Synced": 1}.get(leaf.status, 2), leaf.key),
    "health": lambda leaf: (HEALTH.get(leaf.health, 2), leaf.key),
    "wave": lambda leaf: (leaf.wave is None, leaf.wave or 0, leaf.key),
    "age": lambda leaf: (leaf.created, leaf.key),
}


def table(leaves: list[Leaf], sort: str, *, only_problems: bool, kind: str, text: str) -> list[Leaf]:
    wanted = [
        leaf
        for leaf in leaves
        if (not only_problems or leaf.is_problem)
        and (not kind or leaf.key.kind == kind)
        and text.lower() in f"{leaf.key.kind}/{leaf.key.name}".lower()
    ]
    order = ORDERS.get(sort.removeprefix("-"), ORDERS["health"])
    return sorted(wanted, key=order, reverse=sort.startswith("-"))


async def _rows(asked: Asked) -> tuple[list[Leaf], list[Leaf]]:
    query = asked.query
    everything = list((await found(asked))[0].values())
    shown = table(
        everything,
        query.text("sort") or "health",
        only_problems=query.text("show") == "problems",
        kind=query.text("kind"),
        text=query.text("q").strip(),
    )
    return everything, shown


def _page(asked: Asked, shown: list[Leaf]) -> tuple[int, int]:
    """Return the current page and the number of pages."""
    pages = max(1, -(-len(shown) // MOST))
    return min(asked.query.number("page", 1, least=1), pages), pages


async def resources_page(asked: Asked) -> Answer:
    everything, shown = await _rows(asked)
    query = asked.query
    page, pages = _page(asked, shown)
    values = await framed(
        asked,
        "resources",
        rows=shown[(page - 1) * MOST : page * MOST],
        matching=len(shown),
        total=len(everything),
        page=page,
        pages=pages,
        first=(page - 1) * MOST + 1 if shown else 0,
        kinds=sorted({leaf.key.kind for leaf in everything}),
        sort=query.text("sort") or "health",
        chosen={"show": query.text("show") or "all", "kind": query.text("kind"), "q": query.text("q")},
    )
    return Page("applications/resources.html", values)


async def resources_parts(asked: Asked) -> dict[str, str]:
    _, shown = await _rows(asked)
    parts = await head_parts(asked)
    page, _ = _page(asked, shown)
    for leaf in shown[(page - 1) * MOST : page * MOST]:
        parts[leaf.id] = page_templates.part("applications/parts_tree.html", "leaf_row", leaf)
    return parts


ROUTES = (
    Route("GET", "/apps/{ns}/{name}/resources", May("applications", "get", application), resources_page, "The objects"),
)
