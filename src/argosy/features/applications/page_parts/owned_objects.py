"""What an Application owns, as far as its project permits it.

In: a request. Out: nodes. Never: what a project does not permit, nor what came of that.
"""

from __future__ import annotations

from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.applications.page_parts.frame import app_of
from argosy.gitops.application_client.reader import Unseen
from argosy.gitops.application_client.summary import Row, rows
from argosy.gitops.live.resource_tree import Node
from argosy.gitops.reconciler.permissions import permission
from argosy.kube.names import ResourceKey
from argosy.web.caller_clients import reader_of
from argosy.web.request import Asked


async def nodes_of(asked: Asked) -> list[Node]:
    """argo: below what is not permitted nothing is looked at."""
    app, reader = app_of(asked), reader_of(asked)
    try:
        nodes, kinds = await reader.tree(app), await reader.kinds()
    except (Unseen, TransientError, ClusterError):
        if app.destination.is_here:
            raise
        return []  # its cluster is away, which its conditions tell; its status lists what it manages
    try:
        project = reader.project(app)
    except UserError:
        return []  # its page says that there is no such project
    allowed = permission(app, project, reader.rules, kinds)
    if all(allowed(node.key) for node in nodes):
        return nodes
    all_keys, kept = {node.key for node in nodes}, set[ResourceKey]()
    for node in nodes:  # parents come before their children
        above = [parent.key for parent in node.parents if parent.key in all_keys]
        if allowed(node.key) and (not above or any(key in kept for key in above)):
            kept.add(node.key)
    return [node for node in nodes if node.key in kept]


async def rows_of(asked: Asked) -> list[Row]:
    """What its status lists, also of what is not there: Git may name anything."""
    app, reader = app_of(asked), reader_of(asked)
    project = reader.rules.projects.get(app.project)
    if project is None:
        return []
    try:
        kinds = await reader.kinds()
    except (TransientError, ClusterError):
        if app.destination.is_here:
            raise
        kinds = {}  # then a kind is as it is written
    allowed = permission(app, project, reader.rules, kinds)
    return [row for row in rows(app) if allowed(row.key)]


def shows_orphans(asked: Asked) -> bool:
    """argo: only where the project watches for them."""
    project = reader_of(asked).rules.projects.get(app_of(asked).project)
    return project is not None and project.orphans is not None
