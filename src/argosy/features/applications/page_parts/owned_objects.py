"""Objects and status rows of an Application that its project permits.

In: a request. Out: nodes, rows. Never: an object that the project does not permit, nor its children.
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
    """argo: Children of an object that is not permitted are left out."""
    app, reader = app_of(asked), reader_of(asked)
    try:
        nodes, kinds = await reader.tree(app), await reader.kinds()
    except (Unseen, TransientError, ClusterError):
        if app.destination.is_here:
            raise
        return []  # the cluster is unreachable, as conditions show; the status lists managed objects
    try:
        project = reader.project(app)
    except UserError:
        return []  # the page shows that the project does not exist
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
    """List the permitted rows of the status, including objects that do not exist yet: Git may name any object."""
    app, reader = app_of(asked), reader_of(asked)
    project = reader.rules.projects.get(app.project)
    if project is None:
        return []
    try:
        kinds = await reader.kinds()
    except (TransientError, ClusterError):
        if app.destination.is_here:
            raise
        kinds = {}  # then kinds are used as written
    allowed = permission(app, project, reader.rules, kinds)
    return [row for row in rows(app) if allowed(row.key)]


def shows_orphans(asked: Asked) -> bool:
    """argo: Orphans are shown only if the project monitors them."""
    project = reader_of(asked).rules.projects.get(app_of(asked).project)
    return project is not None and project.orphans is not None
