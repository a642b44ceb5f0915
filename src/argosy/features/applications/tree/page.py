"""`/apps/{ns}/{name}` and `/tree`: the resource tree of an Application with status and health.

In: a request. Out: a page, its live parts. Never: writes.
"""

from __future__ import annotations

from functools import lru_cache

from argosy.errors import ArgosyError
from argosy.features.applications.list.page import digest_ids
from argosy.features.applications.page_parts.project_filtered_application_objects import (
    list_permitted_nodes,
    shows_orphans,
)
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    render_head_parts,
)
from argosy.features.applications.page_parts.url_paths import add_query
from argosy.features.applications.tree.page_values import (
    ApplicationTree,
    GroupWindow,
    TreeObject,
    build_tree,
    build_tree_objects,
    list_rows_without_success_messages,
)
from argosy.gitops.application import Application
from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
from argosy.gitops.application_client.status_summary import list_health_words
from argosy.kube.resource_key import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

MAX_OBJECTS_SENT_WHOLE = 300  # larger trees are updated object by object


async def load_tree(request: RequestContext) -> tuple[dict[ResourceKey, TreeObject], ApplicationTree]:
    """Return all objects, and the tree of those that match the filters."""
    app, reader, query = get_application(request), build_reader(request), request.query
    nodes = await list_permitted_nodes(request)
    assessed = [(node.key, node.health) for node in nodes if node.health]
    reasons = {
        key: summarize_health_reason(reader.cache.get(key) or {}, assessment.message) for key, assessment in assessed
    }
    rows = list_rows_without_success_messages(app, list_health_words(dict(assessed)))
    orphans = await _list_orphans(request, app) if query.get_text("orphans") and shows_orphans(request) else []
    all_leaves = build_tree_objects(nodes, rows, reasons, (app.namespace, app.name), orphans)
    tree = build_tree(
        nodes,
        all_leaves,
        only_problems=query.get_text("show") == "problems",
        kind=query.get_text("kind"),
        text=query.get_text("q").strip(),
        window=_read_window(request),
    )
    return all_leaves, tree


def _read_window(request: RequestContext) -> GroupWindow:
    query = request.query
    kept_parameters = [
        (name, value) for name in query if name not in ("in", "from", "said") for value in query.get_all(name)
    ]

    def build_url(group: str, first: int) -> str:
        return add_query(request.path, [*kept_parameters, ("in", group), ("from", str(first) if first else "")])

    return GroupWindow(query.get_text("in"), query.get_int("from", 0, maximum=10**6), build_url)


async def _list_orphans(request: RequestContext, app: Application) -> list[ResourceKey]:
    try:
        return list(await build_reader(request).list_orphans(app))
    except ArgosyError:
        return []


async def render_tree_page(request: RequestContext) -> WebResponse:
    all_leaves, tree = await load_tree(request)
    digest = digest_ids(leaf.id for leaf in all_leaves.values()) if tree.total > MAX_OBJECTS_SENT_WHOLE else ""
    filters = {
        "show": "problems" if request.query.get_text("show") == "problems" else "all",
        "kind": request.query.get_text("kind"),
        "q": request.query.get_text("q"),
        "orphans": bool(request.query.get_text("orphans")),
    }
    values = await build_page_values(
        request, "tree", tree=tree, chosen=filters, digest=digest, has_orphans=shows_orphans(request)
    )
    return PageResponse("applications/tree.html", values)


async def render_tree_parts(request: RequestContext) -> dict[str, str]:
    app = get_application(request)
    all_leaves, tree = await load_tree(request)
    parts = await render_head_parts(request)
    parts["tree-count"] = page_templates.render_macro("applications/parts_tree.html", "tree_count", tree)
    if tree.total <= MAX_OBJECTS_SENT_WHOLE:
        parts["tree"] = page_templates.render_macro("applications/parts_tree.html", "app_tree", tree, app.name)
        return parts
    parts["shape"] = page_templates.render_macro(
        "applications/parts_list.html", "shape", digest_ids(leaf.id for leaf in all_leaves.values())
    )
    return parts | {leaf.id: _render_tree_object(leaf) for leaf in tree.list_sent()}


@lru_cache(maxsize=4096)
def _render_tree_object(leaf: TreeObject) -> str:
    return page_templates.render_macro("applications/parts_tree.html", "tree_leaf", leaf)


READ_PERMISSION = RequiresPermission("applications", "get", resolve_application)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}", READ_PERMISSION, render_tree_page, "An application"),
    Route("GET", "/apps/{ns}/{name}/tree", READ_PERMISSION, render_tree_page, "The resource tree of an application"),
)
