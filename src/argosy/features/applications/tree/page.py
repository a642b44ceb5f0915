"""`/apps/{ns}/{name}` and `/tree`: the resource tree of an Application with status and health.

In: a request. Out: a page, its live parts. Never: writes.
"""

from __future__ import annotations

from functools import lru_cache

from argosy.errors import ArgosyError
from argosy.features.applications.list.page import shape_of
from argosy.features.applications.page_parts.addresses import with_query
from argosy.features.applications.page_parts.frame import app_of, framed, head_parts
from argosy.features.applications.page_parts.owned_objects import nodes_of, shows_orphans
from argosy.features.applications.tree.nodes import Leaf, Tree, Window, grown, leaves, told_rows
from argosy.gitops.application import Application
from argosy.gitops.application_client.health_reasons import reason
from argosy.gitops.application_client.reader import health_words
from argosy.kube.names import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_clients import reader_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

MOST_WHOLE = 300  # larger trees are updated object by object


async def found(asked: Asked) -> tuple[dict[ResourceKey, Leaf], Tree]:
    """Return all objects, and the tree of those that match the filters."""
    app, reader, query = app_of(asked), reader_of(asked), asked.query
    nodes = await nodes_of(asked)
    judged = [(node.key, node.health) for node in nodes if node.health]
    said = {key: reason(reader.cache.get(key) or {}, each.message) for key, each in judged}
    rows = told_rows(app, health_words(dict(judged)))
    orphans = await _orphans(asked, app) if query.text("orphans") and shows_orphans(asked) else []
    all_leaves = leaves(nodes, rows, said, (app.namespace, app.name), orphans)
    made = grown(
        nodes,
        all_leaves,
        only_problems=query.text("show") == "problems",
        kind=query.text("kind"),
        text=query.text("q").strip(),
        window=_window(asked),
    )
    return all_leaves, made


def _window(asked: Asked) -> Window:
    query = asked.query
    kept = [(name, value) for name in query if name not in ("in", "from", "said") for value in query.all(name)]

    def address(group: str, first: int) -> str:
        return with_query(asked.path, [*kept, ("in", group), ("from", str(first) if first else "")])

    return Window(query.text("in"), query.number("from", 0, most=10**6), address)


async def _orphans(asked: Asked, app: Application) -> list[ResourceKey]:
    try:
        return list(await reader_of(asked).orphans(app))
    except ArgosyError:
        return []


async def tree_page(asked: Asked) -> Answer:
    all_leaves, made = await found(asked)
    digest = shape_of(leaf.id for leaf in all_leaves.values()) if made.total > MOST_WHOLE else ""
    chosen = {
        "show": "problems" if asked.query.text("show") == "problems" else "all",
        "kind": asked.query.text("kind"),
        "q": asked.query.text("q"),
        "orphans": bool(asked.query.text("orphans")),
    }
    values = await framed(asked, "tree", tree=made, chosen=chosen, digest=digest, has_orphans=shows_orphans(asked))
    return Page("applications/tree.html", values)


async def tree_parts(asked: Asked) -> dict[str, str]:
    app = app_of(asked)
    all_leaves, made = await found(asked)
    parts = await head_parts(asked)
    parts["tree-count"] = page_templates.part("applications/parts_tree.html", "tree_count", made)
    if made.total <= MOST_WHOLE:
        parts["tree"] = page_templates.part("applications/parts_tree.html", "app_tree", made, app.name)
        return parts
    parts["shape"] = page_templates.part(
        "applications/parts_list.html", "shape", shape_of(leaf.id for leaf in all_leaves.values())
    )
    return parts | {leaf.id: _rendered(leaf) for leaf in made.shown()}


@lru_cache(maxsize=4096)
def _rendered(leaf: Leaf) -> str:
    return page_templates.part("applications/parts_tree.html", "tree_leaf", leaf)


NEEDS = May("applications", "get", application)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}", NEEDS, tree_page, "An application"),
    Route("GET", "/apps/{ns}/{name}/tree", NEEDS, tree_page, "The resource tree of an application"),
)
